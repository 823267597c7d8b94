"""How many transactions the search for refused messages costs, as docs/GUARANTEES.md says."""

from __future__ import annotations

import math

import pytest

from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.pipeline.worker.suspects import Suspects

AT = Partition("posts", 0)
END, MOST = 3000, 2000


@pytest.mark.parametrize("every", [1, 2, 7, 100, 1000])
def test_each_refused_message_costs_a_logarithm_of_refused_transactions(every: int) -> None:
    suspects, begin, refused, largest = Suspects(), 0, 0, 1
    found: set[int] = set()
    while begin < END:
        rows = range(begin, min(END, begin + min(MOST, suspects.rows(AT))))
        found |= suspects.of(AT).keys()
        if any(at % every == 0 and at not in found for at in rows):
            refused, largest = refused + 1, max(largest, len(rows))
            if suspects.refused(AT, rows, "out", "no", is_alone=len(rows) == 1):
                assert refused <= math.ceil(math.log2(largest)) + 2
                refused, largest = 0, 1
        else:
            suspects.passed({AT: Committed(rows.stop)})
            begin = rows.stop
    assert refused == 0
