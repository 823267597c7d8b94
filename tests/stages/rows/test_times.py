"""Times that are read together are those that Python reads one by one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from hypothesis import example, given
from hypothesis import strategies as st

from twinsieve.pipeline.settings.values import moment_ms
from twinsieve.stages.rows.times import read_times

_ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1), timezones=st.none() | _ZONES)
_VALID = st.builds(
    lambda moment, unit, blank: moment.isoformat(" " if blank else "T", unit),
    _MOMENTS,
    st.sampled_from(["minutes", "seconds", "milliseconds", "microseconds"]),
    st.booleans(),
)
_PART = st.sampled_from(["00", "01", "02", "12", "13", "23", "24", "28", "29", "30", "31", "32", "59", "60"])
_NEARLY = st.builds(
    lambda year, parts, behind: "{}-{}-{}T{}:{}:{}{}".format(year, *parts, behind),
    st.sampled_from(["0000", "0001", "1900", "1970", "2000", "2023", "2024", "9999", "202", "20245"]),
    st.tuples(*[_PART] * 5),
    st.sampled_from(
        [
            "",
            "Z",
            "z",
            ".004",
            ".004Z",
            ".1",
            ".0005",
            ".000500",
            ".999500Z",
            ",004",
            "+08:00",
            "-24:00",
            "+08:60",
            "+0800",
            " ",
        ]
    ),
)
_EDITED = st.builds(
    lambda text, at, char: text[:at] + char + text[at + 1 :], _VALID, st.integers(0, 29), st.characters()
)


@given(st.lists(_VALID | _NEARLY | _EDITED | st.text(max_size=30)))
@example(
    ["2024-02-29T23:59:59.999-23:59", "2023-02-29T00:00:00", "1900-02-29T00:00:00", "2000-02-29 00:00:00Z"]
)
@example(["2024-02-29", "2023-02-29", "2024-01-01Z", "2024-01-01+08:00", "2024-01-01T", "2024-01-01T08"])
@example(["2024-01-01T00:00:00\n", "2024-01-01T00:00:00"])
@example(["\ud800", "2024-01-01T00:00:00"])
def test_a_time_that_is_read_is_that_of_the_calendar(texts: list[str]) -> None:
    times, is_read = read_times(texts)
    for text, time, was_read in zip(texts, times.tolist(), is_read.tolist(), strict=True):
        assert not was_read or time == moment_ms(text)
        assert was_read or time == 0


@given(st.lists(_VALID | _MOMENTS.map(lambda moment: moment.date().isoformat()), min_size=1))
def test_all_valid_times_are_read(texts: list[str]) -> None:
    times, is_read = read_times(texts)
    assert is_read.all()
    assert times.tolist() == [moment_ms(text) for text in texts]


def test_a_valid_time_is_that_of_its_moment() -> None:
    moment = datetime(2024, 2, 29, 8, 0, 0, 4_000, timezone(timedelta(hours=8)))
    assert read_times([moment.isoformat()])[0].tolist() == [1_709_164_800_004]
