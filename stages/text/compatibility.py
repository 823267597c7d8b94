"""NFKC of whole batches of packed texts, by the package's own Unicode database.

A text without combining marks and conjoining jamo needs no reordering and no composition. So its NFKC is the
NFKC of each character, one after another; a look-up in a table takes about 1 ns a character. Only rows with a
COMPLEX character are decomposed, sorted and composed (`composing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.rows.strings import Strings
from twinsieve.stages.text.code_point_tables import (
    COMPLEX,
    MAPPED,
    MAPPED_PLANES,
    REPLACEMENT,
    SEQUENCE,
    Tables,
    case_folds,
    tables,
)
from twinsieve.stages.text.composing import compose_rows, composition, measure_apart

_SEQUENCE = np.uint32(SEQUENCE)


class PackedText(NamedTuple):
    """Texts of n rows in NFKC, as code points.

    chars: uint32[total]; starts: int64[n + 1]; row i is chars[starts[i]:starts[i + 1]]
    bits: uint32[n], property bits (`stages.text.code_point_tables`) of all characters of the row
    """

    chars: NDArray[np.uint32]
    starts: NDArray[np.int64]
    bits: NDArray[np.uint32]


@kernel
def _measure(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    lookups: Tables,
    bits: NDArray[np.uint32],
    lengths: NDArray[np.int64],
) -> None:
    """Write the property bits of each row, and its length after the mapping of its characters."""
    for row in range(len(starts) - 1):
        text = chars[starts[row] : starts[row + 1]]
        row_bits = mapped_bits = np.uint32(0)
        for i in range(len(text)):
            row_bits |= lookups.properties[text[i]]
        if row_bits & MAPPED:
            for i in range(len(text)):
                mapped_bits |= _mapped(text[i], lookups.mapping)
        length = len(text)
        if mapped_bits & _SEQUENCE:
            for i in range(len(text)):
                mapped = _mapped(text[i], lookups.mapping)
                if mapped & _SEQUENCE:
                    sequence = np.int64(mapped ^ _SEQUENCE)
                    length += lookups.sequence_starts[sequence + 1] - lookups.sequence_starts[sequence] - 1
        bits[row] = row_bits
        lengths[row] = length


@kernel(callee=True)
def _mapped(code: np.uint32, mapping: NDArray[np.uint32]) -> np.uint32:
    return mapping[code] if code < np.uint32(MAPPED_PLANES) else code


@kernel
def _compose(
    chars: NDArray[np.uint32],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
    lookups: Tables,
    starts: NDArray[np.int64],
    out: NDArray[np.uint32],
) -> None:
    """Write the rows to `out`, each character mapped. starts: where each row begins there"""
    for row in range(len(begins)):
        text, written = chars[begins[row] : ends[row]], out[starts[row] : starts[row + 1]]
        if len(text) == len(written):
            for i in range(len(text)):
                written[i] = _mapped(text[i], lookups.mapping)
            continue
        # A sequence has two characters or more, so only rows with one change their length.
        w = ZERO
        for i in range(len(text)):
            mapped = _mapped(text[i], lookups.mapping)
            if mapped & _SEQUENCE:
                sequence = np.int64(mapped ^ _SEQUENCE)
                for k in range(lookups.sequence_starts[sequence], lookups.sequence_starts[sequence + 1]):
                    written[w] = lookups.sequences[k]
                    w += 1
            else:
                written[w] = mapped
                w += 1


def nfkc_texts(texts: list[str]) -> list[str]:
    """NFKC of each text, as `nfkc` gives it. A call has a fixed cost, so pass many texts at once.

    >>> nfkc_texts(["①ｅ\u0301", "Ｔ恤"])
    ['1é', 'T恤']
    """
    return unpack(nfkc(*pack(texts)))


def unpack(text: PackedText) -> list[str]:
    """The rows of a packed text as strings."""
    whole = text.chars.tobytes().decode("utf-32-le")
    return [whole[first:last] for first, last in pairwise(text.starts.tolist())]


@cache
def _foldings() -> dict[int, str]:
    folds = case_folds()
    texts = [folds.texts[first:last].tolist() for first, last in pairwise(folds.starts.tolist())]
    return dict(zip(folds.codes.tolist(), ("".join(map(chr, text)) for text in texts), strict=True))


def case_folded(text: str) -> str:
    """The case-folded text, as bodies have it (`tables.case_folds`).

    >>> case_folded("Straße")
    'strasse'
    """
    return text.translate(_foldings())


def pack(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """(uint32[total], code points of all texts; int64[n + 1], where each text begins and the last one ends).

    Lone surrogates become U+FFFD; JSON escapes can bring them into a Python string.
    """
    if isinstance(texts, Strings):
        chars, starts = texts.code_points()
        return _read_only(chars), starts
    starts = starts_of(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
    joined = "".join(texts)
    try:
        encoded = joined.encode("utf-32-le")
    except UnicodeEncodeError:
        chars = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4").copy()
        chars[(chars >= 0xD800) & (chars <= 0xDFFF)] = REPLACEMENT
        return _read_only(chars), starts
    return np.frombuffer(encoded, dtype="<u4"), starts


def nfkc(chars: NDArray[np.uint32], starts: NDArray[np.int64]) -> PackedText:
    """NFKC of every row of packed texts; `chars` is not changed.

    The only difference to standard NFKC: U+034F is inserted after MAX_MARK_RUN combining marks in a row.
    """
    lookups = tables()
    rows = len(starts) - 1
    bits = np.empty(rows, dtype=np.uint32)
    lengths = np.empty(rows, dtype=np.int64)
    _measure(chars, starts, lookups, bits, lengths)
    begins, ends = starts[:-1], starts[1:]
    complex_rows = np.flatnonzero(bits & np.uint32(COMPLEX))
    if len(complex_rows):
        extra, extra_starts = _composed(chars, starts, complex_rows)
        begins, ends = begins.copy(), ends.copy()
        begins[complex_rows] = extra_starts[:-1] + len(chars)
        ends[complex_rows] = extra_starts[1:] + len(chars)
        chars = _read_only(np.concatenate((chars, extra)))
        extra_bits = np.empty(len(complex_rows), dtype=np.uint32)
        extra_lengths = np.empty(len(complex_rows), dtype=np.int64)
        _measure(extra, extra_starts, lookups, extra_bits, extra_lengths)
        bits[complex_rows] = extra_bits
        lengths[complex_rows] = extra_lengths
    composed_starts = starts_of(lengths)
    composed = np.empty(composed_starts[-1], dtype=np.uint32)
    _compose(chars, begins, ends, lookups, composed_starts, composed)
    return PackedText(composed, composed_starts, bits)


def _composed(
    chars: NDArray[np.uint32], starts: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """(code points of the NFKC of these rows, one after another; where each row begins)"""
    lookups = composition()
    room = np.empty(len(rows), dtype=np.int64)
    measure_apart(chars, starts, rows, lookups, room)
    out = np.empty(int(room.sum()), dtype=np.uint32)
    ends = np.zeros(len(rows) + 1, dtype=np.int64)
    compose_rows(chars, starts, rows, lookups, out, ends[1:])
    return _read_only(out[: ends[-1]]), ends


def _read_only(chars: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The array itself, made read-only.

    Other arrays here are views of `bytes` and so read-only. Numba would compile the kernels a second time for
    writable arrays.
    """
    chars.flags.writeable = False
    return chars
