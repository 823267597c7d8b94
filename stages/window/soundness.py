"""Checks of a window's memory that comes from a file, before kernels take it: they check no bounds.

A checksum says that a file is what somebody wrote, and not who it was. So every number that becomes an
address, a length or the next step of a walk is compared with its bounds once, when the file is read. Any
value of the others is harmless:
- an entry of a bucket names a message by 24 bits, and counts only if that message is inside the segment;
- tags, ids, scopes, SimHashes, part hashes, bags and times are compared, and nothing else;
- characters are compared or hashed, and tables are asked only for those that they have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.contract import NO_TIME, SKETCH_FROM, STORED_LENGTH
from twinsieve.stages.errors import DamagedError
from twinsieve.stages.window.chains import Chains
from twinsieve.stages.window.ring import GRANULE, HEAD, KEPT, NO_CARD, OLDEST, SKETCH_UNITS, TALLY_UNITS

MOST_KEPT = 1 << 62
"""Kept indices are smaller. Times lie between this and its negative, so that differences fit 64 bits."""

_AT_ONCE = 1 << 16
_INT32_MIN = np.iinfo(np.int32).min


def check_numbers(low: int, high: int, counters: NDArray[Any]) -> None:
    """Check the numbers of the oldest kept message and of the next one, and saved counters (`Ring`). raises:
    DamagedError"""
    if not 0 <= low <= high < MOST_KEPT:
        raise DamagedError(f"kept messages are numbered from {low} to {high}")
    if counters.dtype != np.int64 or counters.shape != (5,):
        raise DamagedError(f"counters are {counters.dtype}{list(counters.shape)}, not int64[5]")
    times = counters[[2, 3]]
    if (((times <= -MOST_KEPT) | (times >= MOST_KEPT)) & (times != NO_TIME)).any():
        raise DamagedError(f"stream times are {times.tolist()}")


def check_range(first: int, end: int, messages: int, most: int) -> None:
    """Check the kept indices of a segment for `messages` messages, `most` at most. raises: DamagedError"""
    if not (1 <= messages <= most and 0 <= first <= end <= first + messages and end < MOST_KEPT):
        raise DamagedError(f"a segment for {messages} messages has those from {first} to {end}")


def check_like(name: str, array: Any, own: NDArray[Any]) -> None:
    """Check that an array has dtype and shape of the one whose place it takes. raises: DamagedError"""
    if not isinstance(array, np.ndarray) or array.dtype != own.dtype or array.shape != own.shape:
        raise DamagedError(f"{name} is {_shown(array)}, not {own.dtype}{list(own.shape)}")


def check_texts(records: NDArray[Any], texts: NDArray[Any]) -> None:
    """Check that the text of each record lies inside the texts. raises: DamagedError

    Records that hold no message are zeros, and pass
    """
    if texts.dtype != np.uint16 or texts.ndim != 1 or len(texts) % GRANULE:
        raise DamagedError(f"texts are {_shown(texts)}, not whole granules of uint16")
    for low in range(0, len(records), _AT_ONCE):
        part = records[low : low + _AT_ONCE]
        # The text before a shared card is read by its own length, which a forgotten message keeps.
        lengths, owns = part["length"].astype(np.int64), part["own"].astype(np.int64)
        stored = np.where(lengths == 0, STORED_LENGTH, np.minimum(np.abs(lengths), STORED_LENGTH))
        beyond = (owns > stored) & (owns != NO_CARD)
        own_units = np.where(owns == NO_CARD, 0, owns) << (part["wide"] != 0)
        ends = part["offset"].astype(np.int64) * GRANULE + np.maximum(_units(part), own_units)
        if int(ends.max()) > len(texts) or beyond.any() or int(lengths.min()) == _INT32_MIN:
            raise DamagedError("a text of a kept message is not inside the texts")


def _units(records: NDArray[Any]) -> NDArray[np.int64]:
    """int64[n]: units that the text of each record takes in the arena, with what stands behind it."""
    lengths = records["length"].astype(np.int64)
    stored = np.minimum(np.abs(lengths), STORED_LENGTH)
    units = stored << (records["wide"] != 0)
    units += (stored + 15) >> 4
    units += (lengths >= SKETCH_FROM) * SKETCH_UNITS
    units += (lengths > STORED_LENGTH) * TALLY_UNITS
    return units


def check_arena(records: NDArray[Any], texts: NDArray[Any], head: int) -> None:
    """Check that texts stand one behind the other up to `head`, so that new ones overwrite none of them.

    records: of the messages that the window holds, oldest first; head: granule of the next text
    raises: DamagedError
    """
    size = len(texts) // GRANULE
    if not 0 <= head <= size:
        raise DamagedError(f"the next text is to begin at {head} of {size}")
    if not len(records):
        return
    offsets = records["offset"].astype(np.int64)
    begins = (offsets - offsets[0]) % size
    ends = begins + -(-_units(records) // GRANULE)
    if (ends[:-1] > begins[1:]).any() or ends[-1] > (head - offsets[0]) % size:
        raise DamagedError("texts of kept messages lie across each other")


def check_slots(slots: NDArray[Any], capacity: int) -> None:
    """Check a table of tags (`TagIndex`): slots are those of the ring, and a search ends.

    raises: DamagedError
    """
    cells = len(slots)
    if slots.dtype != np.int32 or slots.ndim != 1 or not cells or cells & (cells - 1):
        raise DamagedError(f"the table of tags is {_shown(slots)}")
    filled = 0
    for low in range(0, cells, _AT_ONCE):
        part = slots[low : low + _AT_ONCE]
        if int(part.min()) < -capacity:
            raise DamagedError("the table of tags names a slot that is not in the ring")
        filled += int(np.count_nonzero(part < 0))
    if filled > capacity or filled == cells:
        raise DamagedError("the table of tags is too full")


def check_counters(counters: NDArray[Any], window: int) -> None:
    """Check the saved counters of a whole window that had this many messages. raises: DamagedError"""
    check_numbers(int(counters[OLDEST]), int(counters[KEPT]), counters)
    if window < 1 or counters[HEAD] < 0:
        raise DamagedError(f"a window of {window} messages, the next text at {counters[HEAD]}")


def check_links(heads: NDArray[Any], links: NDArray[Any], own: Chains, kept: int) -> None:
    """Check chains: each link leads to an older message, so that a walk ends. raises: DamagedError

    own: whose place they take; kept: number of the next kept message
    """
    check_like("heads of chains", heads, own.heads)
    check_like("links of chains", links, own.next)
    tables, slots = links.shape
    # How long ago each slot was taken, and the message behind a link was kept: a number modulo 2 ** 32.
    taken = (np.uint32(kept & 0xFFFFFFFF) - _newest_in(slots, kept)).astype(np.uint32)
    for table in range(tables):
        for ages, after in ((_ages(heads[table], kept), np.uint32(0)), (_ages(links[table], kept), taken)):
            if not ((ages > after) & (ages <= np.uint32(1 << 31))).all():
                raise DamagedError("a chain leads to a message that is not older")


def _ages(links: NDArray[np.uint32], kept: int) -> NDArray[np.uint32]:
    """uint32[n]: how long ago the messages of links were kept, modulo 2 ** 32; a large number for no link."""
    ages = np.uint32(kept & 0xFFFFFFFF) - (links - np.uint32(1))
    return np.where(links == 0, np.uint32(1 << 31), ages)


def _newest_in(slots: int, kept: int) -> NDArray[np.uint32]:
    """uint32[slots]: the kept index that each slot of a ring had last, modulo 2 ** 32."""
    newest = kept - 1
    return ((newest - (newest - np.arange(slots, dtype=np.int64)) % slots) & 0xFFFFFFFF).astype(np.uint32)


def _shown(array: Any) -> str:
    return f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
