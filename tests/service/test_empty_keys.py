"""`exact.empty_key: dead_letter`: a message with an empty key is unreadable, on files and on Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.calling import SMALL, Run, setting
from tests.memory.broker import ManualClock
from tests.row_files import read_lines
from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.settings.model import Settings

_KEYED = setting("exact.fields=[url,n]", "exact.empty_key=dead_letter", "near.method=none")
_EMPTY = ['""', '" "', '"\\u3000"', "null", "NaN", "[]", '[""]', "{}", '"\\u200b"', '"\\ufeff"', '"\\u0000"']
_FULL = ["0", "false", '"0"', "[0]", '["a"]', '{"a": 0}']
_EXACT = {"fields": ["url"], "empty_key": "dead_letter"}


@pytest.mark.parametrize("mark", [False, True])
def test_a_row_with_an_empty_key_is_unreadable(tmp_path: Path, run: Run, mark: bool) -> None:
    rows = [f'{{"n": 1, "url": {value}, "text": "words"}}' for value in [*_FULL, *_EMPTY]]
    rows += ['{"n": 1, "text": "words"}', '{"url": "a", "n": ""}', rows[0]]
    source, dead, stats = tmp_path / "a.jsonl", tmp_path / "dead", tmp_path / "stats"
    source.write_text("\n".join(rows) + "\n")
    more = ("--mark",) if mark else ("--dead-letter", dead)
    ran = run("dedup", source, "-o", tmp_path / "out.jsonl", "--stats", stats, *more, *_KEYED, *SMALL)
    assert ran.code == 0
    said = json.loads(stats.read_bytes())
    assert (said["unreadable"], said["keyless"]) == ({"empty_key": len(_EMPTY) + 2}, 0)
    if mark:
        marks = [row["twinsieve"] for row in read_lines(tmp_path / "out.jsonl")]
        assert [at for at, each in enumerate(marks) if each["reason"] == "empty_key"] == [
            *range(6, 8 + len(_EMPTY))
        ]
        return
    entries = read_lines(dead)
    assert [entry["line"] for entry in entries] == [*range(7, 9 + len(_EMPTY))]
    assert {entry["reason"] for entry in entries} == {"empty_key"}
    assert ["'n'" in entry["detail"] for entry in entries] == [False] * (1 + len(_EMPTY)) + [True]
    assert (tmp_path / "out.jsonl").read_text().splitlines() == rows[: len(_FULL)]


def test_a_cell_with_an_empty_key_is_unreadable(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.csv").write_text("url,n,text\na,1,words\n,2,words\nb,　,words\n")
    call = ("-q", tmp_path / "a.csv", "-o", tmp_path / "out.csv", *_KEYED, *SMALL)
    assert run("dedup", *call, "--strict").code == 1
    assert run("dedup", *call).code == 1
    assert run("dedup", *call, "--max-unreadable", "0.7").code == 0
    assert (tmp_path / "out.csv").read_text() == "url,n,text\na,1,words\n"


def _process(folder: Path, **exact: object) -> Stepped:
    settings = Settings.model_validate(
        {"app": "t", "state": {"dir": str(folder)}, "exact": exact, "near": {"method": "none"}}
    )
    return Stepped(settings, make_scheme(settings), {"posts": 1})


def test_on_kafka_it_is_a_dead_letter_and_counted(tmp_path: Path) -> None:
    process = _process(tmp_path, **_EXACT)
    values: list[bytes | None] = [f'{{"text": "words", "url": {value}}}'.encode() for value in _EMPTY]
    values += [b'{"text": "words"}', b'{"text": "words", "url": "a"}', b'{"text": "others", "url": "a"}']
    process.write(Partition("posts", 0), values, b"k", (), process.clock.now_ms())
    assert [entry.value for entry in process.entries("posts.unique")] == [values[-2]]
    dead = process.entries("posts.dead")
    assert [entry.value for entry in dead] == values[:-2]
    assert {dict(entry.headers)["twinsieve-reason"] for entry in dead} == {b"empty_key"}
    metrics = Metrics(ManualClock())
    metrics.count_emission(process.counted)
    label = {"reason": "empty_key"}
    assert metrics.registry.get_sample_value("twinsieve_dead_letters_total", label) == len(values) - 2


@pytest.mark.parametrize(
    ("said", "code", "fact"),
    [
        (("exact.empty_key=dead_letter",), 2, "exact.fields"),
        (
            ("exact.fields=[url]", "exact.empty_key=dead_letter", "output.dead_letter=none"),
            0,
            "output.dead_letter",
        ),
    ],
)
def test_lint_says_where_it_does_nothing(run: Run, said: tuple[str, ...], code: int, fact: str) -> None:
    ran = run("lint", *setting(*said))
    (line,) = [line for line in ran.out.splitlines() if "exact.empty_key is" in line]
    assert (ran.code, fact in line, line.startswith("refused on Kafka")) == (code, True, code == 0)


def test_lint_names_all_that_is_for_files_alone(run: Run) -> None:
    call = setting("exact.fields=[url]", "exact.empty_key=dead_letter", "input.null_text=dead_letter")
    ran = run("lint", *call, *setting("output.dead_letter=none"))
    assert ran.out.count("refused on Kafka: ") == 2
