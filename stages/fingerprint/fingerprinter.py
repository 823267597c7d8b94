"""All fingerprints of a batch."""

from __future__ import annotations

import numpy as np

from twinsieve.stages.columns import places_of
from twinsieve.stages.contract import SKETCH_FROM, BandLayout, Bodies, Fingerprints
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.bag import fill_bags
from twinsieve.stages.fingerprint.digest import DigestConfig, Keys, digests
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.idf import run_weights
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
from twinsieve.stages.fingerprint.simhash import (
    SIMHASH_BITS,
    WEIGHTINGS,
    FeatureRules,
    SimhashColumns,
    fill_packed_simhashes,
    fill_simhashes,
)

_BANDS, _SKETCH, _SIMHASH = range(3)


class Fingerprinter:
    """Makes fingerprints of bodies; the same ones for the same settings, in any process and any batch.

    features: what the SimHash is made of; layout: shape of bands and SimHash tables;
    digest: method of digests, and the secret seed of everything
    raises: UsageError for a layout that does not fit 128 bits

    >>> from twinsieve.stages.contract import BandLayout
    >>> maker = Fingerprinter(FeatureConfig(), BandLayout(bands=20), DigestConfig(seed=1))
    >>> chars = np.array([ord(c) for c in "武汉加油中国加油"], np.uint32)
    >>> lengths = np.array([8], np.int32)
    >>> bodies = Bodies(chars, np.array([0, 8]), np.zeros(8, np.uint8), lengths, lengths, np.array([False]))
    >>> prints = maker.fingerprints(bodies)
    >>> prints.band_keys.shape, prints.has_simhash.tolist(), prints.sketch_rows.tolist()
    ((1, 20), [True], [-1])
    """

    def __init__(self, features: FeatureConfig, layout: BandLayout, digest: DigestConfig) -> None:
        _check(layout)
        self._layout = layout
        self._digest = digest
        seed = digest.seed
        hashes = max(SIGNATURE_HASHES, layout.bands * layout.rows)
        self._band_family = HashFamily.of(seed, _BANDS, hashes)
        self._sketch_family = HashFamily.of(seed, _SKETCH, SKETCH_HASHES)
        self._simhash_seeds = np.array(derive(seed, _SIMHASH, 3), dtype=np.uint64)
        self._keywords: Keywords | None = None
        if features.features == "keywords":
            self._keywords = Keywords(features, seed)
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
        texts: list[str] | None = None,  # noqa: ARG002
    ) -> Fingerprints:
        """Fingerprints of a batch, row by row; exact-only rows have a digest and zeros.

        Tallies are 0; `stages.differ.tails`, which has the lists of words, fills them.
        keys: one exact key per row, in place of the key text
        texts: the messages before they became bodies, for what is made of them
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
        self._fill_simhashes(bodies, prints)
        by_script = layout.grams == "by_script"
        columns = (prints.band_keys, prints.signatures)
        fill_bands(chars, starts, exact_only, self._band_family, layout.rows, by_script, *columns)
        fill_bags(chars, starts, exact_only, prints.bags, prints.signatures)
        fill_sketches(chars, starts, prints.sketch_rows, self._sketch_family, prints.sketches)
        return prints

    def digests_alone(self, bodies: Bodies, keys: Keys | None = None) -> Fingerprints:
        """Fingerprints for the exact stage: the digests of `fingerprints`, and nothing else in any row.

        raises: UsageError if there is not one key per row
        """
        prints = Fingerprints.blank(len(bodies), dims={"bag": 0})
        prints.digests = digests(self._digest, bodies.for_kernels(), keys)
        return prints

    def packed_features(
        self,
        bodies: Bodies,
        texts: list[str] | None = None,  # noqa: ARG002
    ) -> PackedFeatures:
        """What the SimHash of each row is made of. texts: as for `fingerprints`"""
        if self._keywords is not None:
            return PackedFeatures(*self._keywords.pack(bodies))
        return packed_features(bodies.for_kernels(), self._rules, self._simhash_seeds[0])

    def _fill_simhashes(self, bodies: Bodies, prints: Fingerprints) -> None:
        simhashes = SimhashColumns(prints.simhashes, prints.has_simhash, prints.weak_bits)
        seeds, key_bits = self._simhash_seeds, self._layout.key_bits
        if self._keywords is not None:
            fill_packed_simhashes(*self._keywords.pack(bodies), seeds, key_bits, simhashes)
            return
        columns = (bodies.chars, bodies.starts, bodies.word_starts, bodies.exact_only)
        fill_simhashes(*columns, self._rules, seeds, key_bits, simhashes)


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
