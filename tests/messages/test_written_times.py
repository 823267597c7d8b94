"""Times in the forms of interfaces, mails and tables are read; what has two readings is no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from time import asctime

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.messages.fields import time_ms
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.messages.written_times import written_ms
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

_MOMENT = 1_577_873_700_000
"""2020-01-01 10:15 UTC, a Wednesday."""


@pytest.mark.parametrize(
    "text",
    [
        "Wed Jan 01 10:15:00 +0000 2020",
        "Wed Jan 01 18:15:00 +0800 2020",
        "wed jan  1 10:15:00 2020",
        "Wed Jan 1 10:15:00 UTC 2020",
        "Wed, 01 Jan 2020 10:15:00 +0000",
        "Wed, 1 Jan 2020 05:15:00 -0500",
        "Wed, 01 Jan 2020 10:15:00 GMT",
        "1 Jan 2020 02:15 PST",
        "Wed, 01 Jan 2020 11:15:00 +0100 (CET)",
        "2020/1/1 10:15",
        "2020/01/01 10:15:00",
        "2020/1/1  10:15:00.000",
        "2020-1-1 10:15",
        "2020.1.1 10:15",
        "2020/1/1 18:15 +08:00",
        "2020年01月01日 10:15",
        "2020年1月1日10:15:00",
        "2020年1月1日 10时15分",
        "2020年1月1日10時15分0秒",
        "2020年1月1号 10点15分",
        " 2020/1/1 10:15\n",
    ],
)
def test_a_form_that_posts_have_is_read(text: str) -> None:
    assert time_ms(text) == _MOMENT


@pytest.mark.parametrize(
    "text",
    [
        *("0000-00-00", "0000/0/0", "1/2/2020", "01/02/2020 10:15", "2020/13/1", "2020/2/30 10:15", "2020/1/1 24:15"),
        *("2020/1-1 10:15", "2020/1/1 10:15 CET", "2020/1/1 10:15 +2400", "2020/1/1 10:75", "20/1/1 10:15", "2020年13月1日"),
        *("Wed Jan 32 10:15:00 +0000 2020", "Wed Foo 01 10:15:00 +0000 2020", "Wed, 01 Jan 20 10:15:00 GMT"),
        *("Fri Jan 01 10:15:00 +0000 0000", "２０２０/1/1 10:15", "昨天 10:15", "3分钟前", "soon", "2020年", "刚刚"),
        *("Wed Jan 01 10:15:00 +0000 2020 and more", "2020/1/1 10:15" + " " * 9 + "x", "Wed" + " " * 100_000 + "Jan"),
    ],
)  # fmt: skip
def test_what_is_no_time_or_has_two_readings_is_none(text: str) -> None:
    assert time_ms(text) is None


_MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(microsecond=0)
)
_ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(_MOMENTS, _ZONES)
def test_what_python_writes_is_read_as_it_was_meant(naive: datetime, zone: timezone) -> None:
    moment = naive.replace(tzinfo=zone)
    meant = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    name, month = days[moment.weekday()], months[moment.month - 1]
    clock, offset = f"{moment:%H:%M:%S}", f"{moment:%z}"
    assert written_ms(f"{name} {month} {moment.day:02} {clock} {offset} {moment.year:04}") == meant
    assert written_ms(format_datetime(moment)) == meant
    plain = (naive - datetime(1970, 1, 1)) // timedelta(milliseconds=1)
    assert (
        written_ms(asctime(naive.timetuple()).replace(str(naive.year), f"{naive.year:04}")) == plain
        or naive.year < 1000
    )
    assert written_ms(f"{naive.year:04}/{naive.month}/{naive.day} {clock}") == plain
    assert written_ms(f"{naive.year:04}年{naive.month}月{naive.day}日 {clock}") == plain


@given(st.text(alphabet="0123456789/:-.+年月日时分 JanWedTZ,()", max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    assert written_ms(text) is None or isinstance(written_ms(text), int)


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.parquet"])
def test_an_age_limit_holds_for_times_of_interfaces(tmp_path: Path, run: Run, name: str) -> None:
    times = ["Mon Mar 02 08:00:00 +0000 2020", "Mon, 02 Mar 2020 20:00:00 GMT", "2020年03月05日 08:00"]
    rows = [{"created_at": time, "text": f"Der Zug nach Husum hält heute nicht in Heide{end}"}
            for time, end in zip(times, ["", ".", "!"], strict=True)]  # fmt: skip
    source, out = write_rows(tmp_path / name, rows), tmp_path / f"out{Path(name).suffix}"
    ages = setting("near.window.age=24h", "exact.window.age=24h")
    ran = run("dedup", source, "-o", out, "--stats", tmp_path / "stats", *ages, *SMALL)
    assert ran.code == 0
    told = orjson.loads((tmp_path / "stats").read_bytes())
    assert (told["unique"], told["exact"], told["bad_times"]) == (2, 1, 0)


_FORMS = [
    *("%a %b %d %H:%M:%S +0000 %Y", "%a, %d %b %Y %H:%M:%S GMT", "%d %b %Y %H:%M:%S +0000"),
    *("%Y/%m/%d %H:%M", "%Y.%m.%d %H:%M:%S", "%Y年%m月%d日 %H:%M:%S", "%Y年%m月%d日%H时%M分"),
    *("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.123456+00:00", "%Y-%m-%dT%H:%M:%S+0000", "%Y%m%dT%H%M%SZ"),
]


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
@pytest.mark.parametrize("form", [*_FORMS, "seconds", "milliseconds"])
def test_an_age_limit_holds_in_every_form_across_the_end_of_a_year(
    tmp_path: Path, run: Run, name: str, form: str
) -> None:
    """The second row repeats the first one within the age, the third one is too late for it by an hour."""
    first = datetime(1999, 12, 31, 16, 1, tzinfo=UTC)
    times = [first + timedelta(hours=hours) for hours in (0, 23, 25)]
    written: list[object] = [time.strftime(form) for time in times]
    if "seconds" in form:
        written = [int(time.timestamp()) * (1000 if form == "milliseconds" else 1) for time in times]
    rows = [{"text": "Le marché ferme à midi", "created_at": each} for each in written]
    source, out = write_rows(tmp_path / name, rows), tmp_path / f"out{Path(name).suffix}"
    files = ("-o", out, "--duplicates", tmp_path / "dropped", "--stats", tmp_path / "stats")
    ages = setting("near.method=none", "exact.window.age=24h")
    assert run("dedup", source, *files, "--time-field", "created_at", *ages, *SMALL).code == 0
    assert [one["position"] for one in read_lines(tmp_path / "dropped")] == [2]
    assert orjson.loads((tmp_path / "stats").read_bytes())["bad_times"] == 0


def test_a_time_that_cannot_be_read_is_said_with_its_place(tmp_path: Path, run: Run) -> None:
    rows = [
        {"created_at": time, "text": f"text of {time}"}
        for time in ("2020-01-01", "", "3分钟前", "01/02/2020")
    ]
    source = write_rows(tmp_path / "in.jsonl", rows)
    ran = run("dedup", source, "-o", tmp_path / "out.jsonl", "--stats", tmp_path / "stats", *SMALL)
    assert ran.code == 0
    assert f"{source}:3" in ran.err
    assert "2 of 4 rows have a time that could not be read" in ran.err
    assert orjson.loads((tmp_path / "stats").read_bytes())["bad_times"] == 2


def test_on_kafka_times_that_cannot_be_read_are_counted() -> None:
    times = ["2020/1/1 10:15", "soon", None, "Wed Jan 01 10:15:00 +0000 2020", "1/2/2020"]
    values: list[bytes | None] = [orjson.dumps({"text": "a text", "created_at": time}) for time in times]
    records = Records.of(Partition("in", 0), [*range(5)], [7] * 5, [None] * 5, values, [()] * 5, [0] * 5)
    scheme = Scheme(SchemeConfig())
    reader = RecordReader(MessageReader(Settings()), scheme, part="value", stamped=True)
    _, batch, _ = reader.read(records, {})
    assert (reader.bad_times, batch.times_ms.tolist()) == (2, [_MOMENT, 7, 7, _MOMENT, 7])
    alone = MessageReader(Settings()).read(values)
    assert alone.bad_times == [1, 4]
    assert np.flatnonzero(alone.times_ms == NO_TIME).tolist() == [1, 2, 4]
