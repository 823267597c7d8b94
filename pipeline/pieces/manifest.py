"""The files that a saved state consists of, as its manifest names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import orjson

from twinsieve.pipeline.basics.printable import printable
from twinsieve.stages.errors import StateError
from twinsieve.stages.window.soundness import MOST_KEPT


class Holds(StrEnum):
    """What a file holds."""

    KEPT = "kept"
    """a run of kept messages"""
    IMAGE = "image"
    """the memory of a near stage, with all kept messages of its window from `first` on"""
    SEGMENT = "segment"
    """a sealed segment of the near window, which is mapped"""
    PART = "part"
    """a full Bloom generation, or a sealed tier of the trie"""


class StateFile(NamedTuple):
    """A file of a saved state.

    name: its name in the folder; holds: what it holds; size: its bytes
    digest: 128-bit MurmurHash3 of its content (of a piece, of its checksums), so that damage and another file
        of this name are noticed
    part: name of a part, as the sieve names it; else empty
    first, end: the kept messages from number `first` to number `end` (exclusive); 0 for a part
    """

    name: str
    holds: Holds
    size: int
    digest: str
    part: str = ""
    first: int = 0
    end: int = 0


def encode_files(files: Iterable[StateFile]) -> bytes:
    """The files as JSON."""
    return orjson.dumps([list(file) for file in files])


def decode_files(data: bytes) -> list[StateFile]:
    """The files that `encode_files` wrote. raises: StateError if they are something else"""
    try:
        files = [_decoded(*entry) for entry in orjson.loads(data)]
        if len({file.name for file in files}) < len(files):
            raise ValueError("a file is named twice")
    except (TypeError, ValueError) as error:
        raise StateError(f"its list of files is damaged ({printable(str(error))})") from error
    return files


def leading_segments(files: Sequence[StateFile], oldest: int, end: int) -> list[StateFile]:
    """The segments that follow each other from the kept message `oldest` on, up to `end` at most."""
    chosen: list[StateFile] = []
    at = oldest
    segments = [file for file in files if file.holds is Holds.SEGMENT and file.end <= end]
    while following := [
        file for file in segments if file.first == at or (not chosen and file.first <= at < file.end)
    ]:
        chosen.append(following[0])
        at = chosen[-1].end
    return chosen


def _decoded(name: str, holds: str, size: int, digest: str, part: str, first: int, end: int) -> StateFile:
    file = StateFile(name, Holds(holds), size, digest, part, first, end)
    texts, numbers = (name, digest, part), (size, first, end)
    # Not `isinstance`, for which True is a number.
    if {type(text) for text in texts} != {str} or {type(number) for number in numbers} != {int}:
        raise ValueError(f"an entry has other types: {file!r:.200}")
    if "/" in name or "\0" in name or name.startswith("."):
        raise ValueError(f"{name!r:.200} is not a file name")
    # A run without messages would be followed by itself for ever (`leading_segments`).
    is_run = file.holds is Holds.PART or 0 <= first < end < MOST_KEPT
    if not is_run or not 0 <= size < MOST_KEPT:
        raise ValueError(f"{name!r:.200} has kept messages {first} to {end} in {size} bytes")
    return file


def covering(files: Sequence[StateFile], oldest: int, end: int) -> list[StateFile] | None:
    """Files that hold the kept messages from `oldest` to `end`, in their order; None if some are missing.

    Segments come first as far as there are any, because they need no work at a restore; then the fewest
    others. Before an image there can be segments alone, which end where it begins.
    """
    leading = leading_segments(files, oldest, end)
    # An image may lie across the last of them.
    for count in range(len(leading), -1, -1):
        chosen = _continued(files, leading[:count], oldest, end)
        if chosen is not None:
            return chosen
    return None


def _continued(
    files: Sequence[StateFile], segments: Sequence[StateFile], oldest: int, end: int
) -> list[StateFile] | None:
    """These segments and the files that follow them; None if some are missing."""
    chosen = list(segments)
    at = chosen[-1].end if chosen else oldest
    while at < end:
        is_begin = len(chosen) == len(segments)
        ahead = [
            file
            for file in files
            if file.first <= at < file.end <= end
            and (
                file.holds is Holds.KEPT
                or (file.holds is Holds.IMAGE and is_begin and (not chosen or file.first == at))
            )
        ]
        if not ahead:
            return None
        chosen.append(max(ahead, key=lambda file: (file.end, file.holds is Holds.KEPT)))
        at = chosen[-1].end
    return chosen
