"""Bytes of kept messages in a segment of the near window, by part, and the largest segment that fits.

The stages know what the longest texts take (`near_bytes`). Here are texts as they usually are: lengths of
bodies are log-normal, so that their mean alone says how many are long.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from twinsieve.pipeline.settings.values import MAX_SEGMENTS, MEAN_CHARACTERS
from twinsieve.stages.contract import MAX_SEGMENT, SKETCH_FROM, STORED_LENGTH, SieveConfig
from twinsieve.stages.judge.near_rules import ring_use
from twinsieve.stages.judge.near_window import near_bytes, segment_count
from twinsieve.stages.window.ring import GRANULE, SKETCH_UNITS, TALLY_UNITS

HOT = ("buckets", "tags")
"""Parts of a sealed segment that each look-up reads (`window.segments.HOT`); the others are read for
candidates alone."""

_TAG_BYTES = 8
"""Bytes of a message in the column of tags, which the table of tags numbers."""
_SPREAD = 0.6
"""Standard deviation of the logarithm of body lengths: between that of posts (0.85) and of longer texts."""

_UNIT = 2
"""Bytes of a unit of the arena."""


class Texts(NamedTuple):
    """Bodies of a mean length. characters: the mean, above 0"""

    characters: float = MEAN_CHARACTERS

    def share_from(self, length: int) -> float:
        """Share of bodies with at least this many characters."""
        return _normal(-self._sigmas(length))

    @property
    def stored(self) -> float:
        """Mean characters that are stored: no more than STORED_LENGTH of a body."""
        shorter = self.characters * _normal(self._sigmas(STORED_LENGTH) - _SPREAD)
        return shorter + STORED_LENGTH * self.share_from(STORED_LENGTH)

    @property
    def sketched(self) -> float:
        """Share of bodies with a sketch."""
        return self.share_from(SKETCH_FROM)

    def _sigmas(self, length: int) -> float:
        """How far a length lies above the median, in standard deviations of the logarithm."""
        median = math.log(self.characters) - _SPREAD**2 / 2
        return (math.log(length) - median) / _SPREAD

    @property
    def arena_bytes(self) -> float:
        """Bytes of a text in the arena of a ring: characters, sketch, word starts, tally, whole granules."""
        units = self.stored + self.stored / 16 + 0.5
        units += self.sketched * SKETCH_UNITS + self.share_from(STORED_LENGTH) * TALLY_UNITS
        return _UNIT * (units + (GRANULE - 1) / 2)


def segment_messages(config: SieveConfig) -> int:
    """Kept messages of a full segment; of the window, if it is not cut."""
    near = config.near
    return near.window.messages if segment_count(config) == 1 else near.segment


def segment_parts(config: SieveConfig, texts: Texts | None) -> dict[str, int]:
    """Bytes of one full segment by part; of the window, if it is not cut.

    texts: None: all of the greatest length
    Parts are those of `near_bytes`, but the column of tags counts to the tags.
    """
    parts, messages = near_bytes(config, 1), segment_messages(config)
    tags = _TAG_BYTES * messages
    parts |= {"ring": parts["ring"] - tags, "tags": parts["tags"] + tags}
    if texts is not None and ring_use(config).text:
        parts["texts"] = round(messages * texts.arena_bytes)
    return parts


def hot_bytes(parts: dict[str, int]) -> int:
    """Bytes of the parts that look-ups read."""
    return sum(parts.get(name, 0) for name in HOT)


def least_memory(config: SieveConfig, texts: Texts) -> int:
    """Usual bytes of what always lies in memory: the open segment. While a sealed one is written to a file,
    for seconds, that lies there too."""
    return sum(segment_parts(config, texts).values())


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


def _normal(sigmas: float) -> float:
    """Share of a normal distribution below this many standard deviations above its mean."""
    return 0.5 * math.erfc(-sigmas / math.sqrt(2))
