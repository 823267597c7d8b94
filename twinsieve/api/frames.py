"""Data frames of pandas and polars, and Arrow tables: their columns by name, and some of their rows.

None of these libraries is imported here, except pyarrow for what it made itself.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinsieve.api.user_columns import a_type, shown
from twinsieve.stages.errors import UsageError

_SHOWN_NAMES = 12


class Frame(Protocol):
    """What a data frame of pandas or polars, an Arrow table and a record batch have in common."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""

    @property
    def shape(self) -> Any:
        """Rows and columns."""


FrameT = TypeVar("FrameT", bound=Frame)


def is_frame(items: object) -> bool:
    """Whether it has columns with names and rows."""
    return hasattr(items, "columns") and hasattr(items, "shape") and not isinstance(items, type)


def names_of(frame: Any) -> list[object]:
    """Names of its columns, in order."""
    schema = getattr(frame, "schema", None)
    return list(schema.names) if _is_arrow(frame) and schema is not None else list(frame.columns)


def column_of(frame: Any, name: object, argument: str) -> Any:
    """One of its columns.

    argument: that names the column, for errors
    raises: UsageError where the frame has none of that name, or several
    """
    if name is None:
        raise UsageError(
            f"items is {a_type(frame)}; name the column of its texts, as in dedup(frame, text='title')"
        )
    if not isinstance(name, str):
        raise UsageError(f"{argument} is {a_type(name)}; of {a_type(frame)} name a column")
    names = names_of(frame)
    if names.count(name) != 1:
        texts = [other for other in names if isinstance(other, str)]
        listed = ", ".join(shown(other) for other in names[:_SHOWN_NAMES]) + (
            ", …" if len(names) > _SHOWN_NAMES else ""
        )
        close = get_close_matches(name, texts, n=1)
        if name in names:
            raise UsageError(
                f"{argument}: the {type(frame).__name__} has several columns {name!r}; rename them"
            )
        advice = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(
            f"{argument}: the {type(frame).__name__} has no column {name!r} but {listed}{advice}"
        )
    return frame.column(name) if _is_arrow(frame) else frame[name]


def rows_of(frame: FrameT, kept: NDArray[np.bool_]) -> FrameT:
    """The rows where `kept` holds, in their order; of the type of the frame, with all columns and types.

    A pandas index goes with its rows.
    """
    taken: Any = frame
    if _is_arrow(frame):
        arrow: Any = import_module("pyarrow")
        return taken.filter(arrow.array(kept))  # type: ignore[no-any-return]
    if hasattr(frame, "iloc"):
        return taken.iloc[np.flatnonzero(kept)]  # type: ignore[no-any-return]
    return taken.filter(kept)  # type: ignore[no-any-return]


def _is_arrow(frame: object) -> bool:
    return hasattr(frame, "num_columns") and hasattr(frame, "column")
