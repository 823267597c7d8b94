"""Guards: two bodies are alike enough, and yet say different things.

The *number guard* keeps apart "新增确诊12例" and "新增确诊15例": a number of one body and one of the other
stand in the same context but differ, and neither value occurs anywhere in the other body. Sign, currency and
comparison are part of a number: "气温-5度" and "气温5度" are kept apart, too.
source: near_quality.md section 5 (a guard on any other number was wrong more often than right)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.text.tables import (
    IN_NUMBER_DIGIT,
    IN_NUMBER_PREFIX,
    IN_NUMBER_SEPARATOR,
    SPECIAL_PLANES,
)

MAX_RUNS = 256
"""Runs of one body that are compared; a stored text of 512 characters cannot hold more."""

_PRIME = np.uint64(0x100000001B3)
_OFFSET = np.uint64(0xCBF29CE484222325)


@kernel
def number_part(char: np.uint32, parts: NDArray[np.uint8]) -> int:
    """What a character of a body is to a number: IN_NUMBER bits, or 0. parts: by `number_parts`."""
    # Between these lie Han, Kana and Hangul: most characters seen, and no part of a number.
    if np.uint32(0x2E80) <= char < np.uint32(0xA000) or np.uint32(0xAC00) <= char < np.uint32(0xD800):
        return np.int64(0)
    return np.int64(parts[char]) if char < np.uint32(SPECIAL_PLANES) else np.int64(0)


@kernel(callee=True)
def _joins(chars: NDArray[np.uint32], at: int, length: int, parts: NDArray[np.uint8]) -> bool:
    """Whether a separator stands here, inside a number."""
    if not number_part(chars[at], parts) & IN_NUMBER_SEPARATOR or at + 1 >= length:
        return False
    return number_part(chars[at + 1], parts) & IN_NUMBER_DIGIT != 0


@kernel
def digit_runs(
    chars: NDArray[np.uint32],
    start: int,
    length: int,
    cut: bool,
    parts: NDArray[np.uint8],
    runs: NDArray[np.uint64],
) -> int:
    """How many numbers chars[start:start + length] has; runs[i] = (hash of value, hash of context).

    parts: uint8[], by `number_parts`
    cut: the text goes on behind `length`; a run that touches the cut is left out, as its end is unknown
    runs: uint64[MAX_RUNS, 2], overwritten
    """
    text = chars[start : start + length]
    count = 0
    at = ZERO
    while at < length and count < MAX_RUNS:
        if not number_part(text[at], parts) & (IN_NUMBER_DIGIT | IN_NUMBER_PREFIX):
            at += 1
            continue
        first = at
        value = _OFFSET
        while at < length and number_part(text[at], parts) & IN_NUMBER_PREFIX:
            value = (value ^ np.uint64(text[at])) * _PRIME
            at += 1
        if at == length or not number_part(text[at], parts) & IN_NUMBER_DIGIT:
            continue
        while at < length and (
            number_part(text[at], parts) & IN_NUMBER_DIGIT or _joins(text, at, length, parts)
        ):
            value = (value ^ np.uint64(text[at])) * _PRIME
            at += 1
        if cut and at == length:
            break
        before = np.uint64(text[first - 1]) + np.uint64(1) if first > 0 else np.uint64(0)
        after = np.uint64(text[at]) + np.uint64(1) if at < length else np.uint64(0)
        runs[count, 0] = value
        runs[count, 1] = (before << np.uint64(32)) | after
        count += 1
    return count


@kernel
def numbers_replaced(
    runs_a: NDArray[np.uint64], count_a: int, runs_b: NDArray[np.uint64], count_b: int
) -> bool:
    """Whether the number guard keeps two bodies apart, from their digit runs; symmetric.

    runs_a, runs_b: uint64[…, 2] by `digit_runs`
    """
    for i in range(count_a):
        if _has_value(runs_b, count_b, runs_a[i, 0]):
            continue
        for j in range(count_b):
            same_context = runs_a[i, 1] == runs_b[j, 1]
            if same_context and not _has_value(runs_a, count_a, runs_b[j, 0]):
                return True
    return False


@kernel(callee=True)
def _has_value(runs: NDArray[np.uint64], count: int, value: np.uint64) -> bool:
    for i in range(count):  # noqa: SIM110
        if runs[i, 0] == value:
            return True
    return False
