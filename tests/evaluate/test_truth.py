"""Reading pairs, the ideal leader pass and the scores, on cases small enough to count by hand."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.tools.evaluate.scores import Counts, score
from twinsieve.pipeline.tools.evaluate.truth import HEADER, Pair, Truth, covered_rows, ideal_pass, read_pairs
from twinsieve.stages.errors import UsageError


@pytest.mark.parametrize("packed", [False, True])
def test_pairs_are_read_plain_or_packed(tmp_path: Path, packed: bool) -> None:
    text = f"{HEADER}\nb\ta\t0.8571\tnear\nc\ta\t1.0000\tbody\n".encode()
    path = tmp_path / ("pairs.tsv.gz" if packed else "pairs.tsv")
    path.write_bytes(gzip.compress(text) if packed else text)
    assert read_pairs(path) == [Pair("b", "a", 8571, False), Pair("c", "a", 10000, True)]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("b\ta\t0.9", "3 columns"),
        ("b\ta\t0.9\tfar", "'far'"),
        ("b\ta\tnan\tnear", "'nan'"),
        ("b\ta\tinf\tnear", "'inf'"),
        ("b\ta\t1.2\tnear", "'1.2'"),
    ],
)
def test_a_wrong_pair_is_named_by_path_and_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{HEADER}\nb\ta\t1\traw\n{line}\n")
    with pytest.raises(UsageError, match=f"pairs.tsv:3: .*{complaint}"):
        read_pairs(path)


def test_a_file_that_is_no_pairs_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv.gz"
    with pytest.raises(FileError, match="cannot be read"):
        read_pairs(path)
    path.write_bytes(gzip.compress(f"{HEADER}\n".encode())[:-4])
    with pytest.raises(FileError, match="fetch it again"):
        read_pairs(path)
    path.write_bytes(gzip.compress(b"id_a\tid_b\n"))
    with pytest.raises(UsageError, match=r"gz:1: .*first line"):
        read_pairs(path)
    path.write_bytes(f"{HEADER}\r\n".encode() + b"b\ta\t1\traw\r\n\xff\ta\t1\traw\r\n")
    with pytest.raises(UsageError, match=r"gz:3: is not UTF-8"):
        read_pairs(path)


def test_only_kept_rows_lead_and_the_most_alike_is_named() -> None:
    pairs = [
        Pair("b", "a", 9000, False),
        Pair("c", "b", 9900, False),
        Pair("d", "a", 9000, False),
        Pair("d", "c", 9500, False),
    ]
    truth = ideal_pass("abcd", pairs, 8500)
    assert truth.leaders == [-1, 0, -1, 2]
    assert truth.similarities == [-1, 9000, -1, 9500]


def test_an_equal_body_matches_at_any_threshold_and_marks_its_row_as_seen() -> None:
    truth = ideal_pass("ab", [Pair("b", "a", 10000, True)], 10000)
    assert (truth.leaders, truth.seen_before) == ([-1, 0], [False, True])


def test_a_prefix_of_the_file_leaves_later_pairs_out() -> None:
    pairs = [Pair("b", "a", 9000, False), Pair("z", "a", 9000, False)]
    assert ideal_pass("ab", pairs, 8500).leaders == [-1, 0]
    assert covered_rows("abxyzw", pairs) == 5


def test_unordered_pairs_and_repeated_ids_are_refused() -> None:
    with pytest.raises(UsageError, match="swap"):
        ideal_pass("ab", [Pair("a", "b", 9000, False)], 8500)
    with pytest.raises(UsageError, match="'a' occurs twice"):
        ideal_pass("aba", [], 8500)


def test_near_scores_leave_out_rows_with_an_earlier_equal_body() -> None:
    truth = Truth(
        leaders=[-1, 0, 0, 0, -1, -1],
        similarities=[-1, 10000, 9000, 9000, -1, -1],
        seen_before=[False, True, False, False, False, False],
    )
    scores = score(truth, [False, True, True, False, True, False], [9, 9, 9, 40, 40, 200])
    assert scores.every == Counts(hits=2, wrongly_dropped=1, wrongly_kept=1)
    assert scores.near == Counts(hits=1, wrongly_dropped=1, wrongly_kept=1)
    assert scores.near_by_length["8-16"] == Counts(hits=1)
    assert scores.near_by_length["32-64"] == Counts(wrongly_dropped=1, wrongly_kept=1)
    assert (scores.near.precision, scores.near.recall, scores.near.f1) == (0.5, 0.5, 0.5)


def test_counts_pool_by_adding() -> None:
    assert Counts(1, 2, 3) + Counts(10, 20, 30) == Counts(11, 22, 33)
    assert (Counts().precision, Counts().recall, Counts().f1) == (1.0, 1.0, 1.0)
