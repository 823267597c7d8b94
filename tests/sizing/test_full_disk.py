"""What `lint` says of a disk that takes no segments: all of the near window, or what `state.memory` allows."""

from __future__ import annotations

import re

import pytest

from tests.calling import Run, run
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.stages.contract import Window
from twinsieve.stages.exact.bloom import BloomGenerations
from twinsieve.stages.judge.near_window import near_bytes

__all__ = ["run"]

GIB = 1 << 30
SEGMENT = 1_000_000


def settings(window: int, memory: int | None) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "near": {"window": {"messages": window}, "segment": SEGMENT},
            "state": {"memory": memory if memory is None else f"{memory // GIB}GiB"},
        }
    )


def near_with_full_disk(made: Settings) -> int:
    """Bytes of the near window, when none of its segments can be written."""
    held, exact = held_by(made, 1), made.exact.window.messages
    return held.sieve - BloomGenerations.bytes_for(Window(exact), made.exact.error_rate) + held.unwritten


def test_without_a_limit_of_its_own_all_of_the_window_is_in_memory() -> None:
    made = settings(50 * SEGMENT, None)
    every = sum(near_bytes(sieve_config(made, ""), 51).values())
    assert near_with_full_disk(made) == pytest.approx(every, rel=0.01)


@pytest.mark.parametrize("memory", [8 * GIB, 16 * GIB])
def test_state_memory_bounds_it(memory: int) -> None:
    assert near_with_full_disk(settings(50 * SEGMENT, memory)) == pytest.approx(memory, rel=0.01)


def test_two_segments_are_there_whatever_state_memory_is() -> None:
    made = settings(50 * SEGMENT, 1 * GIB)
    two = sum(near_bytes(sieve_config(made, ""), 2).values())
    assert near_with_full_disk(made) == pytest.approx(two, rel=0.01)


def test_a_window_of_one_segment_takes_nothing_more() -> None:
    assert held_by(settings(SEGMENT, None), 1).unwritten == 0


def test_lint_prints_it_for_a_window_of_several_segments_alone(run: Run) -> None:
    for window, says in ((SEGMENT, False), (3 * SEGMENT, True)):
        flags = ["--set", f"near.window.messages={window}", "--set", f"near.segment={SEGMENT}"]
        said = run("lint", "--rate", "1000", "--set", "app=t", *flags).out
        found = re.search(r"with a full disk.*: ([\d,]+) MiB; judging pauses", said)
        assert (found is not None) == says
