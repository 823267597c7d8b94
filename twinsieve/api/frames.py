"""Get columns by name, and select rows, from data frames of pandas and polars and from Arrow tables.

This module imports none of these libraries, except pyarrow to filter an Arrow table.
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
    """The attributes that pandas and polars data frames, Arrow tables and record batches share."""

    @property
    def columns(self) -> Any:
        """The names of the columns (pandas, polars), or the columns themselves (Arrow)."""

    @property
    def shape(self) -> Any:
        """Number of rows, number of columns."""


FrameT = TypeVar("FrameT", bound=Frame)


def is_frame(items: object) -> bool:
    """Whether `items` is a data frame or a table."""
    return hasattr(items, "columns") and hasattr(items, "shape") and not isinstance(items, type)


def names_of(frame: Any) -> list[object]:
    """Names of the frame's columns, in order."""
    schema = getattr(frame, "schema", None)
    return list(schema.names) if _is_arrow(frame) and schema is not None else list(frame.columns)


def column_of(frame: Any, name: object, argument: str) -> Any:
    """The frame's column of this name.

    argument: the caller's argument that holds the name; error messages begin with it
    raises: UsageError if `name` is not a str, or if no column or several columns have this name
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
    """The rows whose `kept` is true, in order, as a frame of the same type with the same columns and dtypes.

    In pandas each row keeps its index label.
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
