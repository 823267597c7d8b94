"""Arrays whose memory the machine gives page by page, at the first write to each page.

Linux gives the large arrays of NumPy in pages of 2 MiB. Random access to a full table is faster so, as the
processor finds more of the table by one entry of its page cache (TLB). But a single write takes 2 MiB: ten
kept messages, at random places of a table of 206 MB, took 190 MB of memory and the time to clear them. In
pages of 4 KiB they take what they touch.

>>> zeros(3, np.int32, small_bytes=8).tolist()
[0, 0, 0]
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE_PAGE_BYTES = 2 << 20

# Linux alone has both kinds of pages; elsewhere the machine chooses, which changes no content.
_SMALL: int | None = getattr(mmap, "MADV_NOHUGEPAGE", None)
_LARGE: int | None = getattr(mmap, "MADV_HUGEPAGE", None)


def zeros(count: int, dtype: type[np.generic], *, small_bytes: int) -> NDArray[Any]:
    """`count` zeros, aligned to a page; the first `small_bytes` in small pages, the others in large ones.

    The machine chooses the pages; the content does not depend on them. raises: MemoryError
    """
    size = max(1, count) * np.dtype(dtype).itemsize
    small = -(-min(small_bytes, size) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        memory = mmap.mmap(-1, size + LARGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size:,} bytes cannot be allocated ({error.strerror})") from error
    # Large pages begin at multiples of their size; the first one must begin behind the small ones.
    whole = np.frombuffer(memory, np.uint8)
    start = -(whole.ctypes.data + small) % LARGE_PAGE_BYTES
    _advise(memory, _SMALL, start, small)
    _advise(memory, _LARGE, start + small, size - small)
    array: NDArray[Any] = whole[start : start + size].view(dtype)[:count]
    return array


def _advise(memory: mmap.mmap, advice: int | None, start: int, size: int) -> None:
    # A machine without large pages refuses the advice.
    with suppress(OSError):
        if advice is not None and size > 0:
            memory.madvise(advice, start, size)
