"""`lint --machines`: a proposal is valid and fits. If there is none, the machines that the error names are enough."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import Run
from twinsieve.pipeline.settings.load import check_tree, load_settings, tree_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.segment_bytes import Texts, hot_bytes, segment_parts
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.shards.rendezvous import Span, first_of
from twinsieve.pipeline.sizing.cover import Asked
from twinsieve.pipeline.sizing.shards import Plan, plan_shards
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.near_window import segment_count

GIB, DAY_MS = 1 << 30, 86_400_000
WEEK = Asked(5_000.0, 7 * DAY_MS, 96 * GIB, 0.4)


def _with(**near: object) -> Settings:
    return Settings.model_validate({"near": {"threads": 1} | near})


def _fits(plan: Plan, asked: Asked) -> bool:
    is_quick = plan.shard.cores <= plan.processes and plan.index.looking_up <= 1
    return max(plan.index.memory, plan.shard.memory) <= asked.usable and is_quick


@given(
    st.floats(10, 100_000),
    st.integers(DAY_MS // 24, 7 * DAY_MS),
    st.integers(8, 512),
    st.integers(2, 64),
    st.integers(1, 3),
)
def test_a_plan_is_valid_and_fits_and_a_refusal_says_what_would(
    rate: float, cover_ms: int, gib: int, machines: int, replicas: int
) -> None:
    asked, settings = Asked(rate, cover_ms, gib * GIB, 0.4), _with(replicas=replicas)
    try:
        plan = plan_shards(settings, asked, machines)
    except UsageError as error:
        more, larger = (
            re.search(r"(\S+) machines of this", str(error)),
            re.search(r"of (\S+) GiB", str(error)),
        )
        if more:
            assert _fits(plan_shards(settings, asked, int(more[1].replace(",", ""))), asked)
        if larger:
            other = replace(asked, machine=int(larger[1].replace(",", "")) * GIB)
            assert _fits(plan_shards(settings, other, machines), other)
        return
    assert _fits(plan, asked)
    assert not check_tree(tree_of(dict(plan.keys)))[1]
    assert plan.machines == machines - 1
    assert plan.index_memory <= asked.usable


def test_the_shard_with_the_most_segments_has_room_for_them() -> None:
    """As the hash of shards deals them to members of other names."""
    plan = plan_shards(_with(), WEEK, 8)
    spans = [Span(number * 10, number * 10 + 10) for number in range(plan.segments)]
    largest = []
    for group in range(50):
        members = frozenset(f"{group}-{number}" for number in range(plan.machines * plan.processes))
        first = [first_of(span, members, 1)[0] for span in spans]
        largest.append(max(map(first.count, members)))
    assert sum(each <= plan.most for each in largest) >= 40
    assert plan.most < 2 * plan.segments / plan.machines


def test_replicas_cost_memory_and_a_faster_stream_more_shards_a_machine() -> None:
    one, two = (plan_shards(_with(replicas=each), WEEK, 20) for each in (1, 2))
    assert two.shard.memory > 1.5 * one.shard.memory
    fast = plan_shards(_with(threads=2), replace(WEEK, rate=50_000.0, cover_ms=DAY_MS), 40)
    assert fast.processes > 1


@pytest.mark.parametrize("near", [{"method": "hamming"}, {"candidates": "scan"}])
def test_other_methods_have_no_segments(near: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        plan_shards(_with(**near), WEEK, 8)


def test_what_the_command_proposes_adds_up(run: Run, tmp_path: Path) -> None:
    path, rate = tmp_path / "week.yaml", 5_000
    words = ("--rate", str(rate), "--cover", "7d", "--repeats", "0.4", "--machines", "8", "--memory", "96GiB")
    path.write_text(run("lint", *words).out)
    assert run("lint", path).code == 0
    said = path.read_text().replace(",", "")
    settings = load_settings(path, {})
    config = sieve_config(settings, "")
    parts, sealed = segment_parts(config, Texts()), segment_count(config) - 1
    assert settings.near.window.messages >= 0.6 * rate * 7 * 86_400
    machines, each = (int(found) for found in re.findall(r"(\d+) with (\d+) shard", said)[0])
    most = int(re.findall(r"answers for some (\d+)", said)[0])
    assert machines + 1 == 8
    assert most * machines * each >= sealed * settings.near.replicas

    index, shard = (
        [float(cell) for cell in re.findall(rf"#   {name} +(.*)", said)[0].split()]
        for name in ("index and a worker", "shards")
    )
    assert max(index[0], shard[0]) <= 96 * 7 / 8
    assert settings.state.memory is not None
    assert most * hot_bytes(parts) <= settings.state.memory <= shard[0] / each * GIB
    assert index[1] * 1e9 >= sealed * sum(parts.values())
    assert machines * shard[3] <= index[2], "what shards send the index gets, beside the log"
    sent_us, read_us, judged_us = 40.0, 30.0, 0.1 * sealed
    assert index[4] >= (sent_us + read_us + judged_us) * rate / 1e6
    pages, a_second = (int(found) for found in re.findall(r"(\d+) pages .* (\d+) a second", said)[0])
    assert pages * rate == a_second
