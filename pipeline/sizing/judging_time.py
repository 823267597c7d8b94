"""Time to judge a message, by the segments of the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from twinsieve.pipeline.settings.segment_bytes import Texts, segment_messages
from twinsieve.pipeline.sizing.measured import (
    CHARACTERS,
    FIXED_SHARE,
    LOOK_UPS,
    OPEN_CHARACTER_US,
    OPEN_US,
    SEALED_CHARACTER_US,
    SEALED_US,
)
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.near_window import segment_count


def judging_us(config: SieveConfig, texts: Texts) -> float:
    """µs of one thread to judge a message when the near window is full, for `near.method: text`.

    Reading the message and computing its fingerprint are not in it.
    """
    kept, sealed = segment_messages(config), segment_count(config) - 1
    longer = texts.characters - CHARACTERS
    layout = config.layout
    look_ups = layout.bands + (layout.tables << layout.weak)
    by_look_ups = FIXED_SHARE + (1 - FIXED_SHARE) * look_ups / LOOK_UPS
    us = _at(OPEN_US, kept) * by_look_ups + longer * OPEN_CHARACTER_US
    us += sealed * (_at(SEALED_US, kept) * by_look_ups + longer * SEALED_CHARACTER_US)
    return max(us, 0.0)


def _at(measured: Sequence[tuple[int, float]], kept: int) -> float:
    """The value between two measured ones, on the logarithm of kept messages; beyond the last the same slope
    for a tenfold number, and before the first its value.

    >>> [round(_at(((100, 2.0), (1_000, 3.0)), kept), 2) for kept in (10, 100, 316, 1_000, 10_000)]
    [2.0, 2.0, 2.5, 3.0, 4.0]
    """
    if kept <= measured[0][0]:
        return measured[0][1]
    pairs = list(pairwise(measured))
    (low, below), (high, above) = next((pair for pair in pairs if kept <= pair[1][0]), pairs[-1])
    share = math.log(kept / low) / math.log(high / low)
    return below + (above - below) * share
