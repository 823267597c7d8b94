"""`evaluate` on a file small enough to count by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from tests.calling import Run
from twinsieve.pipeline.tools.evaluate.evaluate import VARIANTS, Variant, read_texts, run_evaluate
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    Share,
    judge_pairs,
    judged_tables,
    precision,
    read_judged,
    recall,
)
from twinsieve.pipeline.tools.evaluate.scores import Counts
from twinsieve.pipeline.tools.evaluate.truth import HEADER
from twinsieve.stages.contract import OFF, Differences, NearConfig, SieveConfig
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import SchemeConfig

JUDGED_HEADER = "set\tlater_id\tearlier_id\tlabel"
TEXTS = {
    "a": "今天下午我们在河边看见一只白色的水鸟",
    "b": "今天下午我们在河边看见一只白色的水鸟！",
    "c": "今日下午我们在河边看见一只白色的水鸟",
    "d": "本市今日新增确诊病例12例均已收治入院",
    "e": "本市今日新增确诊病例15例均已收治入院",
    "f": "这一句话和上面的任何一句都没有关系",
    "g": "不在真值范围之内的最后一行文字内容",
}
PAIRS = f"{HEADER}\nb\ta\t1.0000\tbody\nc\ta\t0.9412\tnear\nf\ta\t0.9000\tnear\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    texts, pairs = tmp_path / "posts.jsonl", tmp_path / "pairs.tsv"
    texts.write_bytes(b"".join(orjson.dumps({"id": i, "text": t}) + b"\n" for i, t in TEXTS.items()))
    pairs.write_text(PAIRS)
    return texts, pairs


def test_scores_and_wrong_rows_are_those_counted_by_hand(files: tuple[Path, Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    report = run_evaluate(*files, scheme=SchemeConfig(), sieve=SieveConfig(), wrong_path=wrong)
    assert (report.rows, report.at, report.to_drop, report.near_to_drop) == (6, 8_500, 3, 2)
    assert [run.variant for run in report.runs] == list(VARIANTS)
    free, guarded = report.runs[0], report.runs[1]
    assert free.scores.every == Counts(hits=2, wrongly_dropped=1, wrongly_kept=1)
    assert free.scores.near == Counts(hits=1, wrongly_dropped=1, wrongly_kept=1)
    assert (free.exact, free.near, free.kept_apart) == (1, 2, {})
    assert guarded.scores.every == Counts(hits=2, wrongly_dropped=0, wrongly_kept=1)
    assert guarded.kept_apart == {"number": 1}
    assert orjson.loads(report.as_json())["runs"][0]["scores"]["near"]["f1"] == free.scores.near.f1
    rows = [orjson.loads(line) for line in wrong.read_bytes().splitlines()]
    first = [(row["wrongly"], row["id"]) for row in rows if row["variant"] == "letters, differences off"]
    assert first == [("dropped", "e"), ("kept", "f")]
    dropped = rows[0]
    assert (dropped["kind"], dropped["leader"]["id"], dropped["ideal_leader"]) == ("near", "d", None)
    assert dropped["leader"]["text"] == TEXTS["d"]
    assert rows[1]["ideal_leader"]["similarity"] == 0.9


def test_similarity_and_rows_can_be_chosen(files: tuple[Path, Path]) -> None:
    variant = (Variant("product", "off"),)
    strict = run_evaluate(
        *files, scheme=SchemeConfig(), sieve=SieveConfig(), similarity=10_000, variants=variant
    )
    assert (strict.to_drop, strict.runs[0].exact, strict.runs[0].near) == (1, 1, 0)
    two = run_evaluate(*files, scheme=SchemeConfig(), sieve=SieveConfig(), rows=2, variants=variant)
    assert (two.rows, two.to_drop, two.runs[0].scores.every.f1) == (2, 1, 1.0)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[1]", "no text in 'text'"),
        (b'{"id": 1}', "no text in 'text'"),
        (b'{"text": "x"}', "no id in 'id'"),
        (b'{"id": 1, "text": 5}', "no text in 'text'"),
        (b"\xff", "not UTF-8"),
        (b'{"id": 1, "text": null}', "no text in 'text'"),
    ],
)
def test_a_wrong_row_is_named_by_path_and_line(tmp_path: Path, line: bytes, complaint: str) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_bytes(b'{"id": 1, "text": "x"}\n' + line + b'\n{"id": 2, "text": "y"}\n')
    with pytest.raises(UsageError, match=f"posts.jsonl:2: .*{complaint}"):
        read_texts(path)


def test_pairs_of_another_input_are_refused(files: tuple[Path, Path]) -> None:
    texts, pairs = files
    pairs.write_text(f"{HEADER}\nx\ty\t1.0000\traw\n")
    with pytest.raises(UsageError, match="none of its ids"):
        run_evaluate(texts, pairs, scheme=SchemeConfig(), sieve=SieveConfig())


def test_judged_pairs_meet_only_their_own_partner(tmp_path: Path) -> None:
    path = tmp_path / "judged.tsv"
    path.write_text(f"{JUDGED_HEADER}\ns\tc\ta\tsame\ns\te\td\tdifferent\ns\tb\tf\tunsure\n")
    pairs = read_judged(path)
    assert pairs[1] == JudgedPair("s", "e", "d", "different")
    free = SieveConfig(near=NearConfig(differences=Differences(OFF)))
    verdicts = judge_pairs(pairs, TEXTS, SchemeConfig(), free)
    assert [one.dropped for one in verdicts] == [True, True, False]
    assert (precision(verdicts), recall(verdicts)) == (Share(1, 2), Share(1, 1))
    guarded = judge_pairs(pairs, TEXTS, SchemeConfig(), SieveConfig())
    assert [(one.dropped, one.reason) for one in guarded[:2]] == [(True, Rule.NONE), (False, Rule.NUMBER)]
    assert [table.row_count for table in judged_tables(guarded)] == [1, 1, 1]


def test_judged_pairs_without_text_or_with_another_label_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'z', which is not in the input"):
        judge_pairs([JudgedPair("s", "z", "a", "same")], {"a": "x"}, SchemeConfig(), SieveConfig())
    path = tmp_path / "judged.tsv"
    path.write_text(f"{JUDGED_HEADER}\ns\tc\ta\tperhaps\n")
    with pytest.raises(UsageError, match=r"judged.tsv:2: .*same.*different.*unsure"):
        read_judged(path)
    path.write_text("later_id\tlabel\n")
    with pytest.raises(UsageError, match=r"judged.tsv:1: the header lacks earlier_id"):
        read_judged(path)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["later_id\tearlier_id\tlabel\tlabel", "b\ta\tsame\tsame"], "1: the header has the column 'label' twice"),
        (["later_id\tearlier_id\tlabel", "b\ta\tsame", "b\ta"], "3: 2 columns, expected 3, as in the header"),
        (["later_id\tearlier_id\tlabel", "b\tx\ta\tsame"], "2: 4 columns, expected 3, as in the header"),
        (
            ["later_id\tearlier_id\tlabel", "b\ta\tSame\x1b"],
            r"2: label 'Same\x1b' is not one of same, different, unsure",
        ),
        (["later_id\tearlier_id\tlabel", "b\tb\tsame"], "2: both ids are 'b'; a pair has two rows"),
        (["later_id\tearlier_id\tlabel"], " has no labelled pair; write a line for each pair below the header"),
        (["later_id\tearlier_id\tlabel", "b\tz\tsame"], "'z', which is not in the input; give the labels of this "
        "input, and its field of ids with --id-field"),
        (["later_id\tearlier_id\tlabel", "b\trow:9\tsame"], "'row:9', which is not in the input; give the labels "
        "of this input\n"),
    ],
)  # fmt: skip
def test_labels_that_cannot_be_meant_are_refused_with_their_line(
    run: Run, files: tuple[Path, Path], tmp_path: Path, lines: list[str], says: str
) -> None:
    labels = tmp_path / "labels.tsv"
    labels.write_text("\n".join([*lines, ""]))
    found = run("evaluate", files[0], "--judged", labels)
    assert (found.code, found.out) == (2, "")
    assert says in found.err


@pytest.mark.parametrize("words", [("--at", "0.9"), ("--rows", "2"), ("--wrong", "w"), ("--stats", "s")])
def test_labels_refuse_what_only_pairs_use(
    run: Run, files: tuple[Path, Path], tmp_path: Path, words: tuple[str, str]
) -> None:
    labels = tmp_path / "labels.tsv"
    labels.write_text("later_id\tearlier_id\tlabel\nb\ta\tsame\n")
    found = run("evaluate", files[0], "--judged", labels, *words)
    assert (found.code, found.out) == (2, "")
    assert f"{words[0]} needs PAIRS; --judged does not use it" in found.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("evaluate", "-", "--judged", "-"), "stdin cannot be both INPUT and what it is compared with"),
        (("evaluate", "-", "-"), "stdin cannot be both INPUT and what it is compared with"),
        (("evaluate", "", "pairs.tsv"), "INPUT: the name is empty; name a file"),
        (("evaluate", "posts.jsonl", "--judged", ""), "--judged: the name is empty; name a file"),
        (("test", ""), "FILE: the name is empty; name a file"),
        (("lint", "-c", ""), "the name is empty; name a file"),
        (("explain", "a", "b", "-c", ""), "-c: the name is empty; name a file"),
    ],
)
def test_inputs_without_a_name_and_stdin_twice_are_refused(
    run: Run, words: tuple[str, ...], says: str
) -> None:
    found = run(*words)
    assert (found.code, found.out) == (2, "")
    assert says in found.err


def test_a_set_may_have_any_name(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    labels = tmp_path / "labels.tsv"
    lines = [JUDGED_HEADER, "all\tb\ta\tsame", "\tc\ta\tsame", "\x1b[2J\te\td\tdifferent"]
    labels.write_text("\n".join([*lines, ""]))
    found = run("evaluate", files[0], "--judged", labels, "--set", "near.differences=off")
    rows = [line.split("│")[1:3] for line in found.out.splitlines() if line.startswith("│")][:4]
    assert [(name.strip(), counts.strip()) for name, counts in rows] == [
        ("(no set)", "1/0/0"), (r"\x1b[2J", "0/1/0"), ("all", "1/0/0"), ("all", "2/1/0"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["posts.csv", "posts.json", "posts.parquet", "posts.tsv.gz"])
def test_every_format_gives_the_report_that_json_lines_give(
    files: tuple[Path, Path], tmp_path: Path, run: Run, name: str
) -> None:
    rows = [{"id": one, "text": text} for one, text in TEXTS.items()]
    other = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), other)
    elif name.endswith(".json"):
        other.write_text(json.dumps(rows, indent=1), "utf-8")
    else:
        mark = "\t" if "tsv" in name else ","
        content = "".join(
            f"{row['id']}{mark}{row['text']}\n" for row in [{"id": "id", "text": "text"}, *rows]
        )
        other.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
    lines, pairs = files
    stats = [tmp_path / "a.stats", tmp_path / "b.stats"]
    for source, into in zip((lines, other), stats, strict=True):
        assert run("evaluate", source, pairs, "--stats", into).code == 0
    ours, theirs = (json.loads(one.read_bytes()) | {"input": ""} for one in stats)
    assert ours == theirs


def test_the_tables_say_which_variant_is_set_and_what_keeps_rows_apart(
    files: tuple[Path, Path], run: Run
) -> None:
    texts, pairs = files
    pairs.write_text(PAIRS + "e\td\t0.9474\tnear\n")
    for level in ("guards", "off"):
        out = run("evaluate", texts, pairs, "--set", f"near.differences={level}").out
        marked = [line.strip("│ ") for line in out.splitlines() if line.startswith("│ * ")]
        assert [line.startswith(f"* product, differences {level}") for line in marked] == [True, True]
        assert "* what your settings ask for" in out
        assert ("number 1" in out, "differences full" in out) == (True, True)
