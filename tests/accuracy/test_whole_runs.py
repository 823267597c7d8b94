"""Near drops of whole runs that are drawn to be labelled are those of `dedup`."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from tests.accuracy.data_sets import VARIABLE
from tests.accuracy.label_counts import Counts, whole_run_counts
from tests.accuracy.whole_runs import Drop, near_drops, still_dropped, write_sheet
from tests.calling import Run
from tests.generated_posts import generate
from twinsieve.pipeline.tools.evaluate.judged import read_judged
from twinsieve.stages.errors import UsageError

NAME = "weibo_dev"


@pytest.fixture
def posts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set of generated posts in the place of the real one. Some hold what would break a line of the sheet."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    path = tmp_path / f"{NAME}.jsonl.gz"
    rows = [{"id": post["id"], "text": post["text"] + "\t\n\x1b[2J"} for post in generate(3_000, seed=3)]
    path.write_bytes(gzip.compress(b"".join(orjson.dumps(row) + b"\n" for row in rows)))
    return path


def test_drawn_drops_are_near_drops_of_dedup_and_one_for_each_leader(
    posts: Path, tmp_path: Path, run: Run
) -> None:
    outputs = ("-o", tmp_path / "unique.jsonl", "--duplicates", tmp_path / "dropped.jsonl")
    assert run("dedup", "-q", posts, "--profile", "microblog", *outputs).code == 0
    rows = [orjson.loads(line) for line in (tmp_path / "dropped.jsonl").read_bytes().splitlines()]
    dropped = [Drop(row["id"], row["duplicate_of_id"]) for row in rows if row["stage"] == "near"]
    assert near_drops(NAME) == dropped
    sheet = tmp_path / "sheet.tsv"
    write_sheet(sheet, most=len(rows), seed=1, sets=[NAME])
    sheet.write_text(sheet.read_text().replace("\t\t", "\tsame\t"))
    pairs = read_judged(sheet)
    leaders = [pair.earlier for pair in pairs]
    assert len(dropped) > len(set(leaders)) == len(leaders) == len({drop.earlier for drop in dropped}) > 100
    assert {Drop(pair.later, pair.earlier) for pair in pairs} < set(dropped)
    assert whole_run_counts(sheet) == {NAME: Counts(len(pairs), 0, 0, 0)}
    assert still_dropped(pairs) == len(pairs)


def test_pairs_that_are_kept_or_have_another_leader_are_not_still_dropped(
    posts: Path, tmp_path: Path
) -> None:
    first, second = near_drops(NAME)[:2]
    labels = tmp_path / "labels.tsv"
    pairs = [first, Drop(first.earlier, second.earlier), Drop(first.later, second.earlier)]
    lines = [f"{NAME}\t{later}\t{earlier}\tunsure" for later, earlier in pairs]
    labels.write_text("\n".join(["set\tlater_id\tearlier_id\tlabel", *lines, ""]))
    assert still_dropped(read_judged(labels)) == 1
    assert whole_run_counts(labels) == {NAME: Counts(0, 0, 3, 0)}


def test_a_sheet_is_not_written_into_the_project_or_over_labels(
    posts: Path, tmp_path: Path, root: Path
) -> None:
    inside = root / "docs" / ".." / "sheet.tsv"
    with pytest.raises(UsageError, match="name a file outside"):
        write_sheet(inside, most=1, seed=1, sets=[NAME])
    assert not inside.exists()
    labels = tmp_path / "labels.tsv"
    labels.write_text("labels of an hour")
    with pytest.raises(FileExistsError):
        write_sheet(labels, most=1, seed=1, sets=[NAME])
    assert labels.read_text() == "labels of an hour"
