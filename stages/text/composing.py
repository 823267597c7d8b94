"""NFKC of rows in which characters combine with their neighbours (combining marks, conjoining jamo).

source: Unicode Standard, chapter 3.11 (normalization forms) and 3.12 (conjoining jamo); UAX #15
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import kernel
from twinsieve.stages.text.code_point_tables import SPECIAL_PLANES, changes, combining_classes
from twinsieve.stages.text.unicode import database

MAX_MARK_RUN = 30
"""Greatest number of combining marks in a row that are normalised together, as in the Stream-Safe Text Format
of UAX #15.

A character whose decomposition begins with a mark counts as a mark.
"""

_JOINER = np.uint32(0x034F)
_SYLLABLES, _LEADING, _VOWELS, _FINALS = 0xAC00, 0x1100, 0x1161, 0x11A7
_LEADING_COUNT, _VOWEL_COUNT, _FINAL_COUNT = 19, 21, 28
_SYLLABLE_COUNT = _LEADING_COUNT * _VOWEL_COUNT * _FINAL_COUNT
_APART_PLANES = 0x30000


class Composition(NamedTuple):
    """Tables by code point.

    classes: uint8[SPECIAL_PLANES], canonical combining class
    apart: int32[_APART_PLANES], row of a code point's NFKD decomposition, 0 if NFKD does not change it
    apart_starts, apart_texts: int64[], uint32[], the decompositions; row i is
        apart_texts[apart_starts[i]:apart_starts[i + 1]]
    seconds: int32[SPECIAL_PLANES], row of a code point that can be the second one of a composition, else 0
    second_starts: int64[]; the second code point of row i composes with the first ones
        firsts[second_starts[i]:second_starts[i + 1]], ascending
    firsts, composites: uint32[], first code point and result of each composition
    """

    classes: NDArray[np.uint8]
    apart: NDArray[np.int32]
    apart_starts: NDArray[np.int64]
    apart_texts: NDArray[np.uint32]
    seconds: NDArray[np.int32]
    second_starts: NDArray[np.int64]
    firsts: NDArray[np.uint32]
    composites: NDArray[np.uint32]


@cache
def composition() -> Composition:
    """The tables of UNICODE_VERSION; the first call builds them."""
    changed = changes("nfkd")
    apart = np.zeros(_APART_PLANES, dtype=np.int32)
    apart[changed.codes] = np.arange(1, len(changed.codes) + 1)
    pairs = database()["pairs"]
    codes, begins = np.unique(pairs[:, 1], return_index=True)
    seconds = np.zeros(SPECIAL_PLANES, dtype=np.int32)
    seconds[codes] = np.arange(1, len(codes) + 1)
    return Composition(
        classes=combining_classes().copy(),
        apart=apart,
        apart_starts=np.concatenate(([0], changed.starts)),
        apart_texts=changed.texts,
        seconds=seconds,
        second_starts=np.concatenate(([0], begins, [len(pairs)])).astype(np.int64),
        firsts=pairs[:, 0].copy(),
        composites=pairs[:, 2].copy(),
    )


@kernel
def measure_apart(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    lookups: Composition,
    lengths: NDArray[np.int64],
) -> None:
    """Set lengths[i] to an upper bound of the number of code points of rows[i] after its decomposition."""
    for r in range(len(rows)):
        row = rows[r]
        # Room for one U+034F after each MAX_MARK_RUN marks.
        length = (starts[row + 1] - starts[row]) // MAX_MARK_RUN
        for i in range(starts[row], starts[row + 1]):
            code = np.int64(chars[i])
            if code < _APART_PLANES and lookups.apart[code]:
                entry = lookups.apart[code]
                length += lookups.apart_starts[entry + 1] - lookups.apart_starts[entry]
            elif _SYLLABLES <= code < _SYLLABLES + _SYLLABLE_COUNT:
                length += 3
            else:
                length += 1
        lengths[r] = length


@kernel(callee=True)
def _class_of(code: np.uint32, classes: NDArray[np.uint8]) -> np.uint8:
    return classes[code] if code < np.uint32(SPECIAL_PLANES) else np.uint8(0)


@kernel(callee=True)
def _take_apart(
    chars: NDArray[np.uint32], begin: np.int64, end: np.int64, lookups: Composition, out: NDArray[np.uint32]
) -> np.int64:
    """Write the full decomposition of chars[begin:end] to `out`, not sorted yet. returns: its length"""
    w = np.int64(0)
    run = 0
    for i in range(begin, end):
        code = np.int64(chars[i])
        entry = lookups.apart[code] if code < _APART_PLANES else np.int32(0)
        lead = lookups.apart_texts[lookups.apart_starts[entry]] if entry else chars[i]
        run = run + 1 if _class_of(lead, lookups.classes) else 0
        if run > MAX_MARK_RUN:
            out[w] = _JOINER
            w += 1
            run = 1
        if entry:
            for k in range(lookups.apart_starts[entry], lookups.apart_starts[entry + 1]):
                out[w] = lookups.apart_texts[k]
                w += 1
        elif _SYLLABLES <= code < _SYLLABLES + _SYLLABLE_COUNT:
            syllable = code - _SYLLABLES
            out[w] = _LEADING + syllable // (_VOWEL_COUNT * _FINAL_COUNT)
            out[w + 1] = _VOWELS + syllable // _FINAL_COUNT % _VOWEL_COUNT
            w += 2
            if syllable % _FINAL_COUNT:
                out[w] = _FINALS + syllable % _FINAL_COUNT
                w += 1
        else:
            out[w] = chars[i]
            w += 1
    return w


@kernel(callee=True)
def _sort_marks(t: NDArray[np.uint32], n: np.int64, classes: NDArray[np.uint8]) -> None:
    """Sort the marks of each run by their combining class; marks of one class stay in their order.

    MAX_MARK_RUN limits a run, and a mark decomposes into at most four marks. So the time is linear in n.
    """
    for i in range(1, n):
        code = t[i]
        own = _class_of(code, classes)
        if not own:
            continue
        k = i
        while k > 0 and _class_of(t[k - 1], classes) > own:
            t[k] = t[k - 1]
            k -= 1
        t[k] = code


@kernel(callee=True)
def _joined(first: np.int64, second: np.int64, lookups: Composition) -> np.int64:
    """The character that two characters compose to; 0 if they do not compose."""
    if _VOWELS <= second < _VOWELS + _VOWEL_COUNT:
        if _LEADING <= first < _LEADING + _LEADING_COUNT:
            return _SYLLABLES + ((first - _LEADING) * _VOWEL_COUNT + second - _VOWELS) * _FINAL_COUNT
        return np.int64(0)
    if _FINALS < second < _FINALS + _FINAL_COUNT:
        syllable = first - _SYLLABLES
        if 0 <= syllable < _SYLLABLE_COUNT and syllable % _FINAL_COUNT == 0:
            return first + second - _FINALS
        return np.int64(0)
    if second >= SPECIAL_PLANES or not lookups.seconds[second]:
        return np.int64(0)
    row = lookups.seconds[second]
    begin, end = lookups.second_starts[row], lookups.second_starts[row + 1]
    pair = begin + np.searchsorted(lookups.firsts[begin:end], first)
    return np.int64(lookups.composites[pair]) if pair < end and lookups.firsts[pair] == first else np.int64(0)


@kernel(callee=True)
def _put_together(t: NDArray[np.uint32], n: np.int64, lookups: Composition) -> np.int64:
    """Compose decomposed, sorted text in place. returns: its new length"""
    w = np.int64(0)
    starter = np.int64(-1)
    last = np.int64(0)  # class of the last character written; -1 if that is the starter itself
    for i in range(n):
        code = t[i]
        own = np.int64(_class_of(code, lookups.classes))
        if starter >= 0 and last < own:
            composite = _joined(np.int64(t[starter]), np.int64(code), lookups)
            if composite:
                t[starter] = composite
                continue
        if own == 0:
            starter = w
            last = np.int64(-1)
        else:
            last = own
        t[w] = code
        w += 1
    return w


@kernel
def compose_rows(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    rows: NDArray[np.int64],
    lookups: Composition,
    out: NDArray[np.uint32],
    ends: NDArray[np.int64],
) -> None:
    """Write the NFKC of rows[i] to out[ends[i - 1]:ends[i]], one row after another.

    After MAX_MARK_RUN combining marks in a row, U+034F is inserted, because the time to sort a run grows with
    the square of its length. No writing system uses longer runs, and bodies drop U+034F.
    out: room as `measure_apart` computed it
    """
    w = np.int64(0)
    for r in range(len(rows)):
        row = rows[r]
        t = out[w:]
        n = _take_apart(chars, starts[row], starts[row + 1], lookups, t)
        _sort_marks(t, n, lookups.classes)
        w += _put_together(t, n, lookups)
        ends[r] = w
