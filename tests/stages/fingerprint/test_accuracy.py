"""Estimates stay near the truth: MinHash and sketches at twenty levels of overlap, SimHash on edits.

All texts are fixed, and everybody has the same hashes, so these are measurements of one family of hashes, not of
luck; tolerances are a little over what was measured and well under what a broken family gives.
"""

from __future__ import annotations

import random
from itertools import accumulate

import numpy as np
import pytest

from tests.generated import LANGUAGES, stream
from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.pipeline.tools.generate.grammar import Grammar
from twinsieve.stages.contract import BandLayout, Fingerprints
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

HAN = [chr(0x4E00 + i) for i in range(20_000)]
UNEVEN = list(accumulate(1 / (10 + i) for i in range(3000)))
LEVELS = [level / 20 for level in range(1, 21)]
PAIRS = 40
HASHES = 256
# With one row a band, a band key is a bijection of one MinHash value: equal keys are equal values.
SINGLE = BandLayout(bands=HASHES, rows=1, tables=6)


def grams(text: str, widths: tuple[int, ...]) -> set[str]:
    return {text[i : i + width] for width in widths for i in range(len(text) - width + 1)}


def jaccard(a: str, b: str, *widths: int) -> float:
    one, other = grams(a, widths), grams(b, widths)
    return len(one & other) / len(one | other)


def pair_sharing(share: float, length: int, draw: random.Random) -> tuple[str, str]:
    """Two texts of one beginning; characters are as unevenly used as in posts."""
    text = "".join(draw.choices(HAN[:3000], cum_weights=UNEVEN, k=3 * length))
    common = round(share * length)
    return text[:length], text[:common] + text[2 * length : 3 * length - common]


def both_sides(pairs: list[tuple[str, str]], layout: BandLayout) -> list[Fingerprints]:
    """Of the first texts, and of the second."""
    maker = Fingerprinter(FeatureConfig(), layout, DigestConfig())
    return [maker.fingerprints(bodies_of(list(texts))) for texts in zip(*pairs, strict=True)]


@pytest.mark.parametrize("seed", [0, 1, 20_200_216])
def test_minhash_estimates_jaccard_at_twenty_levels(seed: int) -> None:
    draw = random.Random(seed)
    pairs = [pair_sharing(level, 60, draw) for level in LEVELS for _ in range(PAIRS)]
    first, second = both_sides(pairs, SINGLE)
    estimates = (first.band_keys == second.band_keys).mean(axis=1)
    truths = np.array([jaccard(a, b, 1, 2) for a, b in pairs])
    assert truths.min() < 0.1
    assert truths.max() == 1.0
    assert abs((estimates - truths).mean()) < 0.005
    for level in range(len(LEVELS)):
        errors = (estimates - truths)[level * PAIRS : (level + 1) * PAIRS]
        # One estimate has a standard error of at most .5 / sqrt(256) = .031.
        assert abs(errors.mean()) < 0.02
        assert np.sqrt((errors**2).mean()) < 0.045


@pytest.mark.parametrize("rows", [2, 4])
def test_bands_collide_as_often_as_minhash_promises(rows: int) -> None:
    draw = random.Random(rows)
    pairs = [pair_sharing(level, 60, draw) for level in LEVELS for _ in range(PAIRS)]
    first, second = both_sides(pairs, BandLayout(bands=64, rows=rows))
    promised = np.array([jaccard(a, b, 1, 2) ** rows for a, b in pairs])
    found = (first.band_keys == second.band_keys).mean(axis=1)
    for level in range(len(LEVELS)):
        part = slice(level * PAIRS, (level + 1) * PAIRS)
        assert abs(found[part].mean() - promised[part].mean()) < 0.03


def test_sketches_estimate_jaccard_of_long_bodies_at_twenty_levels() -> None:
    draw = random.Random(3)
    pairs = [pair_sharing(level, 700, draw) for level in LEVELS for _ in range(PAIRS)]
    first, second = both_sides(pairs, BandLayout(bands=1))
    # Agreement beyond chance, which is 1/256 a byte.
    estimates = np.maximum(0, ((first.sketches == second.sketches).mean(axis=1) - 1 / 256) / (1 - 1 / 256))
    truths = np.array([jaccard(a, b, 4) for a, b in pairs])
    for level in range(len(LEVELS)):
        errors = (estimates - truths)[level * PAIRS : (level + 1) * PAIRS]
        # One estimate has a standard error of at most .5 / sqrt(64) = .063.
        assert abs(errors.mean()) < 0.035
        assert np.sqrt((errors**2).mean()) < 0.085


def test_signature_bits_of_unrelated_long_bodies_differ_in_half_of_cases() -> None:
    draw = random.Random(4)
    texts = ["".join(draw.choices(HAN, k=60)) for _ in range(2000)]
    maker = Fingerprinter(FeatureConfig(), BandLayout(bands=1), DigestConfig())
    signatures = maker.fingerprints(bodies_of(texts)).signatures
    ones = (signatures[:, None] >> np.arange(32, dtype=np.uint32)) & 1
    assert ones.mean(axis=0).min() > 0.44
    assert ones.mean(axis=0).max() < 0.56
    distances = np.bitwise_count(signatures[::2] ^ signatures[1::2])
    assert abs(distances.mean() - 16) < 0.5


def test_unrelated_simhashes_differ_in_half_their_bits() -> None:
    draw = random.Random(5)
    texts = ["".join(draw.choices(HAN, k=60)) for _ in range(2000)]
    maker = Fingerprinter(FeatureConfig(), BandLayout(bands=1), DigestConfig())
    simhashes = maker.fingerprints(bodies_of(texts)).simhashes
    distances = np.bitwise_count(simhashes[::2] ^ simhashes[1::2])
    assert abs(distances.mean(axis=0) - 32).max() < 0.5
    assert 3.6 < distances[:, 0].std() < 4.4


WEAK_LAYOUT = BandLayout(tables=6, key_bits=24, weak=6)
WEAK_SCHEME = SchemeConfig(TextConfig(body_rule="letters"), layout=WEAK_LAYOUT)


def with_one_changed(texts: list[str], letters: list[str]) -> list[str]:
    """Each text with one of its letters replaced by one of these; blanks stay, so words stay words."""
    draw = random.Random(6)
    edited = []
    for text in texts:
        place = draw.choice([i for i, char in enumerate(text) if char.isalpha()])
        edited.append(text[:place] + draw.choice(letters) + text[place + 1 :])
    return edited


def check_flips(originals: list[str], edited: list[str]) -> None:
    """Few of 128 bits change, and 9 in 10 of the key bits that do are among the 6 weakest of 24."""
    scheme = Scheme(WEAK_SCHEME)
    read = scheme.read(originals)[1]
    again = scheme.read(edited)[1]
    changed = read.simhashes ^ again.simhashes
    flipped = weak_flipped = 0
    for row, (low, high) in enumerate(changed.tolist()):
        bits = low | high << 64
        for table in range(6):
            for j in range(24):
                if bits >> ((table * 128 // 6 + j) % 128) & 1:
                    flipped += 1
                    weak_flipped += j in read.weak_bits[row, table]
    distances = np.bitwise_count(changed).sum(axis=1, dtype=np.int64)
    assert np.median(distances) <= 6
    assert np.quantile(distances, 0.99) <= 20
    assert weak_flipped > 0.9 * flipped


@pytest.mark.parametrize("language", LANGUAGES)
def test_weak_bits_are_the_ones_an_edit_flips(language: str) -> None:
    # A changed letter changes a whole word, so a long post has as many words as one of another language has characters.
    letters_each = 6 if Grammar(language).glue else 1
    texts = stream(language, 3000, seed=6).texts
    texts = [" ".join(texts[row : row + letters_each]) for row in range(len(texts))]
    bodies = Scheme(WEAK_SCHEME).read(texts)[0]
    long = [text for row, text in enumerate(texts) if bodies.body_lengths[row] >= 80 * letters_each]
    assert len(long) > 500
    letters = [char for text in texts for char in text if char.isalpha()]
    check_flips(long, with_one_changed(long, letters))
