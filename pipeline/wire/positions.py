"""Positions of messages in the form that the sieve uses: topic number, partition and offset in one int64.

bits 63: 0 | 62…56 topic number | 55…40 partition | 39…0 offset. The index numbers topics in the order in
which they first appear in the fingerprint log. A topic that was created again gets a new number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.errors import StateError

_OFFSET_BITS = 40
_PARTITION_BITS = 16
MAX_TOPICS = 1 << 7
MAX_PARTITIONS = 1 << _PARTITION_BITS
MAX_OFFSETS = 1 << _OFFSET_BITS


class Position(NamedTuple):
    """The parts of a packed position."""

    topic_number: int
    partition: int
    offset: int


def beyond_positions(partition: int, end: int) -> str | None:
    """Why offsets of a partition up to `end` cannot be recorded; None if they can.

    >>> beyond_positions(3, MAX_OFFSETS)
    >>> beyond_positions(3, MAX_OFFSETS + 1)
    'offsets end at 1099511627777, beyond the 1099511627776 that can be recorded'
    """
    if not 0 <= partition < MAX_PARTITIONS:
        return f"partition {partition} is beyond the {MAX_PARTITIONS} that can be recorded"
    if end > MAX_OFFSETS:
        return f"offsets end at {end}, beyond the {MAX_OFFSETS} that can be recorded"
    return None


def pack_positions(topic_number: int, partition: int, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Packed positions for offsets of one partition, as int64[n].

    raises: StateError if a number does not fit into its bits. The ledger refuses such blocks of workers
        before this function is called

    >>> unpack_position(int(pack_positions(1, 3, np.array([50456]))[0]))
    Position(topic_number=1, partition=3, offset=50456)
    """
    if topic_number >= MAX_TOPICS:
        raise StateError(
            f"more than {MAX_TOPICS} input topics since this app began; choose another name for `app`; the "
            "new app begins with empty windows"
        )
    beyond = beyond_positions(partition, int(offsets[-1]) + 1 if len(offsets) else 0)
    if beyond is not None:
        raise StateError(beyond)
    base = (topic_number << (_OFFSET_BITS + _PARTITION_BITS)) | (partition << _OFFSET_BITS)
    return cast("NDArray[np.int64]", offsets.astype(np.int64) | np.int64(base))


def unpack_position(packed: int) -> Position:
    """The parts of this packed position."""
    return Position(*source_parts(packed >> _OFFSET_BITS), packed & (MAX_OFFSETS - 1))


def sources_and_offsets(packed: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Packed positions as (int64[n]: topic number and partition in one; int64[n]: offsets)."""
    return packed >> _OFFSET_BITS, packed & np.int64(MAX_OFFSETS - 1)


def source_parts(source: int) -> tuple[int, int]:
    """Topic number and partition of a source of `sources_and_offsets`."""
    return source >> _PARTITION_BITS, source & (MAX_PARTITIONS - 1)


def first_beyond(topics: int) -> int:
    """The smallest number that is greater than every packed position of this many topics."""
    return topics << (_OFFSET_BITS + _PARTITION_BITS)


def topic_numbers(packed: NDArray[np.int64]) -> list[int]:
    """Distinct topic numbers of packed positions; negative entries, such as NO_LEADER, are left out."""
    return [int(number) for number in np.unique(packed[packed >= 0] >> (_OFFSET_BITS + _PARTITION_BITS))]


def renumber(packed: NDArray[np.int64], numbers: Mapping[int, int]) -> None:
    """Replace topic numbers of packed positions in place; negative positions stay as they are.

    numbers: old topic number → new topic number

    >>> packed = pack_positions(1, 3, np.array([50456]))
    >>> renumber(packed, {1: 2})
    >>> unpack_position(int(packed[0])).topic_number
    2
    """
    shift = _OFFSET_BITS + _PARTITION_BITS
    before = packed >> shift
    for old, new in numbers.items():
        packed[before == old] += np.int64(new - old) << np.int64(shift)
