"""Windows of `twinsieve dedup`: no age on files unless asked for, and what is said of their reach."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import write_rows
from twinsieve import Sieve
from twinsieve.pipeline.dedup.report import Reaches
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.stages.contract import (
    NO_TIME,
    ExactConfig,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    SieveStats,
    Verdicts,
    Window,
)

_TEXT = "The bridge over the river is closed until Friday, take the ferry"
_NOTHING = SieveStats(0, 0, 10, None, None, 0)


def _days(path: Path, count: int, text: str = _TEXT) -> Path:
    stamps = [f"2020-{1 + day // 28:02}-{1 + day % 28:02}T08:00:00Z" for day in range(count)]
    return write_rows(path, ({"id": n, "text": text, "created_at": at} for n, at in enumerate(stamps)))


def _kept(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_equal_rows_of_forty_days_are_one_on_files(tmp_path: Path, run: Run) -> None:
    source, out = _days(tmp_path / "in.jsonl", 40), tmp_path / "out.jsonl"
    assert run("dedup", source, "-o", out, *SMALL).code == 0
    assert _kept(out) == 1
    assert run("dedup", source, "-o", out, "--state", tmp_path / "state", *SMALL).code == 0
    assert _kept(out) == 1


def test_an_age_that_is_asked_for_is_kept_however_it_is_asked_for(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = _days(tmp_path / "in.jsonl", 40), tmp_path / "out.jsonl"
    (tmp_path / "s.yaml").write_text("exact: {window: {age: 7d}}\nnear: {window: {age: 24h}}\n")
    assert run("dedup", source, "-o", out, "-c", tmp_path / "s.yaml", *SMALL).code == 0
    by_file = _kept(out)
    assert by_file > 1
    ages = setting("exact.window.age=7d", "near.window.age=24h")
    assert run("dedup", source, "-o", out, *ages, *SMALL).code == 0
    assert _kept(out) == by_file
    monkeypatch.setenv("TWINSIEVE_EXACT__WINDOW__AGE", "7d")
    monkeypatch.setenv("TWINSIEVE_NEAR__WINDOW__AGE", "24h")
    assert run("dedup", source, "-o", out, *SMALL).code == 0
    assert _kept(out) == by_file


def test_kafka_keeps_its_ages_and_the_python_face_has_none(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("near: {similarity: 0.8, window: {messages: 50}}\n")
    on_kafka = load_settings(tmp_path / "s.yaml")
    assert (on_kafka.near.window.age_ms, on_kafka.exact.window.age_ms) == (86_400_000, 7 * 86_400_000)
    for given_ in (str(tmp_path / "s.yaml"), {"near.window.messages": 50, "exact.window.messages": 50}):
        config = Sieve(settings=given_, threads=1)._engine.config
        assert (config.near.window.age_ms, config.exact.window.age_ms) == (None, None)
    aged = Sieve(settings={"near.window": {"messages": 50, "age": "2h"}}, threads=1)._engine.config
    assert (aged.near.window.age_ms, aged.exact.window.age_ms) == (7_200_000, None)


def test_a_state_of_another_age_is_refused_with_the_setting_to_copy(tmp_path: Path, run: Run) -> None:
    source = _days(tmp_path / "in.jsonl", 3)
    call = ("dedup", source, "-o", tmp_path / "out", "--state", tmp_path / "state", *SMALL)
    assert run(*call, *setting("exact.window.age=7d")).code == 0
    (tmp_path / "out").unlink()
    ran = run(*call)
    assert ran.code == 1
    assert (
        "written with exact.window.age=604800000ms, the configuration says exact.window.age=none" in ran.err
    )
    assert run(*call, *setting("exact.window.age=604800000ms")).code == 0


def test_the_summary_says_which_windows_counted_and_what_came_after_them(tmp_path: Path, run: Run) -> None:
    texts = [chr(0x4E00 + 97 * n) * 12 for n in range(30)]
    source = write_rows(tmp_path / "in.jsonl", ({"id": n, "text": text} for n, text in enumerate(texts)))
    windows = setting("near.window.messages=10", "exact.window.messages=100", "near.threads=1")
    stats = tmp_path / "stats.json"
    ran = run("dedup", source, "-o", tmp_path / "out", "--stats", stats, *windows)
    said = {" ".join(line.split()) for line in ran.err.splitlines()}
    assert (
        "near window 10 kept rows, of any age; the last 19 rows were not compared with the first kept ones"
        in said
    )
    assert "exact window 100 kept rows, of any age" in said
    assert json.loads(stats.read_text())["windows"] == {
        "near": {"messages": 10, "age_ms": None, "rows_after": 19, "rows_after_age": 0},
        "exact": {"messages": 100, "age_ms": None, "rows_after": 0, "rows_after_age": 0},
    }


def test_the_summary_says_which_age_counted(tmp_path: Path, run: Run) -> None:
    source = _days(tmp_path / "in.jsonl", 40)
    ran = run("dedup", source, "-o", tmp_path / "out", *SMALL, *setting("exact.window.age=7d"))
    said = {" ".join(line.split()) for line in ran.err.splitlines()}
    assert (
        "exact window 2,000 kept rows, none older than 7d; the last 32 rows were not compared with the first kept ones"
        in said
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(["kept", "dropped", "late"]), st.none() | st.integers(0, 60)), max_size=30
    ),
    st.integers(1, 6),
    st.none() | st.integers(0, 30),
    st.integers(1, 7),
)
def test_rows_after_a_window_are_those_that_a_plain_ring_finds(
    rows: list[tuple[str, int | None]], messages: int, age_ms: int | None, cut: int
) -> None:
    window = Window(messages, age_ms)
    config = SieveConfig(exact=ExactConfig(method="none"), near=NearConfig(window=window))
    reaches = Reaches(config, _NOTHING)
    moved = _streams(rows)
    for low in range(0, len(rows), cut):
        part = rows[low : low + cut]
        stream = np.array([NO_TIME if time is None else time for _, time in moved[low : low + cut]], np.int64)
        reaches.count(stream, _verdicts([kind for kind, _ in part]))
    assert list(reaches.by_stage) == ["near"]
    assert reaches.by_stage["near"].rows_after == _plain_rows_after(rows, messages, age_ms)


def _verdicts(kinds: list[str]) -> Verdicts:
    verdicts = Verdicts.blank(len(kinds))
    verdicts.kinds[:] = [Kind.EXACT if kind == "dropped" else Kind.UNIQUE for kind in kinds]
    verdicts.flags[:] = [Flag.LATE if kind == "late" else 0 for kind in kinds]
    return verdicts


def _streams(rows: list[tuple[str, int | None]]) -> list[tuple[str, int | None]]:
    """The latest time up to each row."""
    streams, stream = [], None
    for kind, time in rows:
        if time is not None:
            stream = time if stream is None else max(stream, time)
        streams.append((kind, stream))
    return streams


def _plain_rows_after(rows: list[tuple[str, int | None]], messages: int, age_ms: int | None) -> int:
    """One row after the other: is the first kept message still among the newest, and young enough?"""
    kept, stream, first, after = 0, None, None, 0
    for kind, time in rows:
        if time is not None:
            stream = time if stream is None else max(stream, time)
            first = stream if first is None else first
        if kept > messages or (age_ms is not None and stream is not None and stream - first > age_ms):
            after += 1
        kept += kind == "kept"
    return after


@pytest.mark.parametrize("example", ["microblog", "news", "hamming"])
def test_examples_for_files_know_no_age(tmp_path: Path, root: Path, run: Run, example: str) -> None:
    fields = ("--text-field", "text", "--id-field", "id", "--time-field", "created_at")
    config = root / "config" / f"{example}.yaml"
    source = _days(tmp_path / "in.jsonl", 40)
    ran = run("dedup", source, "-o", tmp_path / "out", "-c", config, *fields, *SMALL)
    assert (ran.code, len((tmp_path / "out").read_bytes().splitlines())) == (0, 1)
    assert "window.age" not in ran.err


def test_an_age_that_kept_rows_from_being_compared_is_a_line(tmp_path: Path, run: Run) -> None:
    source, out = _days(tmp_path / "in.jsonl", 40), tmp_path / "out"
    ages = setting("exact.window.age=7d", "near.window.age=7d")
    ran = run("dedup", source, "-o", out, *ages, *SMALL)
    assert len(out.read_bytes().splitlines()) == 6
    assert "near.window.age is 7d: the last 32 of 40 rows met no kept row older than that" in ran.err
    ages = setting("exact.window.age=60d", "near.window.age=60d")
    ran = run("dedup", source, "-o", out, *ages, *SMALL)
    assert "window.age is" not in ran.err
