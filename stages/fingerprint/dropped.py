"""Bodies without the characters that `features.drop` names, for the features of a SimHash alone."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from twinsieve.stages.columns import starts_of
from twinsieve.stages.contract import Bodies
from twinsieve.stages.text.code_point_tables import kinds
from twinsieve.stages.text.scripts import LATIN_RANGES
from twinsieve.stages.text.unicode import CATEGORIES, CATEGORY


@cache
def dropped_characters(drop: tuple[str, ...]) -> NDArray[np.bool_]:
    """bool[0x110000], whether a character is taken out.

    drop: some of `latin` (letters of the Latin script) and `digits` (category Nd)

    >>> table = dropped_characters(("latin", "digits"))
    >>> [bool(table[ord(char)]) for char in "aß7٣"], [bool(table[ord(char)]) for char in "я天.²"]
    ([True, True, True, True], [False, False, False, False])
    """
    categories = kinds() & CATEGORY
    table = np.zeros(len(categories), np.bool_)
    if "digits" in drop:
        table |= categories == CATEGORIES.index("Nd")
    if "latin" in drop:
        letters = np.isin(categories, [i for i, name in enumerate(CATEGORIES) if name[0] == "L"])
        for first, last in LATIN_RANGES:
            table[first : last + 1] |= letters[first : last + 1]
    return table


def without(bodies: Bodies, drop: tuple[str, ...]) -> Bodies:
    """The bodies without these characters; a word ends where one was. Their lengths stay as they were."""
    if not drop:
        return bodies
    kept = ~dropped_characters(drop)[bodies.chars]
    word_starts = bodies.word_starts.copy()
    word_starts[1:] |= ~kept[:-1]
    starts = starts_of(kept.astype(np.int64))[bodies.starts]
    return replace(bodies, chars=bodies.chars[kept], word_starts=word_starts[kept], starts=starts)
