"""`evaluate` on a file small enough to count by hand."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from tests.accuracy.judged import HEADER as JUDGED_HEADER
from tests.accuracy.judged import JudgedPair, judged_table, pool, read_judged, run_judged
from twinsieve.pipeline.evaluate.evaluate import VARIANTS, Variant, read_texts, run_evaluate
from twinsieve.pipeline.evaluate.scores import Counts
from twinsieve.pipeline.evaluate.tables import report_tables
from twinsieve.pipeline.evaluate.truth import HEADER
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import SchemeConfig

TEXTS = {
    "a": "今天下午我们在河边看见一只白色的水鸟",
    "b": "今天下午我们在河边看见一只白色的水鸟！",
    "c": "昨天下午我们在河边看见一只白色的水鸟",
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
    assert (free.exact, free.near, free.kept_apart) == (1, 2, {"NUMBER_GUARD": 0, "CARD_GUARD": 0})
    assert guarded.scores.every == Counts(hits=2, wrongly_dropped=0, wrongly_kept=1)
    assert guarded.kept_apart == {"NUMBER_GUARD": 1, "CARD_GUARD": 0}
    rows = [orjson.loads(line) for line in wrong.read_bytes().splitlines()]
    first = [(row["wrongly"], row["id"]) for row in rows if row["variant"] == "letters, no guard"]
    assert first == [("dropped", "e"), ("kept", "f")]
    dropped = rows[0]
    assert (dropped["kind"], dropped["leader"]["id"], dropped["ideal_leader"]) == ("near", "d", None)
    assert dropped["leader"]["text"] == TEXTS["d"]
    assert rows[1]["ideal_leader"]["similarity"] == 0.9


def test_similarity_and_rows_can_be_chosen(files: tuple[Path, Path]) -> None:
    variant = (Variant("product", number_guard=False, card_guard=False),)
    strict = run_evaluate(*files, scheme=SchemeConfig(), sieve=SieveConfig(), at=10_000, variants=variant)
    assert (strict.to_drop, strict.runs[0].exact, strict.runs[0].near) == (1, 1, 0)
    two = run_evaluate(*files, scheme=SchemeConfig(), sieve=SieveConfig(), rows=2, variants=variant)
    assert (two.rows, two.to_drop, two.runs[0].scores.every.f1) == (2, 1, 1.0)


def test_tables_name_every_variant_and_class(files: tuple[Path, Path]) -> None:
    report = run_evaluate(*files, scheme=SchemeConfig(), sieve=SieveConfig())
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(*report_tables(report))
    text = console.export_text()
    assert all(text.count(str(variant)) == 2 for variant in VARIANTS[2::3])
    assert "16-32" in text
    by_length = text[text.index("near recall by body length") :]
    row = next(line for line in by_length.splitlines() if str(VARIANTS[0]) in line)
    # The two near rows to drop have 16 characters or more; no row of the other classes is to be dropped.
    assert row.split(str(VARIANTS[0]))[1].replace("│", " ").split() == ["–", "0.500", "(2)", "–", "–", "–"]
    assert "3 to drop, 2 of them without an earlier equal body" in " ".join(text.split())


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "no JSON"),
        (b"[1]", "no text in 'text'"),
        (b'{"id": 1}', "no text in 'text'"),
        (b'{"text": "x"}', "no id in 'id'"),
        (b'{"id": 1, "text": 5}', "no text in 'text'"),
        (b"\xff", "not UTF-8"),
        (b"", "no JSON"),
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
    with pytest.raises(UsageError, match="none of its rows"):
        run_evaluate(texts, pairs, scheme=SchemeConfig(), sieve=SieveConfig())


def test_judged_pairs_meet_only_their_own_partner(tmp_path: Path) -> None:
    path = tmp_path / "judged.tsv"
    path.write_text(
        f"{JUDGED_HEADER}\ns\tc\ta\t0.9412\tsame\ttypo\ns\te\td\t0.9444\tdifferent\tnumbers\ns\tb\tf\t0.1\tunsure\t-\n"
    )
    pairs = read_judged(path)
    assert pairs[1] == JudgedPair("s", "e", "d", 9444, "different", "numbers")
    texts = {("s", name): text for name, text in TEXTS.items()}
    runs = run_judged(pairs, texts, SchemeConfig(), SieveConfig(), (8_500,))
    assert [(run.number_guard, run.card_guard) for run in runs] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]
    assert runs[0].dropped == {"same": 1, "different": 1, "unsure": 0}
    assert (runs[0].kept["unsure"], runs[0].precision, runs[1].precision) == (1, 0.5, 1.0)
    assert runs[1].kept_apart == [(pairs[1], "number_guard")]
    both = pool([runs[0], runs[1]])
    assert both.dropped == {"same": 2, "different": 1, "unsure": 0}
    assert judged_table(runs, "s").row_count == 4


def test_judged_pairs_without_text_or_with_another_label_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'z', which s does not hold"):
        run_judged(
            [JudgedPair("s", "z", "a", 1, "same", "")], {("s", "a"): "x"}, SchemeConfig(), SieveConfig(), ()
        )
    path = tmp_path / "judged.tsv"
    path.write_text(f"{JUDGED_HEADER}\ns\tc\ta\t0.9\tperhaps\ttypo\n")
    with pytest.raises(UsageError, match=r"judged.tsv:2: .*same, different, unsure"):
        read_judged(path)
