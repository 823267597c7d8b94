"""What `lint --at` predicts is what random fingerprints show, and tables and scan change places where it says."""

from __future__ import annotations

import numpy as np
import pytest

from twinsieve.stages.near.hamming import table_masks
from twinsieve.stages.pairs.cost import costs, scan_is_faster_below, scan_ns


@pytest.mark.parametrize(("blocks", "k"), [(4, 3), (5, 3), (4, 2), (9, 7), (3, 1)])
def test_candidates_are_as_many_as_predicted(blocks: int, k: int) -> None:
    random = np.random.default_rng(blocks)
    stored, queries = (random.integers(0, 2**64, size, dtype=np.uint64) for size in (30_000, 20_000))
    masks = table_masks(blocks, k)
    found = 0
    for mask in masks:
        values, counts = np.unique(stored & mask, return_counts=True)
        held = dict(zip(values.tolist(), counts.tolist(), strict=True))
        found += sum(held.get(key, 0) for key in (queries & mask).tolist())
    predicted = costs(len(stored), k, masks)["tables"]
    assert predicted.lookups == len(masks)
    expected = predicted.candidates * len(queries)
    # Within a fifth, or five standard deviations of so few.
    assert abs(found - expected) <= max(expected / 5, 5 * expected**0.5)


def test_sorted_copies_have_the_candidates_of_tables_of_the_same_blocks() -> None:
    for k in range(1, 8):
        found = costs(10**6, k, table_masks(k + 1, k))
        assert found["sorted"].candidates == pytest.approx(found["tables"].candidates)
        assert found["sorted"].lookups == found["tables"].lookups == k + 1


def test_tables_and_scan_take_as_long_where_they_change_places() -> None:
    masks = table_masks(5, 3)
    kept = scan_is_faster_below(masks)
    assert kept is not None
    assert costs(kept, 3, masks)["tables"].ns == pytest.approx(scan_ns(kept), rel=0.01)
