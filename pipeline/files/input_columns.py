"""`Columns`: which columns inputs have. Later inputs must have those of the first one, in any order."""

from __future__ import annotations

from collections.abc import Sequence

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.errors import UsageError


class Columns:
    """The columns of inputs with columns.

    wanted: names of the columns that may hold the text
    first: columns of the first input, None before it
    other_order: shown names of inputs whose columns have another order than those of the first one
    """

    def __init__(self, wanted: Sequence[str], settings: Settings) -> None:
        self.wanted = wanted
        self._text_needed = settings.input.expect_text and not settings.exact.fields
        self.first: list[object] | None = None
        self._first_shown = ""
        self.other_order: dict[str, None] = {}

    def order_of(self, shown: str, columns: Sequence[object], where: str) -> list[int] | None:
        """Where each column of the first input stands among these; None if they have its order.

        shown: name of the input; where: the place of the columns in it, for errors
        raises: FileError for other columns than those of the first input
        """
        if self.first is None:
            self.first, self._first_shown = list(columns), shown
        if list(columns) == self.first:
            return None
        missing = [column for column in self.first if column not in columns]
        added = [column for column in columns if column not in self.first]
        if missing or added or len(self.first) != len(columns):
            differ = [f"added: {_listed(added)}"] if added else []
            differ += [f"missing: {_listed(missing)}"] if missing else []
            raise FileError(
                f"{where}: has other columns than {self._first_shown} ({'; '.join(differ)}); write each "
                "input to a file of its own with -o FOLDER/, or run them one after the other on one --state: "
                "both find duplicates across them"
            )
        self.other_order[shown] = None
        return [columns.index(column) for column in self.first]

    def lack_text(self, names: Sequence[str]) -> bool:
        """Whether none of these columns may hold the text, although the settings need one."""
        return self._text_needed and not set(self.wanted) & set(names)

    def refuse_without_text(self, where: str, names: Sequence[str]) -> None:
        """Refuse columns that lack the text. raises: UsageError"""
        if not self.lack_text(names):
            return
        listed = ", ".join(repr(name) for name in names[:20])
        close = [each for name in self.wanted if (each := closest(name, names)) is not None]
        meant = " or ".join(map(repr, close))
        advice = f"did you mean {meant}? " if meant else ""
        raise UsageError(
            f"{where}: has no column {self.wanted_words} but {listed}; {advice}name one with --text-field; "
            "if the rows have no text, add --set input.expect_text=false"
        )

    @property
    def wanted_words(self) -> str:
        """The wanted columns, for a message."""
        return " or ".join(map(repr, self.wanted))


def _listed(columns: Sequence[object]) -> str:
    shown = ", ".join(repr(str(column)) for column in columns[:5])
    return shown if len(columns) <= 5 else f"{shown} and {len(columns) - 5:,} more"
