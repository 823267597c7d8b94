"""What a manifest may name: a stranger may have written it."""

from __future__ import annotations

import pytest

from twinsieve.pipeline.saved.manifest import Holds, decode_files
from twinsieve.stages.errors import StateError

DIGEST = "0" * 32


@pytest.mark.parametrize(
    "name",
    [
        "",
        "V0",
        "state",
        "lock",
        "../kept-1-0a1b2c3d.piece",
        "kept-1-0a1b2c3d.piece\n",
        "kept-1-0a1b2c3d.piece.bak",
    ],
)
def test_a_name_that_no_journal_gives_is_refused(name: str) -> None:
    """A file of another name was looked for, and the state called incomplete."""
    with pytest.raises(StateError, match="is no name of such a file"):
        decode_files([(name, Holds.KEPT, 10, DIGEST, "", 0, 5)])


def test_names_that_a_journal_gives_are_read() -> None:
    entries = [
        ("kept-0000000000000001-0a1b2c3d.piece", Holds.KEPT, 10, DIGEST, "", 1, 5),
        ("segment-0000000000000001-0a1b2c3d.segment", Holds.SEGMENT, 10, DIGEST, "", 1, 5),
        ("bloom-2-0a1b2c3d.part", Holds.PART, 10, DIGEST, "bloom-2", 0, 0),
    ]
    assert [tuple(file) for file in decode_files(entries)] == entries
