"""Counts the kept messages that the candidate index hardly finds any more: newer ones filled their buckets.

A bucket holds its eight newest entries. A message that the window still holds may have lost its place in
most of its buckets; a duplicate of it is then probably not found. The count is read off the buckets, so it
needs no state of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.kernel import ZERO, kernel
from twinsieve.stages.window.buckets import INDEX_MASK, WAYS, Buckets, newest_place, older_place
from twinsieve.stages.window.ring import RingColumns

LEFT_SHARE = 8
"""A message counts as pushed out if less than 1/8 of its bands still hold it: three of 28 at most. A copy
that is .85 alike shares a fifth of its bands with its original, so most likely none of these."""


class PushedOut:
    """Counts pushed-out messages, a few bands a call, so that no call takes long.

    messages: how many the last whole count found; 0 before it
    """

    def __init__(self) -> None:
        self.messages = 0
        self._left = np.zeros(0, np.uint8)
        self._band = 0
        self._kept = 0

    def count(self, ring: RingColumns, buckets: Buckets, bands: int, oldest: int, kept: int) -> bool:
        """Read the next bands, no more than `bands`; after the last one, set `messages` and begin anew.

        oldest, kept: kept index of the ring's oldest message inside the window, and of the next one
        returns: whether that was the last band
        """
        if self._band == 0:
            self._kept = kept
            self._left = np.zeros(kept - oldest, np.uint8)
        end = min(self._band + bands, buckets.bands)
        _count_entries(buckets, self._band, end, kept, self._kept, self._left)
        self._band = end % buckets.bands
        if self._band == 0:
            self.messages = int(_count_lost(ring, self._kept, kept, self._left, buckets.bands))
        return self._band == 0


@kernel
def _count_entries(
    buckets: Buckets, first_band: int, end_band: int, kept: int, kept_before: int, left: NDArray[np.uint8]
) -> None:
    """Add up, for each message, in how many of the bands its entry still stands.

    kept: messages kept so far; kept_before: the same when the count began; left: uint8[n], by age then
    """
    newer = kept - kept_before
    for bucket in range(first_band * buckets.band_buckets, end_band * buckets.band_buckets):
        place = newest_place(buckets, bucket * WAYS)
        for _ in range(WAYS):
            entry = buckets.entries[place]
            place = older_place(buckets, place)
            if entry == np.uint64(0):
                # A bucket fills from its front.
                break
            age = ((kept - 1 - np.int64(entry & np.uint64(INDEX_MASK))) & INDEX_MASK) - newer
            if 0 <= age < len(left):
                left[age] += left[age] < 255


@kernel
def _count_lost(
    ring: RingColumns, kept_before: int, kept: int, left: NDArray[np.uint8], bands: int
) -> np.int64:
    """Number of messages of the near stage that less than 1 / LEFT_SHARE of the bands still hold."""
    lost = ZERO
    for age in range(len(left) - (kept - kept_before)):
        slot = (kept_before - 1 - age) % len(ring.lengths)
        lost += ring.lengths[slot] > 0 and np.int64(left[age]) * LEFT_SHARE < bands
    return np.int64(lost)
