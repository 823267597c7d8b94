"""The report of `twinsieve tune`: its figures are those of runs, its labels come back, and texts do nothing."""

from __future__ import annotations

import csv
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.calling import Piped, Run, setting
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from tests.tune.report_page import ReportPage
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.tools.evaluate.judged import LABELS
from twinsieve.stages.differ.rules import Rule

pytestmark = pytest.mark.heavy

ROWS = 3_000
SMALL = setting("near.window.messages=4000", "exact.window.messages=4000")
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reported:
    """A run of `tune`: its input, its page and its JSON."""

    posts: Path
    page: ReportPage
    html: bytes
    stats: Json


def report_on(folder: Path, posts: Path, *arguments: str | Path) -> Reported:
    html, stats = folder / "tune.html", folder / "tune.json"
    words = ["tune", posts, *arguments, *SMALL, "--report", html, "--stats", stats]
    assert main(list(map(str, words))) == 0
    return Reported(posts, ReportPage(html.read_bytes()), html.read_bytes(), orjson.loads(stats.read_bytes()))


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("report")
    return report_on(folder, write_rows(folder / "posts.jsonl", generate(ROWS, seed=7)))


def dedup(run: Run, tmp_path: Path, posts: Path) -> tuple[Json, list[Json]]:
    """The stats of `dedup` and the dropped rows."""
    stats, dropped = (tmp_path / name for name in ("stats.json", "dropped.jsonl"))
    ran = run(
        "dedup", posts, "-o", tmp_path / "kept", "-q", "--stats", stats, "--duplicates", dropped, *SMALL
    )
    assert ran.code == 0, ran.err
    return orjson.loads(stats.read_bytes()), read_lines(dropped)


def test_what_is_in_force_is_what_dedup_does(run: Run, tmp_path: Path, reported: Reported) -> None:
    full, dropped = dedup(run, tmp_path, reported.posts)
    said = reported.stats["in_force"]
    assert [said[name] for name in ("exact", "near", "kept_apart")] == [
        full[name] for name in ("exact", "near", "kept_apart")
    ]
    most = max(Counter(row["duplicate_of"] for row in dropped if row["duplicate_of"]).values())
    assert f"{most} of them repeat the same message." in reported.page.text


def test_page_shows_the_figures_of_the_json(reported: Reported) -> None:
    tables, stats = reported.page.tables, reported.stats
    shares: dict[float, list[str]] = {}
    for point in stats["points"]:
        shares.setdefault(point["set"]["near.similarity"], []).append(f"{point['drop_share']:.1%}")
    assert tables["drop-table"][1:] == [[f"{at:.4g}", *cells] for at, cells in shares.items()]
    own = stats["in_force"]
    there = [point for point in stats["points"] if point["set"]["near.similarity"] == own["similarity"]]
    assert {row[0]: row[1:] for row in tables["reason-table"][1:]} == {
        name: [str(point["kept_apart"].get(name, 0)) for point in there]
        for name in {name for point in there for name in point["kept_apart"]}
    }
    listed = set(reported.page.text.splitlines())
    for rule in Rule:
        if any(rule.words in point["kept_apart"] for point in there):
            assert f"{rule.words}: {rule.meaning}" in listed
    settings = dict(tables["settings-table"])
    assert (settings["profile"], settings["near.window.messages"]) == ("default", "4000")
    dropped = own["exact"] + own["near"]
    assert f"Of {ROWS:,} messages {dropped / ROWS:.1%} ({dropped:,}) are repeats" in reported.page.text
    shown = [(pair["data-later"], pair["data-earlier"]) for pair in reported.page.pairs]
    assert shown == [(pair["later_id"], pair["earlier_id"]) for pair in stats["pairs"]]
    assert len(shown) == 60


def test_labels_of_the_page_come_back_by_tune_and_evaluate(
    run: Run, tmp_path: Path, reported: Reported
) -> None:
    given = [("same", "same", "", "unsure", "same", "different")[number % 6] for number in range(60)]
    labels = reported.page.labels_file(tmp_path / "labels.tsv", given)
    told = run("evaluate", reported.posts, "--judged", labels)
    assert told.code == 0, told.err
    made = report_on(tmp_path, reported.posts, "--judged", labels, "--label-pairs", "90")
    assert made.stats["points"][0]["recall"]["of"] == given.count("same")
    # The same pairs come first, with their labels; so a reader can go on.
    assert [pair["data-label"] for pair in made.page.pairs] == given + [""] * (len(made.page.pairs) - 60)
    assert [pair["data-later"] for pair in made.page.pairs[:60]] == [
        pair["data-later"] for pair in reported.page.pairs
    ]
    assert len(made.page.pairs) > 60
    assert (
        re.search(rb'data-draw="(\w+)"', made.html)[1] == re.search(rb'data-draw="(\w+)"', reported.html)[1]
    )  # type: ignore[index]
    row = next(line for line in told.out.splitlines() if line.startswith("│ all "))
    at = [point for point in made.stats["points"] if point["set"] == reported_own(made)]
    assert f"{at[0]['precision']['value']:.3f}" in row
    # The recommendation stands on the page as it stands in the terminal.
    advice = made.stats["advice"]
    assert advice["yaml"].startswith("profile: ")
    for line in (*advice["yaml"].splitlines(), advice["reason"], *advice["lines"]):
        assert line in made.page.text
    assert "advice" not in reported.stats
    assert "None without labels: label pairs at the end of this page" in reported.page.text
    few = report_on(tmp_path, reported.posts, "--judged", labels, "--label-pairs", "5")
    assert len(few.page.pairs) == 5
    assert f"contains {len(list(filter(None, given))) - 4} more pairs" in few.page.text
    # The head of the page says what is labelled already.
    assert "Label 60 pairs to learn" in reported.page.text
    assert "50 pairs are labelled: 30 same, 10 different, 10 unsure" in made.page.text


def reported_own(made: Reported) -> Json:
    return {"near.differences": "full", "near.similarity": made.stats["in_force"]["similarity"]}


BAD_IDS = [
    "a\tsame\tb", "line\nbreak", "carriage\rreturn", '"quoted"', "'", "", None, 7, 7.5, "7", "row:3", "row:900",
    "\u202eabc", "x" * 5_000, "<b>", "&amp;", "  blanks  ", "twice", "twice", "twice", "\x00", "\ud800",
    "later_id", "#", "帖子", "\u2028", ["a", {"b": 1}], True,
]  # fmt: skip


def near_pairs(texts: list[str], ids: list[Any]) -> list[Json]:
    """Two similar rows for each id, some way apart; both have the id."""
    rows = [{"id": id_, "text": text} for id_, text in zip(ids, texts, strict=True)]
    return [*rows, *({"id": row["id"], "text": f"{row['text']} yes"} for row in rows)]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "none"])
def test_a_row_with_any_id_can_be_labelled(run: Run, tmp_path: Path, kind: str) -> None:
    texts = [
        f"{post['text']} and so on" for post in generate(len(BAD_IDS), seed=3, repeats=0.0, language="en")
    ]
    rows = near_pairs(texts, BAD_IDS)
    posts = tmp_path / ("posts.csv" if kind == "csv" else "posts.jsonl")
    if kind == "none":
        rows = [{"text": row["text"]} for row in rows]
    if kind == "csv":
        rows = [
            {"id": str(row["id"]).encode("utf-8", "replace").decode(), "text": row["text"]} for row in rows
        ]
        with posts.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, ["id", "text"], quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    else:
        posts.write_bytes(b"".join(orjson_row(row) for row in rows))
    made = report_on(tmp_path, posts)
    assert len(made.page.pairs) == len(BAD_IDS)
    labels = made.page.labels_file(tmp_path / "labels.tsv", [LABELS[number % 3] for number in range(60)])
    told = run("evaluate", posts, "--judged", labels, "--set", "near.differences=off")
    assert told.code == 0, told.err
    # Each label found the two texts that the reader saw: all of them are similar.
    same, different, unsure = (len(range(start, len(BAD_IDS), 3)) for start in range(3))
    assert f"{same}/{different}/{unsure}" in told.out
    again = report_on(tmp_path, posts, "--judged", labels)
    assert [pair["data-label"] for pair in again.page.pairs] == [LABELS[n % 3] for n in range(len(BAD_IDS))]


def orjson_row(row: Json) -> bytes:
    """A row as JSON; a lone surrogate is written as an escape, as some programs do."""
    if row.get("id") == "\ud800":
        return orjson.dumps(row | {"id": "LONE"}).replace(b"LONE", b"\\ud800") + b"\n"
    return orjson.dumps(row) + b"\n"


def test_sample_without_duplicates_has_a_page_too(tmp_path: Path) -> None:
    made = report_on(tmp_path, write_rows(tmp_path / "posts.jsonl", [{"text": "the only message there is"}]))
    assert made.page.pairs == []
    assert "There are no pairs to label" in made.page.text
    assert "None of 1 messages is a repeat." in made.page.text


def test_report_is_private_whole_and_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", [{"text": "the only message there is"}])
    monkeypatch.chdir(tmp_path)
    Path("tune.html").write_text("an older one")
    Path("tune.html").chmod(0o644)
    ran = run("tune", posts, *SMALL)
    assert ran.code == 0
    assert ran.err.splitlines()[-1] == (
        "tune.html: the report, with pairs to label; it contains messages, so its mode is 0600"
    )
    assert stat.S_IMODE(Path("tune.html").stat().st_mode) == 0o600
    assert Path("tune.html").read_bytes().startswith(b"<!doctype html>")
    assert b"Only you can read it (mode 0600)" in Path("tune.html").read_bytes()
    before = Path("tune.html").read_bytes()
    labels = tmp_path / "labels.tsv"
    labels.write_text("later_id\tearlier_id\tlabel\nrow:2\trow:1\tsame\n")
    assert run("tune", posts, *SMALL, "--judged", labels).code == 2
    assert Path("tune.html").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.tsv", "posts.jsonl", "tune.html"]


def test_report_is_written_where_nobody_reads_the_table(piped: Piped, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", [{"text": "the only message there is"}])
    report = tmp_path / "tune.html"
    reads, writes = os.pipe()
    os.close(reads)
    ran = piped(["tune", posts, *SMALL, "--report", report], stdout=writes)
    os.close(writes)
    assert b"Traceback" not in ran.stderr
    assert report.read_bytes().endswith(b"</html>")


def test_labels_of_several_inputs_and_of_rows_behind_the_sample(run: Run, tmp_path: Path) -> None:
    texts = [f"{post['text']} and so on" for post in generate(6, seed=3, repeats=0.0, language="en")]
    first = write_rows(tmp_path / "a.jsonl", [{"text": text} for text in texts])
    # The last row stands behind the first block that is read.
    filler = [{"text": f"{number} {'filler ' * 20_000}"} for number in range(20)]
    near, equal = {"id": "p", "text": f"{texts[4]} yes"}, {"text": texts[0]}
    second = write_rows(tmp_path / "b.jsonl", [near, *filler, equal])
    labels = tmp_path / "labels.tsv"
    labels.write_text(
        "later_id\tearlier_id\tlabel\np\trow:5\tsame\nrow:28\trow:1\tsame\nrow:28\trow:2\tsame\n"
    )
    made = report_on(tmp_path, first, str(second), "--rows", "2", "--judged", labels)
    assert made.stats["messages"] == 2
    shares = [(point["recall"]["hits"], point["recall"]["of"]) for point in made.stats["points"]]
    assert set(shares) == {(2, 3)}
