"""How to cut a near window so that it fits into a memory."""

from __future__ import annotations

from dataclasses import replace

from twinsieve.pipeline.sizing import MAX_SEGMENTS
from twinsieve.pipeline.sizing.kept_bytes import Texts, least_memory
from twinsieve.stages.contract import MAX_SEGMENT, SieveConfig


def largest_segment(config: SieveConfig, memory: int, texts: Texts) -> int | None:
    """The largest round `near.segment` with which what always lies in memory takes at most `memory` bytes.

    None if every segment that cuts this window into at most MAX_SEGMENTS takes more.
    """
    window = config.near.window.messages
    fewest = max(1, -(-window // (MAX_SEGMENTS - 1)))
    low, high = fewest - 1, max(fewest, min(MAX_SEGMENT, window))
    if _fits(config, high, memory, texts):
        return high
    # A table of tags has a power of two of cells, so bytes grow in steps; they never fall.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(config, middle, memory, texts) else (low, middle)
    return max(fewest, _round_below(low)) if low >= fewest else None


def _fits(config: SieveConfig, segment: int, memory: int, texts: Texts) -> bool:
    cut = replace(config, near=replace(config.near, segment=segment))
    return least_memory(cut, texts) <= memory


def _round_below(number: int) -> int:
    """The number with two significant digits, rounded down.

    >>> [_round_below(number) for number in (7, 123, 2_499_999, 16_000_000)]
    [7, 120, 2400000, 16000000]
    """
    unit: int = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit
