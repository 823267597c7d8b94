"""How files of labels name the rows of an input: by id, or by number as `row:17`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.reader import MessageColumns

_BY_NUMBER = re.compile(r"row:[0-9]+")
_MOST_CHARACTERS = 200
"""The longest id that a file of labels holds; a row with a longer one is named by its number."""


def row_name(number: int) -> str:
    """The name of a row by its number, counted from 1 through all inputs, as `dedup` counts positions.

    >>> row_name(17)
    'row:17'
    """
    return f"row:{number}"


def is_by_number(name: str) -> bool:
    """Whether the name names a row by its number.

    >>> is_by_number("row:17"), is_by_number("p17")
    (True, False)
    """
    return _BY_NUMBER.fullmatch(name) is not None


def fits_labels(message_id: str) -> bool:
    r"""Whether an id can stand in a file of labels: one line of tab-separated text, and no name by number.

    >>> [fits_labels(name) for name in ("p17", "帖子 5", "a\tb", "row:3", "x" * 300)]
    [True, True, False, False, False]
    """
    return message_id.isprintable() and len(message_id) <= _MOST_CHARACTERS and not is_by_number(message_id)


class NamedTexts:
    """Collects the texts of the rows that labels name, while an input is read.

    `row:17` is row 17, even if another row has this id. Of rows with one id the first is taken.
    texts: the text of each name that was found
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._missing = set(names)
        self.texts: dict[str, str] = {}

    @property
    def is_complete(self) -> bool:
        """Whether every name was found."""
        return not self._missing

    def add(self, columns: MessageColumns, before: int) -> None:
        """Look at the messages of a chunk. before: number of rows before its first one"""
        if not self._missing:
            return
        for row, message_id, text in zip(columns.rows, columns.ids, columns.texts, strict=True):
            own = id_text(message_id)
            if own in self._missing and not is_by_number(own):
                self._take(own, text)
            by_number = row_name(before + row + 1)
            if by_number in self._missing:
                self._take(by_number, text)

    def _take(self, name: str, text: str) -> None:
        self._missing.remove(name)
        self.texts[name] = text
