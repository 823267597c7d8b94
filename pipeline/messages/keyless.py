"""Messages with an empty exact key (`exact.fields`): none of them is an exact copy of another one.

Two messages without a key have nothing in common, so neither is dropped for the other. The near stage
compares them as all others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import mmh3
import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.messages.paths import MISSING
from twinsieve.stages.text.unicode import CATEGORIES, CATEGORY, database

_SEED = 0xE3
_UNSEEN = ("Zs", "Zl", "Zp", "Cc", "Cf")
"""Categories of characters without ink: blanks, line ends, control characters, those of zero width."""
_UNSEEN_TOO = "\u034f\u115f\u1160\u2800\u3164\uffa0\ufe00-\ufe0f"
"""Characters of other categories that show nothing: a joiner, fillers of Hangul, the empty Braille pattern,
variation selectors. source: Unicode, Default_Ignorable_Code_Point; that of Braille is added"""


def is_empty(value: object) -> bool:
    """Whether the value of a key field says nothing: missing, null, NaN, or a string that shows nothing.

    A list or an object says nothing if none of its values says something.

    >>> is_empty(""), is_empty(" "), is_empty(None), is_empty(float("nan")), is_empty(0), is_empty("0")
    (True, True, True, True, False, False)
    >>> is_empty("\u200b"), is_empty([]), is_empty([None, [""]]), is_empty({"a": ""}), is_empty([0])
    (True, True, True, True, False)
    """
    if isinstance(value, str):
        # Nearly all keys begin with visible ASCII, which takes a tenth of the time of a search.
        return not "!" <= value[:1] <= "~" and _seen().search(value) is None
    if not isinstance(value, list | tuple | dict):
        return value is MISSING or value is None or value != value  # true of NaN alone
    # No recursion, because a value of a table may be nested as deeply as its type.
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting.extend(each)
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif not is_empty(each):
            return False
    return True


@cache
def _seen() -> re.Pattern[str]:
    """Matches a character that shows something."""
    frozen = database()
    ends = np.cumsum(frozen["kind_lengths"]).tolist()
    starts = [0, *ends]
    unseen = "".join(
        f"\\U{start:08x}-\\U{end - 1:08x}"
        for start, end, kind in zip(starts, ends, frozen["kind_values"].tolist(), strict=False)
        if (kind & CATEGORY) < len(CATEGORIES) and CATEGORIES[kind & CATEGORY] in _UNSEEN
    )
    return re.compile(f"[^{unseen}{_UNSEEN_TOO}]")


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
