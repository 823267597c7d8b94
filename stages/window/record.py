"""The record of a kept message: what the comparison with a candidate reads first, in one cache line.

A candidate lies somewhere in a ring of gigabytes. With one array for each field, a comparison waits for five
lines of memory; with records it waits for one. Files that hold kept messages have the same records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

RECORD = np.dtype(
    [
        ("bag", "<u8", (4,)),
        ("time", "<i8"),
        ("position", "<i8"),
        ("length", "<i4"),
        ("offset", "<u4"),
        ("own", "<u2"),
        ("wide", "u1"),
        ("unused", "u1"),
        ("signs", "<u4"),
    ]
)
"""The 64 bytes of a record under the method text.

bag: char bag of the body (`Fingerprints.bags`)
time: stream time when the message was kept, in ms, or NO_TIME; position: the caller's identifier
length: body length; for an exact-only message -(key length); 0 for others that the near stage must not
    compare: under hamming those without a SimHash
offset: where the text begins in the arena, in granules (`window.ring.GRANULE`)
own: body characters before a shared card, or `window.ring.NO_CARD`
wide: 1 if the text has two units for each character
signs: of a body that is stored whole, its signs (`Bodies.signs`)
unused: zeros. A field, because a copy of an array leaves out bytes that belong to no field
"""

_LENGTH_RECORD = np.dtype([("time", "<i8"), ("position", "<i8"), ("length", "<i4"), ("unused", "<u4")])
_PLACE_RECORD = np.dtype([("time", "<i8"), ("position", "<i8")])


def record_type(text: bool, lengths: bool) -> np.dtype[Any]:
    """The record of a ring: RECORD for texts; for other methods a shorter one with the same fields.

    lengths: the near stage of the other method needs the field `length`
    """
    if text:
        return RECORD
    return _LENGTH_RECORD if lengths else _PLACE_RECORD


def words_of(records: NDArray[Any]) -> NDArray[np.uint64]:
    """uint64[N, words]: records as whole words, for fast copies; the same memory."""
    return records.view(np.uint64).reshape(len(records), -1)
