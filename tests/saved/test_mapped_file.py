"""Arrays in a file are used where they lie; damage is named before they are."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.mapped_file import MappedArrays, map_arrays, write_arrays

_RECORD = np.dtype([("bag", "<u8", (4,)), ("length", "<i4"), ("unused", "u1", (4,))])


def _arrays() -> dict[str, NDArray[Any]]:
    random = np.random.default_rng(3)
    records = np.zeros(1_000, _RECORD)
    records["bag"] = random.integers(0, 1 << 60, (1_000, 4))
    records["length"] = np.arange(1_000)
    return {
        "records": records,
        "texts": random.integers(0, 65_536, 12_345, dtype=np.uint16),
        "nothing": np.zeros(0, np.int64),
        "pairs": np.arange(14, dtype=np.int32).reshape(-1, 2),
    }


def _mapped(path: Path, scheme_id: str = "s") -> MappedArrays:
    read: list[int] = []
    with path.open("rb") as stream:
        mapped = map_arrays(stream.fileno(), str(path), scheme_id, read.append)
    assert sum(read) == sum(array.nbytes for array in _arrays().values())
    return mapped


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "arrays"
    with path.open("wb") as stream:
        write_arrays(stream, "s", {"first": 7}, _arrays())
    return path


def test_what_was_written_is_mapped_at_whole_pages(file: Path) -> None:
    mapped = _mapped(file)
    assert mapped.about == {"first": 7}
    assert list(mapped.arrays) == list(_arrays())
    for name, array in _arrays().items():
        found = mapped.arrays[name]
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)
        assert found.ctypes.data % 4096 == 0
        assert found.flags.c_contiguous
        assert found.flags.writeable
    assert file.stat().st_size % 4096 == 0


def test_a_write_changes_this_process_alone(file: Path) -> None:
    before = file.read_bytes()
    mapped, other = _mapped(file), _mapped(file)
    mapped.arrays["records"]["length"][5] = 0
    assert other.arrays["records"]["length"][5] == 5
    assert file.read_bytes() == before


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_named_or_harms_nothing(
    place: float, bit: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("flipped") / "arrays"
    with path.open("wb") as stream:
        write_arrays(stream, "s", {}, _arrays())
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path.write_bytes(content)
    refused = []
    try:
        mapped = _mapped(path)
    except UnreadableError as error:
        refused.append(str(error))
    else:
        for name, array in _arrays().items():
            assert np.array_equal(mapped.arrays[name], array)
    assert all(str(path) in line and "\n" not in line for line in refused)


@pytest.mark.parametrize("size", [0, 1, 30, 4096, -1, -4097])
def test_a_cut_file_is_named(size: int, file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: size if size >= 0 else len(content) + size])
    if size == -1:
        _mapped(file)  # the last page is padding
        return
    with pytest.raises(UnreadableError, match=r"arrays: .*restore it from a copy"):
        _mapped(file)


def test_another_scheme_and_what_cannot_be_mapped_are_named(file: Path) -> None:
    with pytest.raises(UnreadableError, match="scheme s, not other; restore the right file"):
        _mapped(file, "other")
    with pytest.raises(UnreadableError, match=r"cannot be mapped \(.*\); restore it from a copy"):
        map_arrays(os.pipe()[0], "a pipe", "s", None)


def test_a_map_reserves_no_memory_and_is_read_at_random_where_it_is_not_hot(file: Path) -> None:
    with file.open("rb") as stream:
        mapped = map_arrays(stream.fileno(), str(file), "s", None, hot=["texts"])
    # Blocks such as "7f00-7f10 rw-p … file", lines with sizes, "VmFlags: rd wr mr rr".
    flags_at: dict[range, list[str]] = {}
    place = range(0)
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            start, end = line.split()[0].split("-")
            place = range(int(start, 16), int(end, 16)) if str(file) in line else range(0)
        elif line.startswith("VmFlags:") and place:
            flags_at[place] = line.split()[1:]
    # A system that never promises more memory than it has ignores the first wish.
    is_strict = Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2"
    assert {"nr" in flags for flags in flags_at.values()} == {not is_strict}
    at_random = {
        name: any("rr" in flags for part, flags in flags_at.items() if array.ctypes.data in part)
        for name, array in mapped.arrays.items()
        if array.nbytes
    }
    assert at_random == {"records": True, "texts": False, "pairs": True}
