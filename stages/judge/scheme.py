"""`Scheme`: turns texts into fingerprints, and identifies by a hash how it does this (the scheme id)."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property, partial
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

from twinsieve.stages.contract import MIN_NEAR_LENGTH, STORED_LENGTH, BandLayout, Bodies, Fingerprints
from twinsieve.stages.differ.tails import fill_tallies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest import Keys
from twinsieve.stages.fingerprint.digest_config import DigestConfig, SignatureConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.mixing import KERNEL_VERSION
from twinsieve.stages.fingerprint.seen import SeenFingerprint
from twinsieve.stages.fingerprint.segmenter import jieba_stop_words
from twinsieve.stages.fingerprint.signature import Signer
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig, text_version

__all__ = [
    "DigestConfig",
    "FeatureConfig",
    "FieldLines",
    "Scheme",
    "SchemeConfig",
    "SignatureConfig",
    "TextConfig",
]
# The classes of all parts of a scheme's configuration can be imported from this module.


@dataclass(frozen=True, slots=True)
class FieldLines:
    """Fields of a message that have a SimHash of their own (`near.distances_by_field`).

    A text holds its fields in order, each but the last on a line of its own: see `join_fields`.
    count: number of fields in a text; compared: numbers of the one or two that are compared
    """

    count: int
    compared: tuple[int, ...]

    def of(self, texts: Sequence[str], compared: int) -> list[str]:
        """The content of one compared field, taken from each text; "" where the text lacks the field.

        compared: 0 for the first compared field, 1 for the second

        >>> FieldLines(2, (0, 1)).of(["Title\\nA body.\\nMore.", "\\nNo title."], 1)
        ['A body.\\nMore.', 'No title.']
        """
        number = self.compared[compared]
        parts = (text.split("\n", self.count - 1) for text in texts)
        return [part[number] if number < len(part) else "" for part in parts]


def join_fields(parts: Sequence[str]) -> str:
    """The fields of a message as one text, from which `FieldLines` gets them again.

    Line ends inside a field that is not the last become blanks. A missing field is given as "".

    >>> join_fields(["A title\\nin two lines", "A body.\\nMore."])
    'A title in two lines\\nA body.\\nMore.'
    """
    *before, last = parts
    return "\n".join([*(part.replace("\n", " ") for part in before), last])


@dataclass(frozen=True, slots=True)
class SchemeConfig:
    """All settings that bodies and fingerprints depend on."""

    text: TextConfig = field(default_factory=TextConfig)
    features: FeatureConfig = field(default_factory=FeatureConfig)
    layout: BandLayout = field(default_factory=BandLayout)
    digest: DigestConfig = field(default_factory=DigestConfig)
    signature: SignatureConfig | None = None
    fields: FieldLines | None = None


class Scheme:
    """Turns texts into bodies and fingerprints.

    near: whether a near stage uses the result. If not, fingerprints contain only digests, and the bodies of
        texts that come with keys are empty
    simhash_from: shorter bodies get no SimHash, because nobody reads it; 0: all get one
    raises: UsageError if the configuration is invalid

    >>> bodies, fingerprints = Scheme(SchemeConfig()).read(["武汉加油！中国加油！", "👍"])
    >>> bodies.text(0), fingerprints.has_simhash.tolist()
    ('武汉加油中国加油', [True, False])
    """

    def __init__(self, config: SchemeConfig, *, near: bool = True, simhash_from: int = 0) -> None:
        self.config = config
        self._near = near
        self._normalizer = Normalizer(config.text)
        self._fingerprinter = Fingerprinter(config.features, config.layout, config.digest, simhash_from)
        self._signer: Signer | None = None
        if config.signature is not None:
            _check_signature(config.signature, config.features)
            self._signer = Signer(config.signature, self._fingerprinter, self._normalizer.bodies)

    def read(self, texts: Sequence[str], keys: Keys | None = None) -> tuple[Bodies, Fingerprints]:
        """Body and fingerprints of each text. They do not depend on the other texts of the batch.

        keys: one exact key for each row, to be hashed instead of the key text
        raises: UsageError if there is not one key per row
        """
        bodies = self.bodies(texts, keys)
        return bodies, self.fingerprints(bodies, keys, texts)

    def bodies(self, texts: Sequence[str], keys: Keys | None = None) -> Bodies:
        """The first half of `read`, for callers that measure the time of both halves."""
        if keys is not None and not self._near:
            return Bodies.blank(len(texts), fill={"exact_only": 1})
        return self._normalizer.bodies(texts)

    def fingerprints(self, bodies: Bodies, keys: Keys | None, texts: Sequence[str]) -> Fingerprints:
        """The second half of `read`."""
        if not self._near:
            return self._fingerprinter.digests_alone(bodies, keys)
        # The SimHash and the signature use the same features. `cache` makes them only once, and only if one
        # of the two asks for them. With jieba, making them takes most of the time of a message.
        used = bodies if self._signer is not None else self._fingerprinter.with_simhash(bodies)
        features = cache(partial(self._fingerprinter.packed_features, used))
        prints = self._fingerprinter.fingerprints(bodies, keys, features)
        fill_tallies(bodies, prints.tallies)
        if self._signer is not None:
            prints.part_hashes = self._signer.part_hashes(bodies, texts, features)
        if self.config.fields is not None:
            self._replace_simhashes(self.config.fields, prints, texts)
        return prints

    def _replace_simhashes(self, fields: FieldLines, prints: Fingerprints, texts: Sequence[str]) -> None:
        """Put a 64-bit SimHash of each compared field into the columns of `simhashes`."""
        prints.has_simhash[:] = True
        prints.simhashes[:] = 0
        for number in range(len(fields.compared)):
            parts = fields.of(texts, number)
            of_field = self._fingerprinter.simhashes(self.bodies(parts))
            prints.simhashes[:, number] = of_field.simhashes[:, 0]
            prints.has_simhash &= of_field.has_simhash

    def seen(self, text: str) -> tuple[Bodies, SeenFingerprint]:
        """The body of one text, and its 64-bit SimHash with the features and sums that it is made of."""
        bodies = self.bodies([text])
        return bodies, self._fingerprinter.seen(bodies)

    @cached_property
    def scheme_id(self) -> str:
        """16 hex digits; two schemes with the same id give each text the same fingerprints.

        It is a hash of all settings, the name of the secret, `text_version`, KERNEL_VERSION, and jieba's
        tables if keywords are used. Lists of words are left out: tallies carry their version.
        """
        named = json.dumps(_origins(self.config), sort_keys=True, separators=(",", ":"))
        return blake2b(named.encode(), digest_size=8, person=b"twinsieve-scheme").hexdigest()


def _check_signature(signature: SignatureConfig, features: FeatureConfig) -> None:
    if signature.kind == "imatch" and features.features != "keywords" and features.idf is None:
        raise UsageError(
            f"near.signature.kind is imatch, which needs IDF, and there is no table for {features.features}; "
            "use features.kind: keywords, or give features.idf_file"
        )


_OF_KEYWORDS = ("choose", "drop_parts_of_speech", "min_word", "stop_words")
"""Settings that only `features.kind: keywords` uses. They were added later than the other settings."""


def _origins(config: SchemeConfig) -> dict[str, Any]:
    settings = asdict(config)
    features = settings["features"]
    if features["features"] != "keywords":
        # These settings were added later. They are left out of the hash, so that older schemes keep their
        # ids. The older ids hash the user's own stop words under the name "stop_words".
        for name in _OF_KEYWORDS:
            del features[name]
        features["stop_words"] = features.pop("own_stop_words")
    # Sorted, because the order in which the user lists them changes no fingerprint.
    features["drop"] = sorted(features["drop"])
    if not features["drop"]:
        # This setting was added later. While it is empty, it is left out of the hash, so that older schemes
        # keep their ids.
        del features["drop"]
    settings["digest"]["secret"] = config.digest.secret.name
    if settings["signature"] is None:
        del settings["signature"]
    if settings["fields"] is None:
        del settings["fields"]
    return {
        "settings": settings,
        "lengths": [MIN_NEAR_LENGTH, STORED_LENGTH],
        "text": text_version(config.text),
        "kernels": KERNEL_VERSION,
        "data": _data(config),
    }


def _data(config: SchemeConfig) -> dict[str, str]:
    """Version and file hashes of jieba, if these settings use it; else empty."""
    data = {}
    features = config.features
    if features.features == "keywords":
        data["jieba"] = version("jieba")
        if features.stop_words == "jieba":
            data["stop words"] = ",".join(sorted(jieba_stop_words()))
        files = ["dict.txt"] if features.idf is not None else ["dict.txt", "analyse/idf.txt"]
        for name in files:
            data[name] = blake2b(pkgutil.get_data("jieba", name) or b"", digest_size=16).hexdigest()
    return data
