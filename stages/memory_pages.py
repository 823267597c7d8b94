"""Arrays of zeros whose memory the operating system assigns page by page, at the first write to each page.

Linux backs large NumPy arrays with pages of 2 MiB. Random access to a full table is faster with large pages,
because one entry of the processor's page cache (TLB) covers more of the table. But the first write to a page
takes all of its memory: ten kept messages at random places of a table of 206 MB took 190 MB, and the time to
clear it. With pages of 4 KiB, they take little more than the bytes that they write.

>>> zeros(3, np.int32, small_bytes=8).tolist()
[0, 0, 0]
"""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGE_PAGE_BYTES = 2 << 20
_ASSIGNING = 2
_WORTH_THREADS = 1 << 26
"""Threads that have memory assigned, and bytes from which on that is worth them."""

# Only Linux has both sizes of pages. Other systems choose the size; the content of an array is the same.
_SMALL: int | None = getattr(mmap, "MADV_NOHUGEPAGE", None)
_LARGE: int | None = getattr(mmap, "MADV_HUGEPAGE", None)


def zeros(count: int, dtype: Any, *, small_bytes: int) -> NDArray[Any]:
    """`count` zeros, aligned to a page: the first `small_bytes` in small pages, the rest in large pages.

    The page sizes are a request, which the system may ignore. raises: MemoryError
    """
    size = max(1, count) * np.dtype(dtype).itemsize
    small = -(-min(small_bytes, size) // mmap.PAGESIZE) * mmap.PAGESIZE
    try:
        memory = mmap.mmap(-1, size + LARGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size:,} bytes cannot be allocated ({error.strerror})") from error
    # A large page begins at a multiple of its size. So the array starts where its small pages end at such a
    # multiple.
    whole = np.frombuffer(memory, np.uint8)
    start = -(whole.ctypes.data + small) % LARGE_PAGE_BYTES
    _advise(memory, _SMALL, start, small)
    _advise(memory, _LARGE, start + small, size - small)
    array: NDArray[Any] = whole[start : start + size].view(dtype)[:count]
    return array


def _advise(memory: mmap.mmap, advice: int | None, start: int, size: int) -> None:
    # A system without large pages refuses the advice with an OSError.
    with suppress(OSError):
        if advice is not None and size > 0:
            memory.madvise(advice, start, size)


def assign(array: NDArray[Any]) -> None:
    """Have the system assign all memory of an array of zeros now, with several threads if it is large."""
    content = array.reshape(-1).view(np.uint8)
    if content.nbytes < _WORTH_THREADS:
        _write_zeros(content[:: mmap.PAGESIZE])
        return
    with ThreadPoolExecutor(_ASSIGNING) as threads:
        for part in np.array_split(content, _ASSIGNING):
            threads.submit(_write_zeros, part[:: mmap.PAGESIZE])


def _write_zeros(places: NDArray[Any]) -> None:
    # NumPy lets other threads run meanwhile.
    places[:] = 0
