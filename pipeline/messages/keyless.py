"""Messages with an empty exact key (`exact.fields`): none of them is an exact copy of another one.

Two messages without a key have nothing in common, so neither is dropped for the other. The near stage
compares them as all others.
"""

from __future__ import annotations

from collections.abc import Sequence

import mmh3
import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.messages.paths import MISSING

_SEED = 0xE3


def is_empty(value: object) -> bool:
    """Whether the value of a key field says nothing: missing, null, NaN, or no character but blanks.

    >>> is_empty(""), is_empty(" "), is_empty(None), is_empty(float("nan")), is_empty(0), is_empty("0")
    (True, True, True, True, False, False)
    """
    if isinstance(value, str):
        return not value.strip()
    return value is MISSING or value is None or value != value  # true of NaN alone


def keyless_rows(columns: Sequence[Sequence[object]]) -> list[int]:
    """Indices of the rows in which a field of the key is empty, ascending; columns: one for each field.

    One empty field is enough: posts of one author without a link are not copies of each other.
    """
    return sorted({row for column in columns for row, value in enumerate(column) if is_empty(value)})


def set_apart(
    digests: NDArray[np.uint64], rows: Sequence[int], places: NDArray[np.int64] | NDArray[np.uint64]
) -> None:
    """Give these rows digests that no other message has.

    digests: uint64[n, 2], changed; rows: indices of rows without a key
    places: int64[n] or uint64[n, 2], different for all messages; the digests depend on nothing else
    """
    for row in rows:
        digests[row] = mmh3.hash64(b"no key" + places[row].tobytes(), _SEED, signed=False)
