"""`twinsieve tune`: each of its points is what `dedup` does with the settings that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.calling import SMALL, Run, setting
from tests.generated_posts import generate
from tests.property.streams import Rows, batch_of
from tests.row_files import read_lines
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.pages import extra
from twinsieve.pipeline.tools.tune.sweep import judge
from twinsieve.stages.contract import ExactConfig, Kind, NearConfig, SieveConfig, Window

ROWS = 5_000
Json = dict[str, Any]


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "posts.jsonl"
    path.write_bytes(b"".join(to_json(post) + b"\n" for post in generate(ROWS, seed=7)))
    return path


def points(run: Run, tmp_path: Path, *arguments: str | Path) -> list[Json]:
    stats = tmp_path / "points.json"
    ran = run("tune", *arguments, "--stats", stats, "--report", tmp_path / "tune.html")
    assert ran.code == 0, ran.err
    said: list[Json] = orjson.loads(stats.read_bytes())["points"]
    return said


def dedup(run: Run, tmp_path: Path, posts: Path, *arguments: str) -> Json:
    stats = tmp_path / "dedup.json"
    ran = run("dedup", posts, "-o", tmp_path / "unique.jsonl", "-q", "--stats", stats, *arguments)
    assert ran.code == 0, ran.err
    said: Json = orjson.loads(stats.read_bytes())
    return said


@pytest.mark.heavy
def test_every_point_is_a_full_run_of_dedup(run: Run, tmp_path: Path, posts: Path) -> None:
    found = points(run, tmp_path, posts, *SMALL)
    assert len(found) == 7 * 26
    wrong = []
    # Every third: of each similarity, and of each set of limits.
    for point in found[::3]:
        keys = setting(*(f"{key}={value}" for key, value in point["set"].items()))
        full = dedup(run, tmp_path, posts, *SMALL, *keys)
        said = [point[name] for name in ("exact", "near", "kept_apart")]
        if said != [full[name] for name in ("exact", "near", "kept_apart")]:
            wrong.append((point["set"], said))
    assert wrong == []
    assert len({point["near"] for point in found}) > 60


def test_rows_cuts_the_sample_in_the_middle_of_a_chunk(run: Run, tmp_path: Path, posts: Path) -> None:
    head = tmp_path / "head.jsonl"
    lines = posts.read_bytes().splitlines(keepends=True)
    head.write_bytes(b"".join([*lines[:700], b"no message\n", *lines[700:1_000]]))
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join([*lines[:700], b"no message\n", *lines[700:799]]))
    reports = ("--stats", tmp_path / "cut.json", "--report", tmp_path / "cut.html")
    cut = run("tune", head, "--rows", "800", *reports, *SMALL)
    assert cut.code == 0
    assert "1 of 800 rows hold no message that can be read\n" in cut.err
    assert "dropped of 799 messages" in cut.out
    found = orjson.loads((tmp_path / "cut.json").read_bytes())["points"]
    assert found == points(run, tmp_path, few, *SMALL)


def test_keys_that_tune_sets_replace_those_of_the_user(run: Run, tmp_path: Path, posts: Path) -> None:
    flags = ("--rows", "300", *SMALL)
    plain = points(run, tmp_path, posts, *flags)
    own = points(run, tmp_path, posts, *flags, "--profile", "sms", *setting("near.differences=off"))
    assert {point["curve"] for point in plain} - {point["curve"] for point in own}
    of_sms = [point["near"] for point in plain if point["set"].get("profile") == "sms"]
    same = [point["near"] for point in own if point["set"].get("near.differences") == "full"]
    assert of_sms == same


def test_labels_are_counted_as_evaluate_counts_them(run: Run, tmp_path: Path, posts: Path) -> None:
    marked = tmp_path / "dropped.jsonl"
    dedup(run, tmp_path, posts, *SMALL, "--similarity", "0.7", "--duplicates", str(marked))
    dropped = [row for row in read_lines(marked) if row["stage"] == "near"][:300]
    labels = tmp_path / "labels.tsv"
    words = ("same", "same", "different", "unsure")
    lines = [
        f"{row['id']}\t{row['duplicate_of_id']}\t{words[number % 4]}" for number, row in enumerate(dropped)
    ]
    labels.write_text("\n".join(["later_id\tearlier_id\tlabel", *lines, ""]))
    found = points(run, tmp_path, posts, "--rows", "100", *SMALL, "--judged", labels)
    shares = {(point["precision"]["hits"], point["precision"]["of"]) for point in found}
    assert len(shares) > 20
    for point in found[::29]:
        keys = setting(*(f"{key}={value}" for key, value in point["set"].items()))
        told = run("evaluate", posts, "--judged", labels, *keys).out
        row = next(line for line in told.splitlines() if line.startswith("│ all "))
        cells = [cell.split()[0] for cell in row.strip("│").split("│")]
        assert cells[2:] == [f"{point[name]['value']:.3f}" for name in ("precision", "recall")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("{posts}", "--set", "near.method=hamming"), "near.method is hamming: tune tries similarities"),
        (("{posts}", "--text-field", "nothing"), "none of 5,000 rows holds a text; name its field"),
        (("{empty}",), "empty.jsonl: no rows; name an input that holds messages"),
        (("{missing}",), "missing.jsonl: cannot be"),
        (("{posts}", "--judged", "{labels}"), "a labelled pair names id 'nobody', which is not in the input"),
        (("{posts}", "--judged", "{empty}"), "empty.jsonl:1: the header lacks later_id"),
        (("{posts}", "--judged", "{missing}"), "missing.jsonl: cannot be"),
        (("{posts}", "--stats", "{posts}"), "posts.jsonl"),
        (("{posts}", "--report", "{posts}"), "posts.jsonl: is also an input"),
        (("{posts}", "--report", "{missing}/tune.html"), "tune.html: cannot be written"),
        (("{posts}", "--report", "tune.csv"), "--report tune.csv: looks like csv, but holds HTML"),
        (("{posts}", "--report", "tune.html.gz"), "--report tune.html.gz: is not written compressed"),
        (("{posts}", "--stats", "/dev/stdout"), "--stats /dev/stdout: is also the table (-); name another"),
        (("{posts}", "--report", "-"), "--report -: is also the table (-); name another file"),
        (("{posts}", "--label-pairs", "501"), "'--label-pairs'"),
        (("{posts}", "--rows", "0"), "'--rows'"),
    ],
)
def test_what_cannot_be_tried_is_said(
    run: Run, tmp_path: Path, posts: Path, arguments: tuple[str, ...], says: str
) -> None:
    names = {"posts": posts, "empty": tmp_path / "empty.jsonl", "missing": tmp_path / "missing.jsonl"}
    names["labels"] = tmp_path / "labels.tsv"
    names["empty"].touch()
    names["labels"].write_text("later_id\tearlier_id\tlabel\nnobody\tsomebody\tsame\n")
    page = () if "--report" in arguments else ("--report", tmp_path / "tune.html")
    ran = run("tune", *(word.format(**names) for word in arguments), *page)
    assert ran.code in (1, 2)
    assert not (tmp_path / "tune.html").exists()
    assert says in ran.err
    assert ran.err.count("\n") == 1


def test_without_the_extra_the_packages_are_named(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extra, "find_spec", lambda name: None if name == "jinja2" else True)
    found = run("tune", tmp_path / "posts.jsonl")
    assert (found.code, found.out) == (2, "")
    assert "tune needs jinja2: pip install jinja2" in found.err


def test_one_wrong_year_moves_no_window_as_in_dedup() -> None:
    said = "今天晚上河边的桥关闭到星期五"
    rows: Rows = [(said, 0, 0, 0), ("一句来自未来的不同的话", 60, 0, 0), (said, 1, 0, 0)]
    window = Window(100, 10_000)
    config = SieveConfig(exact=ExactConfig(window=window), near=NearConfig(window=window))
    batch = batch_of(rows)
    for parts in ([batch], [batch.slice(0, 2), batch.slice(2, 3)]):
        assert judge(parts, config).kinds.tolist() == [Kind.UNIQUE, Kind.UNIQUE, Kind.EXACT]
