"""How digests and signatures are made, as values: settings are checked without a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twinsieve.stages.contract import MAX_PARTS
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.secret import NO_SECRET, Secret

AUTO_HASHES = {"top_features": 10, "segments": 4, "sentences": 3, "imatch": 1}
"""Hashes of a message, by kind, where the settings do not say how many."""


@dataclass(frozen=True, slots=True)
class DigestConfig:
    """How keys are hashed to digests.

    method: `mmh3` (MurmurHash3 x64) is fast, and public: anybody can forge equal digests, so a hit is
        confirmed by its text if that is stored. With a secret, SipHash-2-4 takes its place. `blake2b`, with
        the secret as its key, is slower
    secret: keys the digests, and nothing else of a fingerprint
    raises: UsageError for another method
    """

    method: Literal["mmh3", "blake2b"] = "mmh3"
    secret: Secret = NO_SECRET

    def __post_init__(self) -> None:
        if self.method not in ("mmh3", "blake2b"):
            raise UsageError(f"digest.method is {self.method!r}; use mmh3 or blake2b")


@dataclass(frozen=True, slots=True)
class SignatureConfig:
    """Which parts of a message are hashed.

    kind: `top_features`: the `hashes` heaviest features of `FeatureConfig`, of equal ones the first in the
        text; `segments`: the text in `hashes` segments; `sentences`: the `hashes` longest sentences, of equal
        ones the earlier; `imatch`: all features with an IDF from `commonest` to `rarest`
    hashes: 1 to MAX_PARTS
    joined: all hashes of a message become one
    cut: where segments may end: `sentences`: at sentence ends; `paragraphs`: at line ends; `length`: anywhere
    rarest, commonest: of imatch, IDF of the rarest and of the commonest feature that counts; None: no limit
    raises: UsageError, naming the setting
    """

    kind: Literal["top_features", "segments", "sentences", "imatch"] = "top_features"
    hashes: int = AUTO_HASHES["top_features"]
    joined: bool = True
    cut: Literal["sentences", "paragraphs", "length"] = "sentences"
    rarest: float | None = None
    commonest: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.hashes <= MAX_PARTS:
            raise UsageError(f"near.signature.hashes is {self.hashes}; use 1 to {MAX_PARTS}")
        if self.rarest is not None and self.rarest < self.commonest:
            raise UsageError(
                f"near.signature.rarest is {self.rarest:g}, below commonest ({self.commonest:g}): no feature "
                "would count; IDF grows with rarity"
            )

    @property
    def parts(self) -> int:
        """Most hashes of a message."""
        return 1 if self.joined or self.kind == "imatch" else self.hashes
