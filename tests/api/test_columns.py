"""Every column type gives the same verdicts; what is no column is refused by argument and row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from twinsieve import Sieve, UsageError
from twinsieve.api.time_column import times_of
from twinsieve.stages.contract import NO_TIME

_TEXTS = [
    "今天武汉下雨了，大家出门记得带伞。",
    "The ferry is late.",
    None,
    "the ferry is late",
    None,
    "今天武汉下雨了，大家出门都记得带伞哦。",
]
_IDS = ["a", "b", "c", None, "e", "f"]


class _OnlyArrow:
    """An object of a library that nobody has heard of, which offers the Arrow stream interface alone."""

    def __init__(self, values: list[Any]) -> None:
        self._column = pa.chunked_array([values])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._column.__arrow_c_stream__(requested_schema)


class _OnlyArrowArray:
    def __init__(self, values: list[Any]) -> None:
        self._column = pa.array(values)

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._column.__arrow_c_array__(requested_schema)


_COLUMNS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "dict values": lambda values: dict(enumerate(values)).values(),
    "numpy object": lambda values: np.array(values, dtype=object),
    "numpy masked": lambda values: np.ma.MaskedArray(
        np.array([value or "" for value in values]), mask=[value is None for value in values]
    ),
    "numpy string": lambda values: np.array(values, dtype=np.dtypes.StringDType(na_object=None)),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas NaN": lambda values: pd.Series([np.nan if one is None else one for one in values], dtype=object),
    "pandas NA": lambda values: pd.Series(values, dtype="string"),
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas arrow": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "pandas categorical": lambda values: pd.Series(values, dtype="category"),
    "pandas index elsewhere": lambda values: pd.Series(values, dtype=object, index=range(9, 3, -1)),
    "pandas Index": lambda values: pd.Index(values, dtype=object),
    "polars": pl.Series,
    "polars categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "arrow": pa.array,
    "arrow large": lambda values: pa.array(values, pa.large_string()),
    "arrow view": lambda values: pa.array(values, pa.string_view()),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "arrow chunks": lambda values: pa.chunked_array([values[:2], values[2:]]),
    "arrow stream alone": _OnlyArrow,
    "arrow array alone": _OnlyArrowArray,
}


@pytest.mark.parametrize("make", _COLUMNS.values(), ids=_COLUMNS.keys())
def test_every_column_of_texts_and_ids_gives_the_verdicts_of_a_list(make: Callable[[list[Any]], Any]) -> None:
    expected = list(Sieve(window=100).judge(_TEXTS, ids=_IDS))
    assert [one.stage for one in expected] == [
        "unique",
        "unique",
        "no_text",
        "exact",
        "no_text",
        "near",
    ]
    assert list(Sieve(window=100).judge(make(_TEXTS), ids=make(_IDS))) == expected


def test_numpy_text_without_missing_values_is_a_column() -> None:
    assert Sieve(window=9).judge(np.array(["one and the same", "one and the same"])).kept.tolist() == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    "ids", [np.array([7, 8]), pd.Series([7, 8], dtype="Int64"), pl.Series([7, 8]), pa.array([7, 8])]
)
def test_numbers_of_libraries_come_back_as_pythons(ids: Any) -> None:
    leader_id = Sieve(window=9).judge(["one and the same"] * 2, ids=ids)[1].leader_id
    assert (leader_id, type(leader_id)) == (7, int)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"texts": ["x"] * 17 + [b"y"]}, "texts[17] is bytes, not str; decode it first"),
        ({"texts": np.array([b"y"])}, "texts[0] is bytes, not str; decode it first"),
        ({"texts": ["x", 5]}, "texts[1] is an int (5), not str; convert it first, or give None for no text"),
        ({"texts": np.array([1.5])}, "texts[0] is a float (1.5), not str"),
        ({"texts": pd.Series([True])}, "texts[0] is a bool (True), not str"),
        ({"texts": np.array(["2020-01-01"], "M8[D]")}, "texts[0] is a datetime64"),
        ({"texts": "abc"}, "texts is one str, not a column; write [text]"),
        ({"texts": b"abc"}, "texts is one bytes, not a column"),
        ({"texts": {"a": "b"}}, "texts is a dict, not a column; give one of its columns"),
        ({"texts": {"a", "b"}}, "texts is a set, which has no order; give a list"),
        ({"texts": None}, "texts is None; give a list or another column"),
        ({"texts": 5}, "texts is an int, not a column; give a list or another iterable"),
        ({"texts": np.array([["x"]])}, "texts is a ndarray of 2 dimensions; give one of its columns"),
        ({"texts": pd.DataFrame({"t": ["x"]})}, "texts is a DataFrame of 2 dimensions; give one of its columns"),
        ({"texts": pl.DataFrame({"t": ["x"]})}, "texts is a DataFrame, not a column; give one of its columns"),
        ({"texts": pa.table({"t": ["x"]})}, "texts is a Table, not a column; give one of its columns"),
        ({"texts": ["x", "y", "z", "w"], "times": [None] * 3}, "times has 3 rows, texts has 4"),
        ({"texts": ["x"], "ids": []}, "ids has 0 rows, texts has 1; give one row for each text"),
        ({"texts": ["x"], "scopes": [1, 2]}, "scopes has 2 rows, texts has 1"),
        ({"texts": ["x", "y"], "ids": [1, 2.5]}, "ids[1] is a float (2.5); use int or str"),
        ({"texts": ["x", "y"], "ids": pd.Series([1, None])}, "ids[0] is a float (1.0); use int or str (in pandas"),
        ({"texts": ["x"], "ids": [1 << 128]}, "ids[0] is an int (340282366920938463463374607431768211456); a whole number has 128 bits at most"),
        ({"texts": ["x"], "ids": [1 << 99_999]}, "ids[0] is an int (0x800"),
        ({"texts": ["x"], "scopes": [1 << 99_999]}, "scopes[0] is an int (0x800"),
        ({"texts": ["x"], "ids": [True]}, "ids[0] is a bool (True); use int or str"),
        ({"texts": ["x"], "scopes": [("a", 1.5)]}, "scopes[0] is a tuple (('a', 1.5)); use int (of 128 bits at most), str or a tuple"),
        ({"texts": ["x"], "times": [1581465600]}, "times[0] is a number (1581465600); say its unit, as in time_unit='s'"),
        ({"texts": ["x"], "times": ["soon"]}, "times[0] is 'soon', not an ISO 8601 date or time"),
        ({"texts": ["x"], "times": [""]}, "times[0] is '', not an ISO 8601 date or time"),
        ({"texts": ["x"], "times": [[]]}, "times[0] is a list ([]); use datetime, ISO 8601 text or numbers"),
        ({"texts": ["x"], "times": [True], "time_unit": "s"}, "times[0] is a bool (True)"),
        ({"texts": ["x"], "times": [1581465600000], "time_unit": "s"}, "times[0] is 1581465600000, in s outside the years 1 to 9999; is time_unit right?"),
        ({"texts": ["x"], "times": [float("inf")], "time_unit": "s"}, "times[0] is inf, in s outside the years"),
        ({"texts": ["x"], "times": [1], "time_unit": "m"}, "time_unit is 'm'; choose s, ms, us or ns"),
        ({"texts": ["x"], "times": np.array(["20000-01-01"], "M8[D]")}, "times[0] lies outside the years 1 to 9999"),
    ],
)  # fmt: skip
def test_a_misuse_names_argument_and_row(arguments: dict[str, Any], said: str) -> None:
    sieve = Sieve(window=9)
    with pytest.raises(UsageError) as error:
        sieve.judge(**arguments)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)
    assert sieve.stats().kept == 0
    assert sieve.judge(["x"])[0].position == 0


def test_an_arrow_object_without_pyarrow_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    column = _OnlyArrow(["x"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match="install pyarrow, or give a list"):
        Sieve(window=9).judge(column)


_MOMENT_MS = 1_581_465_600_123
_MOMENT = datetime(2020, 2, 12, 0, 0, 0, 123_000, tzinfo=UTC)
_BEIJING = timezone(timedelta(hours=8))


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ([_MOMENT, None], None),
        ([_MOMENT.replace(tzinfo=None), None], None),
        ([_MOMENT.astimezone(_BEIJING), None], None),
        (["2020-02-12T08:00:00.123+08:00", None], None),
        (["2020-02-12 00:00:00.123", None], None),
        ([_MOMENT_MS, None], "ms"),
        ([_MOMENT_MS / 1000, float("nan")], "s"),
        ([_MOMENT_MS * 1000 + 400, None], "us"),
        ([_MOMENT_MS * 10**6 - 400_000, None], "ns"),
        (np.array([_MOMENT_MS, "NaT"], "M8[ms]"), None),
        (np.array([_MOMENT_MS * 1000 + 400, "NaT"], "M8[us]"), None),
        (np.array([_MOMENT_MS * 10**6 - 400_000, "NaT"], "M8[ns]"), None),
        (np.ma.MaskedArray(np.array([_MOMENT_MS, 5], "M8[ms]"), mask=[False, True]), None),
        ([np.datetime64(_MOMENT_MS, "ms"), np.datetime64("NaT", "ms")], None),
        (pd.Series([pd.Timestamp(_MOMENT), pd.NaT]), None),
        (pd.Series([pd.Timestamp(_MOMENT.replace(tzinfo=None)), pd.NaT]), None),
        (pd.Series([pd.Timestamp(_MOMENT), pd.NaT]).dt.tz_convert("Asia/Shanghai"), None),
        (pl.Series([_MOMENT, None]), None),
        (pl.Series([_MOMENT.replace(tzinfo=None), None]).dt.replace_time_zone("UTC"), None),
        (pl.Series([_MOMENT.replace(tzinfo=None), None], dtype=pl.Datetime("ns")), None),
        (pa.array([_MOMENT, None], pa.timestamp("us", "Asia/Shanghai")), None),
        (pa.array([_MOMENT_MS * 10**6 - 1, None], pa.timestamp("ns")), None),
        (pa.chunked_array([pa.array([_MOMENT], pa.timestamp("ms")), pa.array([None], pa.timestamp("ms"))]), None),
    ],
)  # fmt: skip
def test_every_column_of_times_is_the_same_moment(column: Any, unit: Any) -> None:
    assert times_of(column, unit).tolist() == [_MOMENT_MS, NO_TIME]


@pytest.mark.parametrize(
    "column",
    [
        [date(2020, 2, 12)],
        ["2020-02-12"],
        np.array(["2020-02-12"], "M8[D]"),
        pl.Series([date(2020, 2, 12)]),
        pa.array([date(2020, 2, 12)]),
        pa.array([1_581_465_600], pa.timestamp("s")),
    ],
)
def test_a_date_is_its_midnight_in_utc(column: Any) -> None:
    assert times_of(column, None).tolist() == [1_581_465_600_000]


@pytest.mark.parametrize(
    ("finer", "rounded"), [(499, 0), (500, 0), (501, 1), (1500, 2), (-500, 0), (-1500, -2)]
)
def test_half_a_millisecond_goes_to_the_even_one_in_every_column(finer: int, rounded: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=finer)
    columns: list[tuple[Any, Any]] = [
        ([moment], None),
        ([finer], "us"),
        ([finer * 1000], "ns"),
        (np.array([finer], "M8[us]"), None),
        (pa.array([finer * 1000], pa.timestamp("ns")), None),
    ]
    assert [times_of(column, unit).tolist() for column, unit in columns] == [[rounded]] * len(columns)


def test_scopes_of_one_meaning_are_one_scope() -> None:
    scopes = ["a", ("a",), ["a"], np.str_("a"), "b", None, float("nan"), ("a", 1), ("a", np.int64(1)), 1, "1"]
    kept = Sieve(window=99).judge(["one and the same text"] * len(scopes), scopes=scopes).kept.tolist()
    assert kept == [True, False, False, False, True, True, False, True, False, True, True]


def test_texts_without_scope_meet_whether_a_column_says_so_or_not() -> None:
    sieve = Sieve(window=99)
    assert sieve.judge(["one and the same text"]).kept.tolist() == [True]
    assert sieve.judge(["one and the same text"] * 2, scopes=[None, "a"]).kept.tolist() == [False, True]


def test_lone_surrogates_are_characters() -> None:
    texts = ["broken \ud83d half of an emoji", "broken \ud83d half of an emoji", "\udc00"]
    verdicts = Sieve(window=9).judge(texts, ids=["\ud83d", 1, 2])
    assert verdicts.kept.tolist() == [True, False, True]
    assert verdicts[1].leader_id == "\ud83d"
