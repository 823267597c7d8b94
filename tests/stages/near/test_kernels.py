"""Kernels of the near stage against plain twins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq

from tests import unicode_twin
from twinsieve.stages.contract import PARITY_BELOW, STORED_LENGTH
from twinsieve.stages.fingerprint.bag import BAG_BYTES, fill_bags
from twinsieve.stages.near.lcs import lcs_with_stored, new_pattern, set_pattern, shared_ends
from twinsieve.stages.near.verify import bag_bound
from twinsieve.stages.text.code_point_tables import IN_NUMBER_DIGIT, IN_NUMBER_PREFIX, number_parts
from twinsieve.stages.window.lengths import (
    MAX_CODED_LENGTH,
    REJECT,
    length_code,
    length_codes,
    signature_limits,
)

_SMALL = st.text("甲乙丙丁ab1", max_size=200)


def _codes(text: str) -> np.ndarray:
    return np.array([ord(c) for c in text], np.uint32)


def _stored(text: str, *, wide: bool) -> np.ndarray:
    codes = _codes(text)
    if not wide:
        return codes.astype(np.uint16)
    return np.stack([codes & 0xFFFF, codes >> 16], axis=1).astype(np.uint16).reshape(-1)


_PATTERN = new_pattern()


def _lcs(query: str, length: int, units: np.ndarray, before: int, text: str, wide: bool, least: int) -> int:
    """Of the first characters of a query and a stored text."""
    text_at = (units, before, len(text), wide)
    ends = shared_ends(_codes(query), 0, length, *text_at)
    return int(lcs_with_stored(_PATTERN, length, *text_at, ends, least))


_ENDS = st.text("甲乙ab", max_size=90)


@given(_ENDS, _SMALL, _SMALL, _ENDS, st.integers(0, 400))
def test_what_both_begin_and_end_with_changes_no_lcs(
    head: str, query: str, text: str, tail: str, least: int
) -> None:
    query, text = head + query + tail, head + text + tail
    set_pattern(_PATTERN, _codes(query), 0, len(query))
    plain = LCSseq.similarity(query, text)
    units = _stored(text, wide=False)
    found = _lcs(query, len(query), units, 0, text, False, least)
    assert found == plain if plain >= least else found < least


@given(_SMALL, _SMALL, st.booleans(), st.integers(0, 3), st.integers(0, 210))
def test_lcs_equals_the_plain_one(query: str, text: str, wide: bool, before: int, least: int) -> None:
    if wide:
        query, text = query.replace("甲", "𠮷"), text.replace("甲", "𠮷")
    units = np.concatenate([np.zeros(before, np.uint16), _stored(text, wide=wide)])
    set_pattern(_PATTERN, _codes(query), 0, len(query))
    found = _lcs(query, len(query), units, before, text, wide, 0)
    assert found == LCSseq.similarity(query, text)
    enough = _lcs(query, len(query), units, before, text, wide, least)
    assert enough == found if found >= least else enough < least


@pytest.mark.parametrize("length", [1, 63, 64, 65, 127, 128, 129, 511, STORED_LENGTH])
def test_lcs_at_word_edges(length: int) -> None:
    rng = np.random.default_rng(length)
    query = "".join(chr(0x4E00 + c) for c in rng.integers(0, 40, length))
    text = "".join(chr(0x4E00 + c) for c in rng.integers(0, 40, STORED_LENGTH))
    set_pattern(_PATTERN, _codes(query), 0, length)
    for used in {1, length // 2, length} - {0}:
        plain = LCSseq.similarity(query[:used], text)
        for least in (0, plain, plain + 1):
            found = _lcs(query, used, _stored(text, wide=False), 0, text, False, least)
            assert found == plain if least <= plain else found < least


def test_characters_that_share_a_cell_of_the_pattern_are_told_apart() -> None:
    # Cells of higher code points are hashed; 400 of them in 1,024 cells meet.
    query = "".join(chr(0x4E00 + c) for c in range(400))
    text = "".join(chr(0x4E00 + c) for c in range(1, 800, 2))
    set_pattern(_PATTERN, _codes(query), 0, len(query))
    found = _lcs(query, len(query), _stored(text, wide=False), 0, text, False, 0)
    assert found == LCSseq.similarity(query, text) == 200


def _bag(text: str) -> np.ndarray:
    bags = np.zeros((1, BAG_BYTES), np.uint8)
    signatures = np.zeros(1, np.uint32)
    fill_bags(_codes(text), np.array([0, len(text)], np.int64), np.zeros(1, np.bool_), bags, signatures)
    return bags.view(np.uint64)


@given(_SMALL, _SMALL)
def test_char_bag_never_bounds_below_the_lcs(a: str, b: str) -> None:
    bound = bag_bound(_bag(a), 0, len(a), _bag(b), 0, len(b))
    assert LCSseq.similarity(a, b) <= bound <= min(len(a), len(b))


def test_char_bag_equals_common_characters_where_nothing_saturates() -> None:
    a, b = "甲乙丙丁", "乙丙戊"
    common = sum((Counter(a) & Counter(b)).values())
    assert bag_bound(_bag(a), 0, 4, _bag(b), 0, 3) == common


@given(
    st.integers(8, 3000), st.integers(8, 3000), st.sampled_from([7_000, 8_000, 8_500, 9_500]), st.booleans()
)
def test_length_limits_lose_no_pair_that_lengths_allow(a: int, b: int, similarity: int, keyed: bool) -> None:
    limits = signature_limits(similarity, keyed=keyed)
    limit = limits[:, length_code(a), length_code(b)].min()
    best = 2 * min(a, b)
    if best * 10_000 >= similarity * (a + b):
        assert limit != REJECT
        if max(a, b) < PARITY_BELOW:
            # Each insertion or deletion changes one character count, hence at most one parity bit.
            assert limit >= min(32, (a + b) * (10_000 - similarity) // 10_000)


def test_length_codes_ascend_with_the_length() -> None:
    codes = length_codes().astype(int)
    assert (np.diff(codes) >= 0).all()
    assert codes[7] == 0
    assert codes[MAX_CODED_LENGTH] == 255


def test_digits_and_currencies_of_every_script_are_parts_of_numbers() -> None:
    found = number_parts().tolist()
    every = list(map(chr, range(len(found))))
    assert [bool(part & IN_NUMBER_DIGIT) for part in found] == list(map(unicode_twin.is_decimal, every))
    prefixes = [char for char, part in zip(every, found, strict=True) if part & IN_NUMBER_PREFIX]
    assert prefixes == [c for c in every if c in "-<>≤≥" or unicode_twin.category(c) == "Sc"]
