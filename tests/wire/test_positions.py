"""Numbers of topics in packed positions."""

from __future__ import annotations

import numpy as np

from twinsieve.pipeline.wire.positions import pack_positions, renumber, unpack_position


def test_topics_may_change_places() -> None:
    """What one process calls 0 another calls 1, and the reverse."""
    packed = np.concatenate([pack_positions(number, 3, np.array([5 + number])) for number in range(3)])
    renumber(packed, {0: 1, 1: 0})
    found = [unpack_position(int(each)) for each in packed]
    assert [each.topic_number for each in found] == [1, 0, 2]
    assert [each.offset for each in found] == [5, 6, 7]
