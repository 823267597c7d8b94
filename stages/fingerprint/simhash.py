"""SimHash of 128 bits, and its least certain bits.

Each feature is hashed to 128 bits, as two numbers of 64 bits (lanes). A bit of the fingerprint is 1 if the
features whose hash has this bit weigh more than the other features; if both weigh the same, the bit is 0.
Sums are integers, so the result depends neither on the order of the features nor on the machine.
source: Charikar 2002; Manku, Jain, Das Sarma 2007 (fingerprints); Lv et al. 2007 (probing of weak bits)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.fingerprint.simhash_tokens import fill_runs, fill_tokens
from twinsieve.stages.intrinsics import cell_of, mix64
from twinsieve.stages.kernel import ZERO, kernel

SIMHASH_BITS = 128

DISTINCT, OCCURRENCES, IDF, POSITION = range(4)
WEIGHTINGS = {"none": DISTINCT, "tf": OCCURRENCES, "tfidf": IDF, "position": POSITION}
"""Number for kernels of each setting of `FeatureConfig.weights`."""

LANE_BITS = 64
_PLANES = 40


class FeatureRules(NamedTuple):
    """Which features a body has, and how much each counts, as numbers for kernels.

    by_words: as for `tokens.fill_tokens`; narrowest, widest: features are all runs of that many tokens
    weighting: DISTINCT, OCCURRENCES, IDF or POSITION; min_features: bodies with fewer have no SimHash
    idf_features: uint64[m], ascending; idf_weights: int64[m + 1], the last one is for all other features
    """

    by_words: bool
    narrowest: int
    widest: int
    weighting: int
    min_features: int
    idf_features: NDArray[np.uint64]
    idf_weights: NDArray[np.int64]


class SimhashColumns(NamedTuple):
    """The columns of `Fingerprints` for a SimHash. Rows without a SimHash are not written."""

    simhashes: NDArray[np.uint64]
    has_simhash: NDArray[np.bool_]
    weak_bits: NDArray[np.uint8]


class _Work(NamedTuple):
    """Memory for one body: its features, their weights, and a copy and a table to find distinct features."""

    features: NDArray[np.uint64]
    weights: NDArray[np.int64]
    copies: NDArray[np.uint64]
    table: NDArray[np.uint64]


@kernel(callee=True)
def keep_distinct(features: NDArray[np.uint64], count: int, table: NDArray[np.uint64]) -> int:
    """Move the distinct features to the front, in the order of their first occurrence. returns: their number

    table: uint64, room for the next power of two ≥ 2 * count
    """
    size = 1
    while size < 2 * count:
        size *= 2
    seen = table[:size]
    seen[:] = np.uint64(0)
    distinct = 0
    has_zero = False
    for i in range(count):
        feature = features[i]
        # 0 marks an empty cell of the table, so `has_zero` stands for a feature that is 0.
        if feature == np.uint64(0):
            is_new = not has_zero
            has_zero = True
        else:
            cell = cell_of(seen, feature)
            is_new = seen[cell] == np.uint64(0)
            seen[cell] = feature
        if is_new:
            features[distinct] = feature
            distinct += 1
    return distinct


@kernel(callee=True)
def _added(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """(low, high) binary digit of a + b + c, for each of the 64 bits at once."""
    return a ^ b ^ c, (a & b) | (c & (a | b))


@kernel(callee=True)
def _count(planes: NDArray[np.uint64], ones: np.uint64, digit: int) -> None:
    """Add 2 ** digit to those of 64 counters whose bit in `ones` is set.

    planes[d]: binary digit d of all counters
    """
    while ones:
        carried = planes[digit] & ones
        planes[digit] ^= ones
        ones = carried
        digit += 1


@kernel(callee=True, allocates=True)
def sum_equal(
    features: NDArray[np.uint64], count: int, seed: np.uint64, sums: NDArray[np.int64], lane: int
) -> None:
    """Write the 64 sums of one lane if each feature has the weight 1.

    It counts all 64 bits at once, as binary counters with one 64-bit number (plane) for each digit. Eight
    features pass seven full adders (Harley-Seal). This is 6 times as fast as adding bit by bit.
    """
    planes = np.zeros(_PLANES, np.uint64)
    ones = np.uint64(0)
    twos = np.uint64(0)
    fours = np.uint64(0)
    whole = count - count % 8
    for k in range(0, whole, 8):
        ones, twos_a = _added(ones, mix64(features[k] + seed), mix64(features[k + 1] + seed))
        ones, twos_b = _added(ones, mix64(features[k + 2] + seed), mix64(features[k + 3] + seed))
        twos, fours_a = _added(twos, twos_a, twos_b)
        ones, twos_a = _added(ones, mix64(features[k + 4] + seed), mix64(features[k + 5] + seed))
        ones, twos_b = _added(ones, mix64(features[k + 6] + seed), mix64(features[k + 7] + seed))
        twos, fours_b = _added(twos, twos_a, twos_b)
        fours, eights = _added(fours, fours_a, fours_b)
        _count(planes, eights, ZERO + 3)
    planes[0] = ones
    planes[1] = twos
    planes[2] = fours
    for k in range(whole, count):
        _count(planes, mix64(features[k] + seed), ZERO)
    lane_sums = sums[lane * LANE_BITS : (lane + 1) * LANE_BITS]
    lane_sums[:] = -count
    digit = 0
    while count >> digit:
        plane = planes[digit]
        for b in range(LANE_BITS):
            lane_sums[b] += np.int64((plane >> np.uint64(b)) & np.uint64(1)) << (digit + 1)
        digit += 1


@kernel
def add_bits(hashed: np.uint64, weight: int, sums: NDArray[np.int64], lane: int) -> None:
    """Add one feature to the 64 sums of a lane: its weight where its hash has a 1, else minus its weight."""
    lane_sums = sums[lane * LANE_BITS : (lane + 1) * LANE_BITS]
    for b in range(LANE_BITS):
        lane_sums[b] += (np.int64((hashed >> np.uint64(b)) & np.uint64(1)) * 2 - 1) * weight


@kernel
def bits_of(sums: NDArray[np.int64], lane: int) -> np.uint64:
    """The 64 bits of a lane: 1 where the sum is above 0."""
    bits = np.uint64(0)
    for b in range(LANE_BITS):
        bits |= np.uint64(sums[lane * LANE_BITS + b] > 0) << np.uint64(b)
    return bits


@kernel(callee=True)
def sum_weighted(
    features: NDArray[np.uint64],
    weights: NDArray[np.int64],
    start: int,
    end: int,
    seed: np.uint64,
    sums: NDArray[np.int64],
    lane: int,
) -> None:
    """Write the 64 sums of one lane over features[start:end], each with its weight."""
    sums[lane * LANE_BITS : (lane + 1) * LANE_BITS] = 0
    for k in range(start, end):
        hashed = mix64(features[k] + seed)
        add_bits(hashed, weights[k], sums, lane)


@kernel(callee=True)
def read_sums(
    sums: NDArray[np.int64],
    row: int,
    columns: SimhashColumns,
    order: NDArray[np.int64],
) -> None:
    """Write the SimHash and the weak bits of a row from its 128 sums. order: int64[key_bits], scratch"""
    columns.has_simhash[row] = True
    key_bits = len(order)
    for lane in range(2):
        columns.simhashes[row, lane] = bits_of(sums, lane)
    tables, weak = columns.weak_bits.shape[1:]
    for table in range(tables):
        first = table * SIMHASH_BITS // tables
        for j in range(key_bits):
            # Sort key: the certainty, then the number of the bit, so of equally certain bits the lowest wins.
            order[j] = abs(sums[(first + j) % SIMHASH_BITS]) * 256 + j
        for place in range(weak):
            weakest = order[0]
            for j in range(1, key_bits):
                weakest = min(weakest, order[j])
            bit = weakest % 256
            columns.weak_bits[row, table, place] = bit
            order[bit] = np.iinfo(np.int64).max


@kernel(callee=True)
def idf_of(feature: np.uint64, idf_features: NDArray[np.uint64], idf_weights: NDArray[np.int64]) -> int:
    """Weight of a feature in a sorted table; the last weight if the feature is not in the table."""
    place = np.searchsorted(idf_features, feature)
    is_listed = place < len(idf_features) and idf_features[place] == feature
    return int(idf_weights[place if is_listed else len(idf_features)])


@kernel(callee=True)
def write_features(tokens: NDArray[np.uint64], token_count: int, rules: FeatureRules, work: _Work) -> int:
    """Write the features to `work`; with the weightings IDF and POSITION also their weights.

    returns: number of features, 0 if the body has too few distinct ones
    """
    features, weights = work.features, work.weights
    count = ZERO
    for width in range(rules.narrowest, rules.widest + 1):
        runs = fill_runs(tokens, token_count, width, features, count)
        if rules.weighting == POSITION:
            for i in range(runs):
                weights[count + i] = 4 - 4 * i // runs
        count += runs
    if rules.weighting == DISTINCT:
        count = keep_distinct(features, count, work.table)
    if rules.min_features > 1:
        for i in range(count):
            work.copies[i] = features[i]
        if keep_distinct(work.copies, count, work.table) < rules.min_features:
            return ZERO
    if rules.weighting == IDF:
        for i in range(count):
            weights[i] = idf_of(features[i], rules.idf_features, rules.idf_weights)
    return count


@kernel(callee=True)
def _longest(starts: NDArray[np.int64], exact_only: NDArray[np.bool_]) -> int:
    """Characters of the longest body that has features, at least 1."""
    longest = ZERO + 1
    for row in range(len(starts) - 1):
        if not exact_only[row]:
            longest = max(longest, starts[row + 1] - starts[row])
    return longest


@kernel(callee=True, allocates=True)
def _new_work(rules: FeatureRules, longest: int) -> _Work:
    """Memory for bodies of up to this number of characters."""
    most = longest * (rules.widest - rules.narrowest + 1)
    weighted = rules.weighting in (IDF, POSITION)
    counted = rules.min_features > 1
    return _Work(
        np.empty(most, np.uint64),
        np.empty(most if weighted else 0, np.int64),
        np.empty(most if counted else 0, np.uint64),
        np.empty(4 * most if rules.weighting == DISTINCT or counted else 0, np.uint64),
    )


@kernel(allocates=True)
def fill_simhashes(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    word_starts: NDArray[np.uint8],
    exact_only: NDArray[np.bool_],
    rules: FeatureRules,
    seeds: NDArray[np.uint64],
    key_bits: int,
    columns: SimhashColumns,
) -> None:
    """Write `columns` (SimHash, whether there is one, weak bits) for all near rows.

    seeds: uint64[3], for the tokens and for both lanes
    """
    longest = _longest(starts, exact_only)
    weighted = rules.weighting in (IDF, POSITION)
    tokens = np.empty(longest, np.uint64)
    work = _new_work(rules, longest)
    sums = np.empty(SIMHASH_BITS, np.int64)
    order = np.empty(key_bits, np.int64)
    for row in range(len(starts) - 1):
        if exact_only[row]:
            continue
        token_count = fill_tokens(
            chars, word_starts, starts[row], starts[row + 1], rules.by_words, seeds[0], tokens
        )
        count = write_features(tokens, token_count, rules, work)
        if count == 0:
            continue
        for lane in range(2):
            if weighted:
                sum_weighted(work.features, work.weights, ZERO, count, seeds[lane + 1], sums, lane)
            else:
                sum_equal(work.features, count, seeds[lane + 1], sums, lane)
        read_sums(sums, row, columns, order)


@kernel(allocates=True)
def fill_distinct_features(
    chars: NDArray[np.uint32],
    starts: NDArray[np.int64],
    word_starts: NDArray[np.uint8],
    exact_only: NDArray[np.bool_],
    rules: FeatureRules,
    seed: np.uint64,
    features: NDArray[np.uint64],
    weights: NDArray[np.int64],
    feature_starts: NDArray[np.int64],
) -> None:
    """Write the distinct features of all near rows with their weights.

    seed: for the hashes of tokens
    features, weights: room for all features of all rows; row i gets feature_starts[i]…[i + 1] of them, in the
    order of their first occurrence, each with the sum of the weights of its occurrences
    """
    longest = _longest(starts, exact_only)
    weighted = rules.weighting in (IDF, POSITION)
    tokens = np.empty(longest, np.uint64)
    work = _new_work(rules, longest)
    table, places = np.empty(4 * len(work.features), np.uint64), np.empty(4 * len(work.features), np.int64)
    end = ZERO
    for row in range(len(starts) - 1):
        if not exact_only[row]:
            token_count = fill_tokens(
                chars, word_starts, starts[row], starts[row + 1], rules.by_words, seed, tokens
            )
            count = write_features(tokens, token_count, rules, work)
            cells = ZERO + 1
            while cells < 2 * count:
                cells *= 2
            keys = table[:cells]
            keys[:] = np.uint64(0)
            place_of_zero = ZERO - 1
            for i in range(count):
                feature = work.features[i]
                weight = work.weights[i] if weighted else ZERO + 1
                # 0 is an empty cell of the table.
                if feature == np.uint64(0):
                    is_new = place_of_zero < 0
                    if is_new:
                        place_of_zero = end
                    place = place_of_zero
                else:
                    cell = cell_of(keys, feature)
                    is_new = keys[cell] == np.uint64(0)
                    if is_new:
                        keys[cell] = feature
                        places[cell] = end
                    place = places[cell]
                if is_new:
                    features[end] = feature
                    weights[end] = ZERO
                    end += 1
                weights[place] += weight
        feature_starts[row + 1] = end


@kernel(allocates=True)
def fill_packed_simhashes(
    features: NDArray[np.uint64],
    weights: NDArray[np.int64],
    feature_starts: NDArray[np.int64],
    seeds: NDArray[np.uint64],
    key_bits: int,
    columns: SimhashColumns,
) -> None:
    """Write `columns` like `fill_simhashes`, from features that are already hashed.

    The features of row i are features[feature_starts[i]:feature_starts[i + 1]]; a row without any is not
    written.
    """
    sums = np.empty(SIMHASH_BITS, np.int64)
    order = np.empty(key_bits, np.int64)
    for row in range(len(feature_starts) - 1):
        start = feature_starts[row]
        end = feature_starts[row + 1]
        if start == end:
            continue
        for lane in range(2):
            sum_weighted(features, weights, start, end, seeds[lane + 1], sums, lane)
        read_sums(sums, row, columns, order)
