"""Get columns by name, and select rows: data frames of pandas and polars, Arrow tables, DuckDB's relations,
datasets of Hugging Face.

This module imports none of these libraries, except pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from twinsieve.api.user_columns import a_type, refuse_no_rows, shown
from twinsieve.pipeline.basics.closest import closest
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


class Dataset(Protocol):
    """A dataset of Hugging Face."""

    @property
    def column_names(self) -> Any:
        """The names of the columns."""

    def select_columns(self, column_names: Any) -> Any:
        """The dataset with these columns alone."""

    def __len__(self) -> int: ...


class Relation(Protocol):
    """A relation of DuckDB."""

    def to_arrow_table(self) -> Any:
        """Its rows as an Arrow table."""


FrameT = TypeVar("FrameT", bound=Frame | Dataset)


_BATCH_ROWS = 1 << 16
"""Rows of a dataset that are in memory at once."""


def is_frame(items: object) -> bool:
    """Whether `items` is a data frame, a table or a dataset.

    raises: UsageError for a lazy frame, and for a dict of datasets
    """
    refuse_no_rows(items, "items")
    return _is_dataset(items) or (
        hasattr(items, "columns") and hasattr(items, "shape") and not isinstance(items, type)
    )


def with_rows(frame: Any) -> Any:
    """The frame itself; a relation of DuckDB as an Arrow table."""
    return frame.to_arrow_table() if hasattr(frame, "to_arrow_table") else frame


def names_of(frame: Any) -> list[object]:
    """Names of the frame's columns, in order."""
    if _is_dataset(frame):
        return list(frame.column_names)
    schema = getattr(frame, "schema", None)
    return list(schema.names) if _is_arrow(frame) and schema is not None else list(frame.columns)


def pieces_of(frame: Any, names: Iterable[str]) -> Iterator[Any]:
    """The rows of the frame in order, as frames that have these columns; a dataset in batches of Arrow."""
    if not _is_dataset(frame):
        yield frame
    elif len(frame):
        yield from frame.select_columns([*names]).with_format("arrow").iter(_BATCH_ROWS)


def check_column(frame: Any, name: object, argument: str) -> str:
    """The name, if the frame has one column of it.

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
        if name in names:
            raise UsageError(
                f"{argument}: the {type(frame).__name__} has several columns {name!r}; rename them"
            )
        close = closest(name, texts)
        advice = f"; did you mean {close!r}?" if close else ""
        raise UsageError(
            f"{argument}: the {type(frame).__name__} has no column {name!r} but {listed}{advice}"
        )
    return name


def column_of(frame: Any, name: object, argument: str) -> Any:
    """The frame's column of this name. argument, raises: as of `check_column`"""
    name = check_column(frame, name, argument)
    return frame.column(name) if _is_arrow(frame) else frame[name]


def rows_of(frame: FrameT, kept: NDArray[np.bool_]) -> FrameT:
    """The rows whose `kept` is true, in order, as a frame of the same type with the same columns and dtypes.

    In pandas each row keeps its index label.
    """
    taken: Any = frame
    if _is_arrow(frame):
        arrow: Any = import_module("pyarrow")
        return taken.filter(arrow.array(kept))  # type: ignore[no-any-return]
    if _is_dataset(frame):
        return taken.select(np.flatnonzero(kept))  # type: ignore[no-any-return]
    if hasattr(frame, "iloc"):
        return taken.iloc[np.flatnonzero(kept)]  # type: ignore[no-any-return]
    return taken.filter(kept)  # type: ignore[no-any-return]


def _is_arrow(frame: object) -> bool:
    return hasattr(frame, "num_columns") and hasattr(frame, "column")


def _is_dataset(frame: object) -> bool:
    return hasattr(frame, "column_names") and hasattr(frame, "select_columns") and hasattr(frame, "__len__")
