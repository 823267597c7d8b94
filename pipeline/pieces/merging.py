"""Which pieces of a state are merged into one."""

from __future__ import annotations

from collections.abc import Sequence

from twinsieve.pipeline.pieces.manifest import Holds, StateFile
from twinsieve.pipeline.pieces.piece_bytes import FAN_IN


def similar_pieces(files: Sequence[StateFile]) -> Sequence[StateFile] | None:
    """The first `FAN_IN` neighbouring pieces whose lengths have the same power of `FAN_IN`; None if there
    are none. So each message is merged as many times as the window has powers more than a piece."""
    first = 0
    for at, file in enumerate(files):
        same = files[first].holds is file.holds is Holds.KEPT and _power(file) == _power(files[first])
        first = first if same else at
        if at - first + 1 == FAN_IN and file.holds is Holds.KEPT:
            return files[first : at + 1]
    return None


def _power(file: StateFile) -> int:
    return ((file.end - file.first).bit_length() - 1) // (FAN_IN.bit_length() - 1)
