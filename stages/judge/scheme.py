"""From texts to fingerprints in one step, and the name of how it was done."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b, pbkdf2_hmac
from importlib.metadata import version
from typing import Any

from twinsieve.stages.contract import MIN_NEAR_LENGTH, STORED_LENGTH, BandLayout, Bodies, Fingerprints
from twinsieve.stages.differ.tails import fill_tallies, tally_version
from twinsieve.stages.fingerprint.digest import DigestConfig, Keys
from twinsieve.stages.fingerprint.features import FeatureConfig, dictionary_entries
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.idf import train_idf
from twinsieve.stages.fingerprint.mixing import KERNEL_VERSION
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig, text_version

__all__ = [
    "DigestConfig",
    "FeatureConfig",
    "Scheme",
    "SchemeConfig",
    "TextConfig",
    "dictionary_entries",
]
# All parts of a scheme's configuration can be imported from here.

# Makes a guess at the seed cost some 20 ms, as the scheme id stands in files and logs that others may read.
_GUESS_ROUNDS = 100_000


@dataclass(frozen=True, slots=True)
class SchemeConfig:
    """Everything that shapes bodies and fingerprints."""

    text: TextConfig = field(default_factory=TextConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    layout: BandLayout = field(default_factory=BandLayout)
    digest: DigestConfig = field(default_factory=DigestConfig)


class Scheme:
    """Reads texts: normalises them and makes their fingerprints.

    near: whether a near stage reads what this makes. If not, fingerprints are digests alone, and texts that
        come with keys have empty bodies
    raises: UsageError if the configuration cannot be met

    >>> bodies, fingerprints = Scheme(SchemeConfig()).read(["武汉加油！中国加油！", "👍"])
    >>> bodies.text(0), fingerprints.has_simhash.tolist()
    ('武汉加油中国加油', [True, False])
    """

    def __init__(self, config: SchemeConfig, *, near: bool = True) -> None:
        self.config = config
        self._near = near
        self._normalizer = Normalizer(config.text)
        self._fingerprinter = Fingerprinter(config.features, config.layout, config.digest)

    def read(self, texts: list[str], keys: Keys | None = None) -> tuple[Bodies, Fingerprints]:
        """Bodies and fingerprints of a batch, row by row; a row does not depend on its batch.

        keys: one exact key per row, in place of the key text
        raises: UsageError if there is not one key per row
        """
        bodies = self.bodies(texts, keys)
        return bodies, self.fingerprints(bodies, keys, texts)

    def bodies(self, texts: list[str], keys: Keys | None = None) -> Bodies:
        """The first half of `read`, for those who time the two."""
        if keys is not None and not self._near:
            return Bodies.blank(len(texts), fill={"exact_only": 1})
        return self._normalizer.bodies(texts)

    def fingerprints(self, bodies: Bodies, keys: Keys | None, texts: list[str] | None) -> Fingerprints:
        """The second half of `read`."""
        if not self._near:
            return self._fingerprinter.digests_alone(bodies, keys)
        prints = self._fingerprinter.fingerprints(bodies, keys, texts)
        fill_tallies(bodies, prints.tallies)
        return prints

    def train_idf(self, batches: Iterable[Bodies], min_documents: int) -> list[tuple[str, float]]:
        """As `fingerprint.idf.train_idf`, of the features that this scheme makes."""
        return train_idf(batches, replace(self.config.features, idf=None), min_documents)

    @cached_property
    def scheme_id(self) -> str:
        """16 hex digits that are equal where, and only where, texts get equal fingerprints.

        Covers all settings, the secret seed (through a slow hash), `text_version`, our kernels, the words
        that are counted in long bodies, and jieba's tables where keywords are used.
        """
        named = json.dumps(_origins(self.config), sort_keys=True, separators=(",", ":"))
        return blake2b(named.encode(), digest_size=8, person=b"twinsieve-scheme").hexdigest()


def _origins(config: SchemeConfig) -> dict[str, Any]:
    settings = asdict(config)
    seed = settings["digest"].pop("seed").to_bytes(8, "little")
    if settings["layout"]["grams"] == "chars":
        # Younger than the rest: a scheme without it keeps its id.
        del settings["layout"]["grams"]
    return {
        "settings": settings,
        # The default is not a secret, and every start would pay for the slow hash.
        "seed": pbkdf2_hmac("sha256", seed, b"twinsieve seed", _GUESS_ROUNDS).hex() if any(seed) else "none",
        "lengths": [MIN_NEAR_LENGTH, STORED_LENGTH],
        "text": text_version(config.text),
        "kernels": KERNEL_VERSION,
        "tallies": tally_version(),
        "data": _data(config),
    }


def _data(config: SchemeConfig) -> dict[str, str]:
    """Versions and hashes of jieba's data where these settings use it."""
    data = {}
    features = config.features
    if features.features == "keywords":
        data["jieba"] = version("jieba")
        files = ["dict.txt"] if features.idf is not None else ["dict.txt", "analyse/idf.txt"]
        for name in files:
            data[name] = blake2b(pkgutil.get_data("jieba", name) or b"", digest_size=16).hexdigest()
    return data
