"""How digests and signatures are made, as values: settings are checked without a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from twinsieve.stages.contract import MAX_PARTS
from twinsieve.stages.errors import UsageError

_SEED_BITS = {"mmh3": 32, "blake2b": 64}
AUTO_HASHES = {"top_features": 10, "segments": 4, "sentences": 3, "imatch": 1}
"""Hashes of a message, by kind, where the settings do not say how many."""


@dataclass(frozen=True, slots=True)
class DigestConfig:
    """How keys are hashed to digests, and the secret seed of all fingerprints.

    method: `mmh3` (MurmurHash3 x64) is fast. But anybody who knows the seed can forge equal digests, and
        there may be texts that collide under every seed; so a hit is confirmed by its text if that is stored.
        `blake2b` uses the seed as a key; it is for hostile input if no text is stored
    seed: secret, 0 … 2^32 - 1 for mmh3, 0 … 2^64 - 1 for blake2b
    raises: UsageError for another method or a seed out of range
    """

    method: Literal["mmh3", "blake2b"] = "mmh3"
    seed: int = 0

    def __post_init__(self) -> None:
        bits = _SEED_BITS.get(self.method)
        if bits is None:
            raise UsageError(f"digest.method is {self.method!r}; use mmh3 or blake2b")
        if not 0 <= self.seed < 1 << bits:
            raise UsageError(
                f"digest.seed does not fit into {bits} bits; use 0…{(1 << bits) - 1} with {self.method}"
            )


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
