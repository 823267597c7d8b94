"""`Fingerprinter`: computes all fingerprints of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, cached_property, partial

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import places_of, starts_of
from twinsieve.stages.contract import SKETCH_FROM, BandLayout, Bodies, Fingerprints
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.bag import fill_bags
from twinsieve.stages.fingerprint.digest import Keys, digests
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.idf import run_weights, runs_as_text
from twinsieve.stages.fingerprint.keywords import Keywords
from twinsieve.stages.fingerprint.minhash import (
    SIGNATURE_HASHES,
    SKETCH_HASHES,
    HashFamily,
    fill_bands,
    fill_sketches,
)
from twinsieve.stages.fingerprint.mixing import derive
from twinsieve.stages.fingerprint.packed_features import PackedFeatures, packed_features
from twinsieve.stages.fingerprint.seen import SeenFeature, SeenFingerprint, seen
from twinsieve.stages.fingerprint.simhash import (
    SIMHASH_BITS,
    WEIGHTINGS,
    FeatureRules,
    SimhashColumns,
    fill_packed_simhashes,
    fill_simhashes,
)
from twinsieve.stages.intrinsics import mix64
from twinsieve.stages.text.code_point_tables import kinds
from twinsieve.stages.text.scripts import LATIN_RANGES
from twinsieve.stages.text.unicode import CATEGORIES, CATEGORY


@cache
def dropped_characters(drop: tuple[str, ...]) -> NDArray[np.bool_]:
    """bool[0x110000], whether a character is taken out.

    drop: some of `latin` (letters of the Latin script) and `digits` (category Nd)

    >>> table = dropped_characters(("latin", "digits"))
    >>> [bool(table[ord(char)]) for char in "aß7٣"], [bool(table[ord(char)]) for char in "я天.²"]
    ([True, True, True, True], [False, False, False, False])
    """
    categories = kinds() & CATEGORY
    table = np.zeros(len(categories), np.bool_)
    if "digits" in drop:
        table |= categories == CATEGORIES.index("Nd")
    if "latin" in drop:
        letters = np.isin(categories, [i for i, name in enumerate(CATEGORIES) if name[0] == "L"])
        for first, last in LATIN_RANGES:
            table[first : last + 1] |= letters[first : last + 1]
    return table


def without(bodies: Bodies, drop: tuple[str, ...]) -> Bodies:
    """The bodies without these characters; a word ends where one was. Their lengths stay as they were."""
    if not drop:
        return bodies
    kept = ~dropped_characters(drop)[bodies.chars]
    word_starts = bodies.word_starts.copy()
    word_starts[1:] |= ~kept[:-1]
    starts = starts_of(kept.astype(np.int64))[bodies.starts]
    return replace(bodies, chars=bodies.chars[kept], word_starts=word_starts[kept], starts=starts)


_BANDS, _SKETCH, _SIMHASH = range(3)


class Fingerprinter:
    """Computes the fingerprints of bodies; with the same settings, they are the same in each process.

    features: features of the SimHash; layout: shape of bands and SimHash tables
    simhash_from: shorter bodies get no SimHash in `fingerprints`
    digest: method and secret of the digests
    raises: UsageError for a layout with values out of range

    >>> from twinsieve.stages.contract import BandLayout
    >>> maker = Fingerprinter(FeatureConfig(), BandLayout(bands=20), DigestConfig())
    >>> chars = np.array([ord(c) for c in "武汉加油中国加油"], np.uint32)
    >>> lengths = np.array([8], np.int32)
    >>> starts, none = np.array([0, 8]), np.array([False])
    >>> bodies = Bodies(chars, starts, np.zeros(8, np.uint8), lengths, lengths, none, lengths)
    >>> prints = maker.fingerprints(bodies)
    >>> prints.band_keys.shape, prints.has_simhash.tolist(), prints.sketch_rows.tolist()
    ((1, 20), [True], [-1])
    """

    def __init__(
        self, features: FeatureConfig, layout: BandLayout, digest: DigestConfig, simhash_from: int = 0
    ) -> None:
        _check(layout)
        self._simhash_from = simhash_from
        self._layout = layout
        self._digest = digest
        hashes = max(SIGNATURE_HASHES, layout.bands * layout.rows)
        self._band_family = HashFamily.of(_BANDS, hashes)
        self._sketch_family = HashFamily.of(_SKETCH, SKETCH_HASHES)
        self._simhash_seeds = np.array(derive(_SIMHASH, 3), dtype=np.uint64)
        self._features = features
        self._drop = features.drop
        self._keywords: Keywords | None = None
        if features.features == "keywords":
            self._keywords = Keywords(features)
        else:
            self._rules = FeatureRules(
                features.by_words,
                *features.widths,
                WEIGHTINGS[features.weights],
                features.min_features,
                *run_weights(features, self._simhash_seeds[0]),
            )

    def fingerprints(
        self,
        bodies: Bodies,
        keys: Keys | None = None,
        features: Callable[[], PackedFeatures] | None = None,
    ) -> Fingerprints:
        """The fingerprints of each row. Exact-only rows have a digest; their other columns are 0.

        All tallies are 0 here; `stages.differ.tails` fills them, because it has the lists of words.
        keys: one exact key for each row, to be hashed instead of the key text
        features: returns `packed_features` of these rows; called only for the kinds of features that need it.
            None: they are made of the bodies
        raises: UsageError if there is not one key per row
        """
        layout = self._layout
        bodies = bodies.for_kernels()
        chars, starts, exact_only = bodies.chars, bodies.starts, bodies.exact_only
        long = ~exact_only & (np.diff(starts) >= SKETCH_FROM)
        dims = {"tables": layout.tables, "weak": layout.weak, "bands": layout.bands}
        prints = Fingerprints.blank(len(bodies), dims=dims)
        prints.digests = digests(self._digest, bodies, keys)
        prints.sketches = np.zeros((int(np.count_nonzero(long)), SKETCH_HASHES), np.uint8)
        prints.sketch_rows = places_of(long).astype(np.int32)
        columns = SimhashColumns(prints.simhashes, prints.has_simhash, prints.weak_bits)
        long_enough = self.with_simhash(bodies)
        self._fill_simhashes(long_enough, features or partial(self.packed_features, long_enough), columns)
        by_script = layout.grams == "by_script"
        by_minhash = (prints.band_keys, prints.signatures)
        fill_bands(chars, starts, exact_only, self._band_family, layout.rows, by_script, *by_minhash)
        fill_bags(chars, starts, exact_only, prints.bags, prints.signatures)
        fill_sketches(chars, starts, prints.sketch_rows, self._sketch_family, prints.sketches)
        return prints

    def with_simhash(self, bodies: Bodies) -> Bodies:
        """The same bodies, of which those are exact-only that get no SimHash."""
        if not self._simhash_from:
            return bodies
        too_short = bodies.body_lengths < self._simhash_from
        return replace(bodies, exact_only=bodies.exact_only | too_short)

    def digests_alone(self, bodies: Bodies, keys: Keys | None = None) -> Fingerprints:
        """Fingerprints for the exact stage: the digests of `fingerprints`, and nothing else in any row.

        raises: UsageError if there is not one key per row
        """
        prints = Fingerprints.blank(len(bodies), dims={"bag": 0})
        prints.digests = digests(self._digest, bodies.for_kernels(), keys)
        return prints

    def simhashes(self, bodies: Bodies) -> SimhashColumns:
        """The SimHash of each row, without the other fingerprints.

        The column of weak bits (the least certain bits of each SimHash) is empty.
        """
        rows = len(bodies)
        columns = SimhashColumns(
            np.zeros((rows, 2), np.uint64), np.zeros(rows, np.bool_), np.zeros((rows, 0, 0), np.uint8)
        )
        self._fill_simhashes(bodies.for_kernels(), partial(self.packed_features, bodies), columns)
        return columns

    def packed_features(self, bodies: Bodies) -> PackedFeatures:
        """The features of each row, from which its SimHash is computed."""
        bodies = without(bodies, self._drop)
        if self._keywords is not None:
            return PackedFeatures(*self._keywords.pack(bodies))
        return packed_features(bodies.for_kernels(), self._rules, self._simhash_seeds[0])

    def seen(self, bodies: Bodies) -> SeenFingerprint:
        """The first 64 bits of the SimHash of one body, and the features from which they are computed."""
        packed = self.packed_features(bodies)
        if not len(packed.features):
            return seen([])
        hashes = [int(mix64(seeded)) for seeded in packed.features + self._simhash_seeds[1]]
        named = zip(self._as_text(bodies), packed.weights.tolist(), hashes, strict=True)
        return seen([SeenFeature(*feature) for feature in named])

    def _as_text(self, bodies: Bodies) -> Iterable[str]:
        """The distinct features of the first row as text, in the order of their first occurrence."""
        bodies = without(bodies, self._drop)
        if self._keywords is not None:
            return self._keywords.keywords(bodies, 0)
        return dict.fromkeys(next(runs_as_text(bodies, self._features)))

    def idf_of(self, features: NDArray[np.uint64]) -> NDArray[np.int64]:
        """int64[m]: IDF of features in 1/256; features that are not in the table get the table's median."""
        known, weights = self._idf
        if not len(known):
            return np.full(len(features), weights[-1])
        places = np.minimum(np.searchsorted(known, features), len(known) - 1)
        return np.where(known[places] == features, weights[:-1][places], weights[-1])

    @cached_property
    def _idf(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        if self._keywords is not None:
            return self._keywords.idf_table()
        return self._rules.idf_features, self._rules.idf_weights

    def _fill_simhashes(
        self, bodies: Bodies, features: Callable[[], PackedFeatures], columns: SimhashColumns
    ) -> None:
        seeds, key_bits = self._simhash_seeds, self._layout.key_bits
        if self._keywords is not None:
            fill_packed_simhashes(*features(), seeds, key_bits, columns)
            return
        bodies = without(bodies, self._drop)
        chars = (bodies.chars, bodies.starts, bodies.word_starts, bodies.exact_only)
        fill_simhashes(*chars, self._rules, seeds, key_bits, columns)


def _check(layout: BandLayout) -> None:
    for name, low, high in (
        ("bands", 0, 256),
        ("rows", 1, 64),
        ("tables", 0, SIMHASH_BITS),
        ("key_bits", 1, 64),
        ("weak", 0, layout.key_bits),
    ):
        value = getattr(layout, name)
        if not low <= value <= high:
            raise UsageError(f"layout.{name} is {value}; use {low}…{high}")
    if layout.grams not in ("chars", "by_script"):
        raise UsageError(f"layout.grams is {layout.grams!r}; use chars or by_script")
