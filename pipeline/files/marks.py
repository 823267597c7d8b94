"""`RowMark`: the verdict that `--mark` adds to a row. Each format writes it in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.messages.fields import id_text

NAME = "twinsieve"
"""Name of the member or column of a mark, or the beginning of the names of its columns."""


class RowMark(NamedTuple):
    """The verdict of one row, as added to the row; a field that does not apply is None (flags: empty).

    verdict: unique, exact, near, no_text or unreadable
    leader, leader_id, leader_source, leader_line: position, id, input and line of the leader, the kept row
        that this row repeats
    similarity: 0 to 1; distance: bits under the method hamming; shared: hashes in common under the method
        signatures; a dropped row has one of the three
    cluster: position of the leader; for a unique row its own position
    flags: as in the duplicates: estimated, unconfirmed, no_features, cut_short, late
    reason: why a unique row was kept although an earlier kept row is similar, or why a row is unreadable
    apart_from, apart_from_id: position and id of that similar row
    says, apart_from_says: the words in which this row and the similar row differ, if one place decided
    source, line: input and line number of this row
    """

    verdict: str
    leader: int | None = None
    leader_id: object = None
    leader_source: str | None = None
    leader_line: int | None = None
    similarity: float | None = None
    distance: int | None = None
    shared: int | None = None
    cluster: int | None = None
    flags: Sequence[str] = ()
    reason: str | None = None
    apart_from: int | None = None
    apart_from_id: object = None
    says: str | None = None
    apart_from_says: str | None = None
    source: str | None = None
    line: int | None = None

    def with_text_ids(self) -> RowMark:
        """The same mark with its ids as text."""
        return self._replace(leader_id=id_text(self.leader_id), apart_from_id=id_text(self.apart_from_id))


def name_taken(where: str, part: str, name: str = NAME) -> FileError:
    """The error for an input that already has a member or column with the name of a mark."""
    return FileError(
        f"{where}: has {part} {name!r} already, which --mark would add; remove it first, "
        "or run without --mark"
    )
