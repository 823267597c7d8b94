"""Lines in one piece of bytes against the same lines in a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.stages.rows.lines import Lines

_LISTS = st.lists(st.binary(max_size=5).map(lambda line: line.replace(b"\n", b"")), max_size=8)


def packed(lines: list[bytes]) -> Lines:
    return Lines.of(b"".join(line + b"\n" for line in lines))


@given(_LISTS, st.slices(8))
def test_they_are_the_lines_of_the_list(lines: list[bytes], part: slice) -> None:
    part = slice(part.start, part.stop)
    for found, expected in ((packed(lines), lines), (packed(lines)[part], lines[part])):
        assert [*found] == [found[number] for number in range(len(found))] == expected
        assert found.piece() == b"".join(line + b"\n" for line in expected)
        assert found.sizes.tolist() == [len(line) + 1 for line in expected]
        assert found.longest == max(map(len, expected), default=0)
        assert found.least_first_byte() == min((line[:1] or b"\n" for line in expected), default=b"\xff")[0]


@given(_LISTS, st.data())
def test_picked_lines_are_in_pieces_of_neighbours(lines: list[bytes], data: st.DataObject) -> None:
    some = data.draw(st.lists(st.sampled_from(range(len(lines))), unique=True).map(sorted)) if lines else []
    pieces = packed(lines).picked(some)
    assert b"".join(piece + b"\n" for piece in pieces) == b"".join(lines[number] + b"\n" for number in some)
    assert len(pieces) == sum(number - 1 not in some for number in some)


def test_lines_are_not_cut_in_steps() -> None:
    with pytest.raises(ValueError, match="steps of 2"):
        packed([b"a", b"b"])[::2]
