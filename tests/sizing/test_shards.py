"""`lint --machines`: a proposal is valid and fits. If there is none, the machines that the error names are enough."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.shards.rendezvous import Span, first_of
from twinsieve.pipeline.sizing.cover import Asked
from twinsieve.pipeline.sizing.shards import Plan, plan_shards
from twinsieve.stages.errors import UsageError

GIB, DAY_MS = 1 << 30, 86_400_000
WEEK = Asked(5_000.0, 7 * DAY_MS, 96 * GIB, 0.4)


def _with(**near: object) -> Settings:
    return Settings.model_validate({"near": {"threads": 1} | near})


def _fits(plan: Plan, asked: Asked) -> bool:
    is_quick = plan.shard.cores <= plan.processes and plan.index.cores <= 1
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
    fast = plan_shards(_with(threads=2), replace(WEEK, rate=50_000.0, cover_ms=DAY_MS), 24)
    assert fast.processes > 1


@pytest.mark.parametrize("near", [{"method": "hamming"}, {"candidates": "scan"}])
def test_other_methods_have_no_segments(near: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        plan_shards(_with(**near), WEEK, 8)
