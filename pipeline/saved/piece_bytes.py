"""Bytes of a kept message in the files of a saved sieve: its columns as `wire.columns` writes them."""

from __future__ import annotations

import math

from twinsieve.pipeline.settings.segment_bytes import Texts
from twinsieve.pipeline.wire.column_bytes import arrays_of, row_bytes
from twinsieve.stages.columns import Sent
from twinsieve.stages.contract import STORED_LENGTH, SieveConfig
from twinsieve.stages.exact.runs import FAN_IN
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.window.ring import SKETCH_UNITS

SMALLEST_PIECE = 1 << 16
WINDOW_PARTS = 4
"""A piece is closed at a snapshot, or when it has a quarter of the near window (`largest_piece`), but for the
latter not before it has SMALLEST_PIECE messages."""

_PACKED_COLUMNS = 18.2
"""Bytes of a kept message in a piece, after LZ4, of the columns whose size no text changes: id 8, position 4,
time, length and start of the text 2 each (`python -m bench.cost_model`: 17.7 to 18.6)."""
_PACKED_CHARACTER = 2.0
"""Bytes of a stored character in a piece, after LZ4: two bytes and one for word starts before it
(`python -m bench.cost_model`: 1.94 with 58 characters, 2.08 with 108, 1.92 with 216). Texts in alphabets take
less."""
_BAG_CHARACTERS = 35.0
"""Characters with which 63 % of the 32 bytes of a char bag are left after LZ4 (`python -m bench.cost_model`:
26.2 bytes with 58 characters, 31.0 with 108)."""

_BAG_BYTES = 32
_SIMHASH_BYTES = 16
_SIMHASH_REST = 0.8
_SKETCH_BYTES = 2 * SKETCH_UNITS


def largest_piece_bytes(config: SieveConfig) -> int:
    """Bytes of one kept message of the greatest length, before it is compressed."""
    fixed = int(row_bytes(_one(config))[0])
    # A character takes four bytes, and one that says where words start.
    return fixed + 8 + STORED_LENGTH * 5 + _SKETCH_BYTES


def piece_bytes(config: SieveConfig, texts: Texts) -> float:
    """Usual bytes of one kept message in a piece, for `near.method: text`."""
    plain = sum(array.nbytes for array in arrays_of(_one(config), Sent.PLAIN))
    bag = _BAG_BYTES * -math.expm1(-texts.characters / _BAG_CHARACTERS)
    simhash = _SIMHASH_BYTES * texts.share_from(config.layout.simhash_from) + _SIMHASH_REST
    sketch = _SKETCH_BYTES * texts.sketched
    return plain + _PACKED_COLUMNS + _PACKED_CHARACTER * texts.stored + bag + simhash + sketch


def times_merged(messages: int, piece: float) -> int:
    """How many times a kept message is written again by merges, while pieces hold this many messages.

    piece: messages of a new piece

    >>> [times_merged(16_000_000, piece) for piece in (30_000, 900_000, 1_500_000, 40_000_000)]
    [2, 1, 0, 0]
    """
    merges = 0
    while piece * FAN_IN <= messages:
        piece, merges = piece * FAN_IN, merges + 1
    return merges


def largest_piece(window: int) -> int:
    """With this many messages a new piece is closed, whether a snapshot needs it or not."""
    return max(SMALLEST_PIECE, window // WINDOW_PARTS)


def piece_messages(window: int, kept_a_snapshot: float) -> float:
    """Messages of a new piece. kept_a_snapshot: kept messages between two snapshots"""
    return max(1.0, min(kept_a_snapshot, largest_piece(window)))


def _one(config: SieveConfig) -> KeptMessages:
    return KeptMessages.blank(1, dims={"bands": config.layout.bands, "parts": config.near.parts})
