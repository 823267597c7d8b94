"""MinHash of character n-grams (grams): band keys, one-bit signatures, and sketches of long bodies.

Hash function i of a gram is `multipliers[i] * g + addends[i]` modulo 2^32; g is a well-mixed 32-bit hash of
the gram. It is not proven that this family is min-wise independent, so tests/stages compare its estimates
with the truth at twenty levels of overlap.
source: Broder 1997 (resemblance); Li and König 2010 (b-bit minwise hashing)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import PARITY_BELOW
from twinsieve.stages.fingerprint.mixing import NO_CHAR, derive, gram_hash, mix32
from twinsieve.stages.intrinsics import GOLDEN, mix64
from twinsieve.stages.kernel import kernel
from twinsieve.stages.text.scripts import is_unspaced

SIGNATURE_HASHES = 32
"""Number of MinHash values that give one bit each to the signature."""

SKETCH_HASHES = 64
"""Number of MinHash values that give one byte each to a sketch."""

FOURS_FROM = 48
"""Bodies of at least this many characters have bands of four-character grams, if the grams are by script."""

MOST_FOURS = 11
"""Number of bands of fours that keep an original to the end of a full window (`bench/recall_by_age.py`)."""

_CHUNK = 2048
_STEP = 8


class HashFamily(NamedTuple):
    """Coefficients of MinHash functions. The multipliers are odd, so each function is a bijection.

    gram_seed: seed of the gram hashes; multipliers, addends: uint32[count]
    """

    gram_seed: np.uint64
    multipliers: NDArray[np.uint32]
    addends: NDArray[np.uint32]

    @classmethod
    def of(cls, purpose: int, count: int) -> HashFamily:
        """`count` functions for a purpose; a greater count gives the same functions first."""
        first, *rest = derive(purpose, count + 1)
        numbers = np.array(rest, dtype=np.uint64)
        return cls(
            np.uint64(first),
            (numbers >> np.uint64(32)).astype(np.uint32) | np.uint32(1),
            (numbers & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        )


@kernel(callee=True)
def lower(
    values: NDArray[np.uint32],
    grams: NDArray[np.uint32],
    count: int,
    multipliers: NDArray[np.uint32],
    addends: NDArray[np.uint32],
) -> None:
    """Lower each MinHash value to its minimum over the first `count` grams.

    values: uint32[n], one for each of the multipliers and addends of a `HashFamily`
    grams: uint32[…], with room for 8 more. The last gram is repeated up to a multiple of eight, because a
        repeated gram does not change a minimum. So the loop can hold eight grams in registers while it goes
        through the hash functions, which is three times as fast as one gram at a time
    """
    if count == 0:
        return
    while count % _STEP:
        grams[count] = grams[count - 1]
        count += 1
    for k in range(0, count, _STEP):
        g0, g1, g2, g3 = grams[k], grams[k + 1], grams[k + 2], grams[k + 3]
        g4, g5, g6, g7 = grams[k + 4], grams[k + 5], grams[k + 6], grams[k + 7]
        for i in range(len(values)):
            a = multipliers[i]
            b = addends[i]
            first = min(
                min(np.uint32(a * g0 + b), np.uint32(a * g1 + b)),
                min(np.uint32(a * g2 + b), np.uint32(a * g3 + b)),
            )
            second = min(
                min(np.uint32(a * g4 + b), np.uint32(a * g5 + b)),
                min(np.uint32(a * g6 + b), np.uint32(a * g7 + b)),
            )
            values[i] = min(values[i], min(first, second))


@kernel(callee=True)
def by_fours_from(bands: int, rows: int) -> int:
    """Number of the first MinHash value that long bodies take of fours.

    Behind it are two bands of five, but no more than MOST_FOURS, and never a value of the signature.
    """
    return max(SIGNATURE_HASHES, (bands - min(2 * bands // 5, MOST_FOURS)) * rows)


@kernel(callee=True)
def band_key(values: NDArray[np.uint32], band: int, rows: int) -> np.uint32:
    """Key of one band: a hash of the number of the band and its MinHash values."""
    key = np.uint32(band)
    for i in range(band * rows, (band + 1) * rows):
        key = mix32(np.uint32(key * np.uint32(0x9E3779B1) + values[i]))
    return key


@kernel(callee=True)
def _add_unspaced(
    chars: NDArray[np.uint32],
    start: int,
    chunk: tuple[int, int],
    by_script: bool,
    seed: np.uint64,
    grams: NDArray[np.uint32],
    spaced: NDArray[np.int64],
) -> tuple[int, int]:
    """Write each character of an unspaced script and the pair that ends with it to `grams`, and the positions
    of the other characters to `spaced`; returns how many of each.

    Not `by_script`: no character counts as spaced.
    """
    written = others = 0
    for i in range(chunk[0], chunk[1]):
        if by_script and not is_unspaced(int(chars[i])):
            spaced[others] = i
            others += 1
            continue
        grams[written] = np.uint32(gram_hash(NO_CHAR, np.uint64(chars[i]), seed) >> np.uint64(32))
        written += 1
        # The first pair of a later chunk begins with the last character of the chunk before.
        if i > start:
            hashed = gram_hash(np.uint64(chars[i - 1]), np.uint64(chars[i]), seed)
            grams[written] = np.uint32(hashed >> np.uint64(32))
            written += 1
    return written, others


@kernel(callee=True)
def _add_pairs_and_triples(
    chars: NDArray[np.uint32],
    start: int,
    spaced: NDArray[np.int64],
    seed: np.uint64,
    grams: NDArray[np.uint32],
    written: int,
) -> int:
    """Write the pair and the triple that end with each of these positions; returns the new count."""
    for i in spaced:
        if i == start:
            continue
        hashed = gram_hash(np.uint64(chars[i - 1]), np.uint64(chars[i]), seed)
        grams[written] = np.uint32(hashed >> np.uint64(32))
        written += 1
        if i >= start + 2:
            pair = gram_hash(np.uint64(chars[i - 2]), np.uint64(chars[i - 1]), seed)
            grams[written] = np.uint32(mix64(pair * GOLDEN + np.uint64(chars[i])) >> np.uint64(32))
            written += 1
    return written


@kernel(callee=True)
def _add_fours(
    chars: NDArray[np.uint32],
    start: int,
    spaced: NDArray[np.int64],
    seed: np.uint64,
    grams: NDArray[np.uint32],
    written: int,
) -> int:
    """Write the four characters that end with each of these positions; returns the new count."""
    for i in spaced:
        if i < start + 3:
            continue
        first = gram_hash(np.uint64(chars[i - 3]), np.uint64(chars[i - 2]), seed)
        second = gram_hash(np.uint64(chars[i - 1]), np.uint64(chars[i]), seed)
        grams[written] = np.uint32(mix64(first * GOLDEN + second) >> np.uint64(32))
        written += 1
    return written


@kernel(allocates=True)
def fill_bands(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    exact_only: NDArray[np.bool_],
    family: HashFamily,
    rows: int,
    by_script: bool,
    band_keys: NDArray[np.uint32],
    signatures: NDArray[np.uint32],
) -> None:
    """Write the band keys of all near rows, and the signatures of near rows from PARITY_BELOW characters on.

    Grams are all characters and all pairs of neighbours of the whole body. With `by_script`, the grams for a
    character of a spaced script are the pair and the triple that end with it; in bodies of FOURS_FROM
    characters and more, the MinHash values of the last bands (`by_fours_from`) are taken of the four
    characters that end with it instead. Two long bodies nearly always have pairs in common, so a bucket of
    pairs fills with unrelated bodies and pushes out older ones; a bucket of fours does not. But many small
    edits change nearly all fours, so most bands keep pairs and triples.
    Bit b of a signature is the lowest bit of mix32 of MinHash value b.
    family: at least max(32, bands * rows) functions
    The time is linear in the length of the body; the memory does not depend on it.
    """
    values = np.empty(len(family.multipliers), np.uint32)
    grams = np.empty(2 * _CHUNK + _STEP, np.uint32)
    spaced = np.empty(_CHUNK, np.int64)
    split = by_fours_from(band_keys.shape[1], rows) if by_script else len(values)
    multipliers, addends = family.multipliers, family.addends
    for row in range(len(starts) - 1):
        if exact_only[row]:
            continue
        start = starts[row]
        end = starts[row + 1]
        values[:] = np.uint32(0xFFFFFFFF)
        for begin in range(start, end, _CHUNK):
            chunk = (begin, min(begin + _CHUNK, end))
            unspaced, others = _add_unspaced(chars, start, chunk, by_script, family.gram_seed, grams, spaced)
            places = spaced[:others]
            count = _add_pairs_and_triples(chars, start, places, family.gram_seed, grams, unspaced)
            if others == 0 or end - start < FOURS_FROM:
                lower(values, grams, count, multipliers, addends)
                continue
            lower(values[:split], grams, count, multipliers, addends)
            count = _add_fours(chars, start, places, family.gram_seed, grams, unspaced)
            lower(values[split:], grams, count, multipliers[split:], addends[split:])
        for band in range(band_keys.shape[1]):
            band_keys[row, band] = band_key(values, band, rows)
        if end - start >= PARITY_BELOW:
            signature = np.uint32(0)
            for b in range(SIGNATURE_HASHES):
                signature |= np.uint32((mix32(values[b]) & np.uint32(1)) << np.uint32(b))
            signatures[row] = signature


@kernel(allocates=True)
def fill_sketches(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    sketch_rows: NDArray[np.int32],
    family: HashFamily,
    sketches: NDArray[np.uint8],
) -> None:
    """Write the sketch of each row whose entry in sketch_rows is not -1.

    Byte i is the highest byte of mix32 of MinHash value i. The grams are all sequences of four characters.
    """
    values = np.empty(len(family.multipliers), np.uint32)
    grams = np.empty(_CHUNK + _STEP, np.uint32)
    for row in range(len(starts) - 1):
        if sketch_rows[row] < 0:
            continue
        values[:] = np.uint32(0xFFFFFFFF)
        last = starts[row + 1] - 3
        for chunk in range(starts[row], last, _CHUNK):
            count = min(_CHUNK, last - chunk)
            for i in range(count):
                p = chunk + i
                first = gram_hash(np.uint64(chars[p]), np.uint64(chars[p + 1]), family.gram_seed)
                second = gram_hash(np.uint64(chars[p + 2]), np.uint64(chars[p + 3]), family.gram_seed)
                hashed = mix64(first * GOLDEN + second)
                grams[i] = np.uint32(hashed >> np.uint64(32))
            lower(values, grams, count, family.multipliers, family.addends)
        for i in range(len(values)):
            sketches[sketch_rows[row], i] = mix32(values[i]) >> np.uint32(24)
