"""What `audit` counts equals a plain count of the same file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.audit.dropped_rows import row
from tests.calling import SMALL, Run, setting
from tests.examples import examples
from tests.generated_posts import generate
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.tools.audit.store import drop_table
from twinsieve.pipeline.why.drops import Drop, Place
from twinsieve.stages.differ.rules import Rule

HOUR_MS = 3_600_000


def counts(run: Run, path: Path, *words: str | Path) -> Any:
    found = run("audit", path, "--json", *words)
    assert (found.code, found.err) == (0, "")
    return json.loads(found.out)


def drop(position: int | None, time_ms: int | None = None) -> Drop:
    return Drop(Place(position, None, None, None, None), None, "near", "similarity", 0.9, (), time_ms)


def test_json_equals_a_plain_count_of_the_file(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", generate(4_000, seed=11))
    path, apart = tmp_path / "dropped.jsonl", tmp_path / "apart.jsonl"
    files = ("-o", tmp_path / "u.jsonl", "--duplicates", path, "--kept-apart", apart)
    assert run("dedup", posts, "-q", *files, *SMALL).code == 0
    rows, said = read_lines(path), counts(run, path, "--top", "7", "--kept-apart", apart)
    near = [one for one in rows if one["stage"] == "near"]
    assert said["drops"] == len(rows) > 500
    assert said["stages"] == Counter(one["stage"] for one in rows)
    assert said["flags"] == Counter(flag for one in rows for flag in one.get("flags", []))
    hundredths = Counter(int(f"{one['similarity']:.4f}"[2:4]) for one in near)
    assert {round(100 * one["similarity"]): one["drops"] for one in said["near"]} == hundredths
    sizes = Counter(one["duplicate_of"] for one in rows if one["duplicate_of"] is not None)
    assert (said["leaders"], said["without_leader"]) == (len(sizes), len(rows) - sizes.total())
    biggest = sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:7]
    assert [(one["position"], one["drops"]) for one in said["clusters"]] == biggest
    first, last = rows[0]["position"], rows[-1]["position"]
    assert said["rows"] == {
        "first": first, "last": last, "rows": last - first + 1, "share": len(rows) / (last - first + 1),
    }  # fmt: skip
    dropped = {one["position"] for one in rows}
    for part in said["rate"]:
        inside = [position in dropped for position in range(part["first"], part["last"] + 1)]
        assert (part["rows"], part["drops"], part["share"]) == (
            len(inside), sum(inside), sum(inside) / len(inside),
        )  # fmt: skip
    assert sum(part["rows"] for part in said["rate"]) == last - first + 1
    times = said["times"]
    assert times["untimed"] == times["before"] == times["after"] == 0
    for part in times["parts"]:
        end = part["start_ms"] + times["span_ms"]
        assert part["drops"] == sum(part["start_ms"] <= one["time_ms"] < end for one in rows)
    assert sum(part["drops"] for part in times["parts"]) == len(rows)
    assert said["kept_apart"] == Counter(one["reason"] for one in read_lines(apart))
    assert "text" not in json.dumps(said)


def test_other_measures_are_counted_by_value(run: Run, tmp_path: Path) -> None:
    posts = write_rows(tmp_path / "posts.jsonl", generate(1_500, seed=5))
    path = tmp_path / "dropped.jsonl"
    hamming = setting("near.method=hamming")
    assert run("dedup", posts, "-q", "-o", tmp_path / "u", "--duplicates", path, *SMALL, *hamming).code == 0
    distances = Counter(one["distance"] for one in read_lines(path) if "distance" in one)
    said = counts(run, path)
    assert {one["distance"]: one["drops"] for one in said["near"]} == distances
    (line,) = [line for line in run("audit", path).out.splitlines() if "near, 2 bits apart" in line]
    assert line.split()[-2] == str(distances[2]) != "0"
    shared = [row(n, 1, shared=n) for n in range(2, 5)]
    for one in shared:
        del one["similarity"]
    assert counts(run, write_rows(tmp_path / "s.jsonl", shared))["near"] == [
        {"shared": n, "drops": 1} for n in range(2, 5)
    ]


def test_similarity_belongs_to_its_own_hundredth(run: Run, tmp_path: Path) -> None:
    """0.29 * 100 is 28.999…; a similarity has four digits."""
    rows = [row(n + 1, 1, similarity=n / 10_000) for n in range(10_001)]
    said = counts(run, write_rows(tmp_path / "d.jsonl", rows))
    assert [(one["similarity"], one["drops"]) for one in said["near"]] == [
        *((n / 100, 100) for n in range(100)),
        (1.0, 1),
    ]


@given(st.lists(st.integers(0, 20), min_size=1), st.integers(1, 30))
@settings(deadline=None, max_examples=examples(20))
def test_leaders_are_counted_as_a_counter_does(positions: list[int], wanted: int) -> None:
    drops = [replace(drop(n), leader=Place(at, None, None, None, None)) for n, at in enumerate(positions)]
    plain = Counter(positions)
    with drop_table(drops) as found:
        assert (found.leaders, found.unled) == (len(plain), 0)
        assert dict(found.sizes) == Counter(plain.values())
        shown = [(one.leader.position, one.drops) for one in found.clusters(wanted, 1, 10)]
    assert shown == sorted(plain.items(), key=lambda one: (-one[1], one[0]))[:wanted]


@given(st.sets(st.integers(1, 400), min_size=1), st.integers(2, 12))
@settings(deadline=None, max_examples=examples(20))
def test_parts_of_the_run_hold_each_row_once(positions: set[int], parts: int) -> None:
    ordered = sorted(positions)
    with drop_table(drop(position) for position in ordered) as table:
        found = table.row_parts(parts)
    assert 1 <= len(found) <= parts
    rows = [number for part in found for number in range(part.first, part.last + 1)]
    assert rows == list(range(ordered[0], ordered[-1] + 1))
    for part in found:
        assert part.drops == sum(part.first <= position <= part.last for position in ordered)


@pytest.mark.parametrize("positions", [[3, 2], [2, 2], [1, None], [None]])
def test_no_share_is_claimed_where_positions_do_not_ascend(
    run: Run, tmp_path: Path, positions: list[int | None]
) -> None:
    rows = [row(1, 9, position=position) for position in positions]
    said = counts(run, write_rows(tmp_path / "d.jsonl", rows))
    assert (said["rows"], said["rate"]) == (None, [])


@given(st.lists(st.integers(-10 * HOUR_MS, 10_000 * HOUR_MS), min_size=1, max_size=60), st.integers(3, 20))
@settings(deadline=None, max_examples=examples(20))
def test_parts_of_the_time_hold_each_drop_once(times: list[int], parts: int) -> None:
    with drop_table(drop(1, time_ms) for time_ms in times) as table:
        found = table.times(parts)
    assert 1 <= len(found.parts) <= parts
    assert sum(drops for _, drops in found.parts) + found.before + found.after == len(times)
    for start_ms, drops in found.parts:
        assert start_ms % found.span_ms == 0
        assert drops == sum(start_ms <= time_ms < start_ms + found.span_ms for time_ms in times)


def test_few_wrong_years_do_not_make_all_others_one_part() -> None:
    times = [n * HOUR_MS for n in range(1_000)]
    with drop_table(drop(1, time_ms) for time_ms in [*times, 200_000_000_000_000, -9 * 10**12]) as table:
        found = table.times(60)
    assert (found.before, found.after) == (1, 1)
    assert len(found.parts) > 20
    assert sum(drops for _, drops in found.parts) == 1_000


@given(st.integers(0, 300), st.integers(0, 40))
@settings(deadline=None, max_examples=examples(20))
def test_sample_is_evenly_spread(total: int, wanted: int) -> None:
    with drop_table(drop(n) for n in range(total)) as table:
        positions = [one.message.position or 0 for one in table.spread(wanted, 10)]
    assert len(positions) == min(total, wanted)
    gaps = {after - before for before, after in pairwise(positions)} or {0}
    assert max(gaps) - min(gaps) <= 1


def test_a_leader_without_position_is_counted_by_its_place(run: Run, tmp_path: Path) -> None:
    rows = [row(n, 5, duplicate_of="x", leader_line=n % 2) for n in range(6, 11)]
    said = counts(run, write_rows(tmp_path / "d.jsonl", rows))
    assert [(one["line"], one["drops"]) for one in said["clusters"]] == [(0, 3), (1, 2)]
    assert (said["leaders"], said["without_leader"]) == (2, 0)


def test_summary_shows_rate_and_reasons(run: Run, tmp_path: Path) -> None:
    drops = write_rows(
        tmp_path / "d.jsonl", [row(n, 1, time_ms=n * HOUR_MS) for n in range(1, 40) if n % 4 == 0]
    )
    apart = {
        "position": 3, "id": 1, "source": "s", "line": 3, "apart_from": 1, "apart_from_id": 2,
        "apart_from_source": "s", "apart_from_line": 1, "reason": "number", "says": "13\x1b", "apart_from_says": "12",
        "similarity": 0.9, "text": "13 dead\u202e", "apart_from_text": "12 dead",
    }  # fmt: skip
    pairs = write_rows(tmp_path / "a.jsonl", [apart, apart | {"reason": "mood", "says": None}, apart])
    found = run("audit", drops, "--kept-apart", pairs)
    assert found.code == 0
    lines = [" ".join(line.replace("│", " ").split()) for line in found.out.splitlines()]
    assert "rows 4 to 36, first to last drop" in lines
    assert "6 10 1 20.0% 1970-01-01 08:00" in lines
    assert {f"number 2 {Rule.NUMBER.meaning}", "mood 1", "3 kept apart"} <= set(lines)
    assert "s:3 (id 1), number: 12 → 13\\x1b" in lines
    assert "kept 13 dead\\u202e" in lines
    assert not {"\x1b", "\u202e"} & set(found.out)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "is not JSON; give the file that dedup --kept-apart wrote"),
        ("[]", "is not a row that was kept apart; give the file that dedup --kept-apart wrote"),
        ('{"apart_from": 1}', "is not a row that was kept apart"),
        ('{"apart_from": 1, "reason": 3}', "is not a row that was kept apart"),
    ],
)
def test_kept_apart_of_another_kind_is_refused_with_its_line(
    run: Run, tmp_path: Path, line: str, says: str
) -> None:
    drops = write_rows(tmp_path / "d.jsonl", [row(2, 1)])
    (tmp_path / "a.jsonl").write_text(f'{{"apart_from": 1, "reason": "number"}}\n{line}\n')
    found = run("audit", drops, "--kept-apart", tmp_path / "a.jsonl")
    assert found.code == 2
    assert f"a.jsonl:2: {says}" in found.err
