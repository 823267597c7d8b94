"""The verification of a candidate: is a row alike to a ring entry, and may it be dropped because of it?

The checks run from cheap to expensive: length ratio → char bag → exact Indel similarity of the stored texts.
If the pair is similar enough, the rules on differences follow (`stages.differ`).
For a body with more than STORED_LENGTH characters, only its head is stored. Its similarity is estimated from
the heads and the sketches of the whole bodies. The rules see the heads; of the rest of the bodies, numbers
and negations are compared (`tails.py`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import (
    MIN_NEAR_LENGTH,
    OFF,
    SIMILARITY_SCALE,
    SKETCH_FROM,
    STORED_LENGTH,
    Differences,
    Flag,
)
from twinsieve.stages.differ.difference import difference
from twinsieve.stages.differ.phrases import Phrases
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tails import tails_differ
from twinsieve.stages.differ.tokens import tokenize, write_tokens
from twinsieve.stages.differ.workspace import Differing, new_differing
from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.near.found_entries import FoundEntries, new_found_entries
from twinsieve.stages.near.lcs import (
    Pattern,
    lcs_with_stored,
    new_pattern,
    set_pattern,
    shared_ends,
    stored_char,
)
from twinsieve.stages.near.one_number import differ_in_a_number
from twinsieve.stages.text.signs import signs_differ
from twinsieve.stages.window.buckets import WAYS, LookUps, new_look_ups
from twinsieve.stages.window.chunk import Chunk
from twinsieve.stages.window.ring import (
    GRANULE,
    NO_CARD,
    SKETCH_UNITS,
    RingColumns,
    pack_flags,
    tally_of,
    word_start_at,
)

ALIKE = 1
"""Status bit of a pair: its similarity reaches the threshold."""

ESTIMATED = int(Flag.ESTIMATED)
REASON_SHIFT = 2
"""status >> REASON_SHIFT is the number of the `Rule` that keeps the pair apart, or 0."""
SAME_ID = int(Rule.SAME_ID) << REASON_SHIFT
_CARD = int(Rule.CARD) << REASON_SHIFT
_SIGN = int(Rule.SIGN) << REASON_SHIFT
_TAIL = int(Rule.TAIL) << REASON_SHIFT
_NUMBER = int(Rule.NUMBER) << REASON_SHIFT

_SKETCH_BYTES = 2 * SKETCH_UNITS


class VerifyParams(NamedTuple):
    """The settings for the comparison of a row with a ring entry.

    similarity: least similarity, out of SIMILARITY_SCALE
    limits: the differences that keep two similar messages apart, so that both are kept
    pass_same_id: 1 if two messages with the same id are both kept; scoped: 1 if both must have the same scope
    share: under the method signatures, least number of part hashes that both must have in common
    """

    similarity: int
    limits: Differences
    pass_same_id: int
    scoped: int
    share: int


class Scratch(NamedTuple):
    """Working memory of one thread.

    pattern_row: int64[1], the row whose body is in `pattern` now; -1: none
    token_row: int64[1], the row whose body is in `differing.later` now; -1: none
    word_bits: uint16[…], the word starts of that body (`pack_flags`)
    seen: uint64[1024], hash table of candidates that were already compared with the current row. An entry may
        overwrite another; then a candidate is compared twice
    found: entries that the look-ups of the current rows found
    look_ups: of the rows that come next in the segment that is searched
    """

    pattern: Pattern
    pattern_row: NDArray[np.int64]
    differing: Differing
    token_row: NDArray[np.int64]
    word_bits: NDArray[np.uint16]
    phrases: Phrases
    seen: NDArray[np.uint64]
    found: FoundEntries
    look_ups: LookUps


def new_scratch(phrases: Phrases, probes: int) -> Scratch:
    """New memory for one thread. phrases: the lists of words for the rules; probes: look-ups of a row"""
    return Scratch(
        new_pattern(),
        np.full(1, -1, np.int64),
        new_differing(),
        np.full(1, -1, np.int64),
        np.zeros(STORED_LENGTH // 16, np.uint16),
        phrases,
        np.zeros(1024, np.uint64),
        new_found_entries(probes * WAYS),
        new_look_ups(probes),
    )


@kernel(callee=True)
def begin(scratch: Scratch) -> None:
    """Forget the rows of the previous chunk; their row numbers have another meaning now."""
    scratch.pattern_row[0] = scratch.token_row[0] = -1
    scratch.seen[:] = 0


def _whole_body_estimates() -> NDArray[np.int64]:
    """int64[65]: estimated share of common 4-grams, by the number of equal sketch bytes.

    The share is the Dice coefficient, out of SIMILARITY_SCALE; Dice = 2J / (1 + J) with the Jaccard index J.
    Two different MinHash values have the same 8 bits once in 256; the estimate subtracts these.
    """
    estimates = []
    for equal in range(_SKETCH_BYTES + 1):
        # Of n = _SKETCH_BYTES bytes, `equal` are equal. The Jaccard index is (256 * equal - n) / (255 * n),
        # or 0 if this is negative. It is computed as the fraction top / bottom, to stay in whole numbers.
        top, bottom = max(0, 256 * equal - _SKETCH_BYTES), 255 * _SKETCH_BYTES
        estimates.append(min(SIMILARITY_SCALE, 2 * top * SIMILARITY_SCALE // (top + bottom)))
    return np.array(estimates, dtype=np.int64)


def _scattered_estimates() -> NDArray[np.int64]:
    """int64[65]: square root of the whole-body estimate, out of SIMILARITY_SCALE."""
    shares = _whole_body_estimates().tolist()
    return np.array([math.isqrt(share * SIMILARITY_SCALE) for share in shares], dtype=np.int64)


_WHOLE = _whole_body_estimates()
_SCATTERED = _scattered_estimates()

_EVEN = np.uint64(0x0F0F0F0F0F0F0F0F)
_HIGH = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_ADD = np.uint64(0x0001000100010001)


@kernel(callee=True)
def _byte_minimum(a: np.uint64, b: np.uint64) -> np.uint64:
    """The smaller value of each byte of a and b; all bytes below 128."""
    a_wins = (((a | _HIGH) - b) & _HIGH) >> np.uint64(7)
    use_b = a_wins * np.uint64(255)
    return (b & use_b) | (a & ~use_b)


@kernel(callee=True)
def _byte_sum(value: np.uint64) -> np.int64:
    halves = (value & _PAIRS) + ((value >> np.uint64(8)) & _PAIRS)
    return np.int64((halves * _ADD) >> np.uint64(48))


@kernel
def bag_bound(
    bags_a: NDArray[np.uint64], a: int, length_a: int, bags_b: NDArray[np.uint64], b: int, length_b: int
) -> int:
    """An upper bound of the length of the longest common subsequence, from two char bags.

    A char bag has 64 bins that count characters, each up to 15. The bound is the sum, over all bins, of the
    smaller of the two counts, plus the characters that full bins did not count:
    min(length_a - all counts of a, length_b - all counts of b).

    bags_a, bags_b: uint64[…, 4], bags by row; row a of the one is compared with row b of the other
    length_a, length_b: number of characters from which each of these two bags was made
    """
    common, sum_a, sum_b = np.uint64(0), np.uint64(0), np.uint64(0)
    for j in range(4):
        x, y = bags_a[a, j], bags_b[b, j]
        x_low, x_high = x & _EVEN, (x >> np.uint64(4)) & _EVEN
        y_low, y_high = y & _EVEN, (y >> np.uint64(4)) & _EVEN
        common += _byte_minimum(x_low, y_low) + _byte_minimum(x_high, y_high)
        sum_a += x_low + x_high
        sum_b += y_low + y_high
    hidden = min(length_a - _byte_sum(sum_a), length_b - _byte_sum(sum_b))
    return _byte_sum(common) + max(hidden, 0)


@kernel(callee=True)
def compare(
    chunk: Chunk, row: int, ring: RingColumns, slot: int, rules: VerifyParams, scratch: Scratch
) -> tuple[int, int, int]:
    """(status, matched, compared) of a row and a ring entry, both of the near stage.

    status: 0 if they are not similar enough, or have different scopes. Else ALIKE, plus the number of the
        rule that keeps them apart, if any (REASON_SHIFT), plus ESTIMATED if a body is longer than
        STORED_LENGTH
    matched, compared: similarity = matched / compared; matched = 2 * LCS, compared = sum of both lengths
    """
    if not may_be_alike(chunk, row, ring, slot, rules):
        return 0, 0, 0
    return compare_texts(chunk, row, ring, slot, rules, scratch)


@kernel(callee=True, inlined=True)
def may_be_alike(chunk: Chunk, row: int, ring: RingColumns, slot: int, rules: VerifyParams) -> bool:
    """Whether scopes, lengths and char bags of a row and a ring entry allow them to be alike."""
    if rules.scoped and chunk.scopes[row] != ring.scopes[slot]:
        return False
    length, other = np.int64(chunk.lengths[row]), np.int64(ring.lengths[slot])
    least = rules.similarity * (length + other)
    if 2 * min(length, other) * SIMILARITY_SCALE < least:
        return False
    if max(length, other) > STORED_LENGTH:
        return True
    bound = bag_bound(chunk.bags, row, length, ring.bags, slot, other)
    return 2 * bound * SIMILARITY_SCALE >= least


@kernel(callee=True)
def compare_texts(
    chunk: Chunk, row: int, ring: RingColumns, slot: int, rules: VerifyParams, scratch: Scratch
) -> tuple[int, int, int]:
    """What `compare` returns, for a row and a ring entry that may be alike."""
    length, other = np.int64(chunk.lengths[row]), np.int64(ring.lengths[slot])
    compared = length + other
    least = rules.similarity * compared
    head, other_head = min(length, STORED_LENGTH), min(other, STORED_LENGTH)
    long = max(length, other) > STORED_LENGTH
    if scratch.pattern_row[0] != row:
        set_pattern(scratch.pattern, chunk.chars, chunk.starts[row], head)
        scratch.pattern_row[0] = row
    offset = np.int64(ring.offsets[slot]) * GRANULE
    wide = ring.wides[slot] != 0
    needed = np.int64(0) if long else -(-least // (2 * SIMILARITY_SCALE))
    ends = shared_ends(chunk.chars, chunk.starts[row], head, ring.texts, offset, other_head, wide)
    common = lcs_with_stored(scratch.pattern, head, ring.texts, offset, other_head, wide, ends, needed)
    matched = 2 * np.int64(common)
    status = ALIKE
    if long:
        matched = _estimate(chunk, row, ring, slot, matched, head + other_head, compared)
        status |= ESTIMATED
    if matched * SIMILARITY_SCALE < least:
        return 0, 0, 0
    if rules.pass_same_id and same_id(chunk, row, ring, slot):
        return status | SAME_ID, matched, compared
    if rules.limits.level != OFF:
        _find_tokens(chunk, row, scratch)
        if not long:
            later, words = scratch.differing.later, word_start_at(ring, slot)
            if differ_in_a_number(
                later,
                scratch.word_bits,
                length,
                ring.texts,
                offset,
                words,
                other,
                wide,
                ends[0],
                ends[1],
                scratch.phrases,
            ):
                return status | _NUMBER, matched, compared
        reason, _ = _difference(chunk, row, ring, slot, rules.limits, scratch)
        if reason:
            return status | (reason << REASON_SHIFT), matched, compared
        if not long and signs_differ(np.uint32(chunk.tallies[row]), ring.signs[slot]):
            return status | _SIGN, matched, compared
        if min(length, other) > STORED_LENGTH:
            tally, other_tally = chunk.tallies[row], tally_of(ring, slot)
            if tails_differ(length, tally, other, other_tally, scratch.phrases, scratch.differing):
                return status | _TAIL, matched, compared
        if _cards_differ(chunk, row, ring, slot, rules, scratch):
            return status | _CARD, matched, compared
    return status, matched, compared


@kernel(callee=True)
def same_id(chunk: Chunk, row: int, ring: RingColumns, slot: int) -> bool:
    """Whether the row and the entry both have an id, and the same one."""
    return chunk.ids[row] != np.uint64(0) and chunk.ids[row] == ring.ids[slot]


@kernel(callee=True)
def _estimate(
    chunk: Chunk,
    row: int,
    ring: RingColumns,
    slot: int,
    head_matched: int,
    head_compared: int,
    compared: int,
) -> int:
    """Twice the estimated LCS of two whole bodies, at least one of them longer than STORED_LENGTH.

    If edits stand together in blocks, the share of common 4-grams is a lower bound of the similarity.
    Scattered edits destroy more 4-grams, so then the square root of the share is the better estimate. The
    heads show which case it is. Different heads mean scattered edits; then the square root is used, but not
    more than the exact similarity of the heads. Equal heads prove nothing about the rest, so the lower
    estimate is used, and in doubt the message is kept.
    4-grams do not show their order. So the result has a greatest value: what the heads have in common, plus
    all characters outside both heads. An estimate never says that two bodies are equal.
    """
    if chunk.lengths[row] < SKETCH_FROM or ring.lengths[slot] < SKETCH_FROM:
        return head_matched
    stored = min(np.int64(ring.lengths[slot]), STORED_LENGTH)
    sketch_start = np.int64(ring.offsets[slot]) * GRANULE + (stored * 2 if ring.wides[slot] else stored)
    sketch = chunk.sketch_rows[row]
    equal = 0
    for j in range(SKETCH_UNITS):
        unit = ring.texts[sketch_start + j]
        equal += np.uint8(unit & np.uint16(255)) == chunk.sketches[sketch, 2 * j]
        equal += np.uint8(unit >> np.uint16(8)) == chunk.sketches[sketch, 2 * j + 1]
    share = _WHOLE[equal]
    head_share = head_matched * SIMILARITY_SCALE // head_compared
    if head_share < SIMILARITY_SCALE:
        share = max(share, min(head_share, _SCATTERED[equal]))
    share = min(share, SIMILARITY_SCALE - 1)
    most = head_matched + 2 * (compared - head_compared)
    return min(share * compared // SIMILARITY_SCALE, most)


@kernel(callee=True)
def _cards_differ(
    chunk: Chunk, row: int, ring: RingColumns, slot: int, rules: VerifyParams, scratch: Scratch
) -> bool:
    """Whether both messages contain a shared card (a poll or an article), and the words before it differ.

    They differ if the two parts of the bodies before the cards are not similar enough.
    """
    own = np.int64(chunk.owns[row])
    if own < 0 or ring.owns[slot] == NO_CARD:
        return False
    own = min(own, STORED_LENGTH)
    other = np.int64(ring.owns[slot])
    offset = np.int64(ring.offsets[slot]) * GRANULE
    wide = ring.wides[slot] != 0
    ends = shared_ends(chunk.chars, chunk.starts[row], own, ring.texts, offset, other, wide)
    common = lcs_with_stored(scratch.pattern, own, ring.texts, offset, other, wide, ends, ZERO)
    if min(own, other) < MIN_NEAR_LENGTH:
        return common < max(own, other)
    return 2 * common * SIMILARITY_SCALE < rules.similarity * (own + other)


@kernel(callee=True, inlined=True)
def _find_tokens(chunk: Chunk, row: int, scratch: Scratch) -> None:
    """Find the tokens of a row, once for all its candidates."""
    if scratch.token_row[0] == row:
        return
    scratch.token_row[0] = row
    later, start, length = scratch.differing.later, chunk.starts[row], np.int64(chunk.lengths[row])
    head = min(length, STORED_LENGTH)
    # One loop for each column: LLVM does not vectorise a loop that copies both.
    for j in range(head):
        later.chars[j] = chunk.chars[start + j]
    for j in range(head):
        later.word_starts[j] = chunk.word_starts[start + j]
    tokenize(later, head, length > head, scratch.phrases)
    pack_flags(later.word_starts[:head], scratch.word_bits[: (head + 15) >> 4])


@kernel(callee=True)
def _difference(
    chunk: Chunk, row: int, ring: RingColumns, slot: int, limits: Differences, scratch: Scratch
) -> tuple[int, int]:
    """(number of the `Rule` that keeps both apart, or 0; number of the run that decides, or -1)

    A run is one place where the two bodies differ.
    """
    _find_tokens(chunk, row, scratch)
    earlier = scratch.differing.earlier
    other = np.int64(ring.lengths[slot])
    head = min(other, STORED_LENGTH)
    offset = np.int64(ring.offsets[slot]) * GRANULE
    wide = ring.wides[slot] != 0
    words = word_start_at(ring, slot)
    if wide:
        for j in range(head):
            earlier.chars[j] = stored_char(ring.texts, offset, j, wide)
    else:
        for j in range(head):
            earlier.chars[j] = ring.texts[offset + j]
    for block in range((head + 15) >> 4):
        bits = ring.texts[words + block]
        for k in range(16):
            earlier.word_starts[16 * block + k] = (bits >> np.uint16(k)) & np.uint16(1)
    tokenize(earlier, head, other > head, scratch.phrases)
    return difference(scratch.phrases, limits, scratch.differing)


@kernel(callee=True)
def write_detail(
    chunk: Chunk,
    row: int,
    ring: RingColumns,
    slot: int,
    limits: Differences,
    scratch: Scratch,
    detail: NDArray[np.uint32],
) -> None:
    """Write the text of the entry and of the row at the one place that keeps them apart, if there is one.

    detail: uint32[2, room], zeros; [0] is for the entry, [1] for the row
    """
    _, number = _difference(chunk, row, ring, slot, limits, scratch)
    if number >= 0:
        run = scratch.differing.alignment.runs[number]
        write_tokens(scratch.differing.earlier, run[2], run[3], detail[0])
        write_tokens(scratch.differing.later, run[0], run[1], detail[1])


@kernel(callee=True)
def same_text(chunk: Chunk, row: int, ring: RingColumns, slot: int) -> bool:
    """Whether a row and a ring entry with the same digest tag really have the same stored text.

    So two different texts that somebody made with the same digest do not count as copies. Of a long body,
    only the first STORED_LENGTH characters are stored and compared.
    """
    if chunk.lengths[row] != ring.lengths[slot]:
        return False
    stored = min(np.int64(abs(chunk.lengths[row])), STORED_LENGTH)
    start = chunk.starts[row]
    offset = np.int64(ring.offsets[slot]) * GRANULE
    wide = ring.wides[slot] != 0
    for j in range(stored):  # noqa: SIM110
        if stored_char(ring.texts, offset, j, wide) != chunk.chars[start + j]:
            return False
    return True


@kernel(callee=True)
def first_meeting(seen: NDArray[np.uint64], row: int, kept_index: int) -> bool:
    """Note in `seen` that a candidate is compared with this row. returns: False if it was noted before"""
    key = (np.uint64(row + 1) << np.uint64(32)) | np.uint64(kept_index & 0xFFFFFFFF)
    place = kept_index & 1023
    if seen[place] == key:
        return False
    seen[place] = key
    return True
