"""`Columns`: which columns inputs have. Later inputs must have those of the first one, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError


class Columns:
    """The columns of inputs with columns.

    Only a column that a setting asks for needs a name of its own. Others may have any name, also the same one
    or none.

    wanted: names of the columns that may hold the text; asked: names of all columns that settings ask for
    first: columns of the first input, None before it
    other_order: shown names of inputs whose columns have another order than those of the first one
    """

    def __init__(self, messages: MessageReader, settings: Settings) -> None:
        self.wanted = messages.text_roots
        self._asked = messages.roots
        self._text_needed = settings.input.expect_text and not settings.exact.fields
        self.first: list[Hashable] | None = None
        self._first_shown = ""
        self.other_order: dict[str, None] = {}

    def order_of(self, shown: str, columns: Sequence[Hashable], where: str) -> list[int] | None:
        """Where each column of the first input stands among these; None if they have its order.

        shown: name of the input; where: the place of the columns in it, for errors
        Columns of the same name stay in their order among each other.
        raises: FileError for other columns than those of the first input
        """
        if self.first is None:
            self.first, self._first_shown = list(columns), shown
        if list(columns) == self.first:
            return None
        first, here = Counter(self.first), Counter(columns)
        missing, added = [*(first - here).elements()], [*(here - first).elements()]
        if missing or added:
            differ = [f"added: {_listed(added)}"] if added else []
            differ += [f"missing: {_listed(missing)}"] if missing else []
            raise FileError(
                f"{where}: has other columns than {self._first_shown} ({'; '.join(differ)}); write each "
                "input to a file of its own with -o FOLDER/, or run them one after the other on one --state: "
                "both find duplicates across them"
            )
        self.other_order[shown] = None
        places: dict[Hashable, list[int]] = {}
        for place, column in enumerate(columns):
            places.setdefault(column, []).append(place)
        following = {column: iter(found) for column, found in places.items()}
        return [next(following[column]) for column in self.first]

    def refuse_twice(self, where: str, names: Sequence[str]) -> None:
        """Refuse columns of one name that a setting asks for. raises: FileError"""
        twice = next((name for name in names if name in self._asked and names.count(name) > 1), None)
        if twice is not None:
            raise FileError(
                f"{where}: names the column {twice!r} twice, and a setting asks for it; rename one, or name "
                "another column in the setting"
            )

    def lack_text(self, names: Sequence[str]) -> bool:
        """Whether none of these columns may hold the text, although the settings need one."""
        return self._text_needed and not set(self.wanted) & set(names)

    def refuse_without_text(self, where: str, names: Sequence[str], also: str = "") -> None:
        """Refuse columns that lack the text. also: more advice. raises: UsageError"""
        if not self.lack_text(names):
            return
        listed = ", ".join(repr(name) for name in names[:20])
        close = [each for name in self.wanted if (each := closest(name, names)) is not None]
        meant = " or ".join(map(repr, close))
        advice = f"did you mean {meant}? " if meant else ""
        raise UsageError(
            f"{where}: has no column {self.wanted_words} but {listed}; {advice}name one with --text-field; "
            f"{also}if the rows have no text, add --set input.expect_text=false"
        )

    @property
    def wanted_words(self) -> str:
        """The wanted columns, for a message."""
        return " or ".join(map(repr, self.wanted))


def _listed(columns: Sequence[object]) -> str:
    shown = ", ".join(repr(str(column)) for column in columns[:5])
    return shown if len(columns) <= 5 else f"{shown} and {len(columns) - 5:,} more"
