"""A process crashes at each step while a message that a topic refuses is found, withdrawn and buried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.test_crash_at_every_step import STEPS, Deployment, Trap, crash
from tests.driver import DEAD, DUPLICATES, OUTPUT, post
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.worker.config import WorkerStep

pytestmark = pytest.mark.matrix

_NEVER_AGAIN = {IndexStep.RESTORED, WorkerStep.REPORTED}
"""Steps that need not follow a refusal."""


def is_bad(key: bytes | None, _: bytes | None) -> bool:
    return key == b"bad"


@pytest.mark.parametrize("topic", [OUTPUT, DUPLICATES, DEAD])
@pytest.mark.parametrize("step", [step for step in STEPS if step not in _NEVER_AGAIN])
def test_a_crash_around_a_refused_message_loses_nothing(step: str, topic: str, tmp_path: Path) -> None:
    for occurrence in (1, 4):
        deployment = Deployment(1, tmp_path / str(occurrence))
        world = deployment.world
        process = world.processes[0]
        refusals = 0

        def refuses(key: bytes | None, value: bytes | None) -> bool:
            nonlocal refusals
            bad = key is None if topic == DEAD else is_bad(key, value)
            refusals += bad
            return bad

        world.refuse(topic, refuses)
        world.produce("in", 0, [post("before"), post("twice")])
        world.produce("in", 0, [post("once")], b"bad")
        world.produce("in", 0, [b"{"], None)
        trap = Trap(step, occurrence, crash)
        process.hook = lambda at: trap(at) if refusals else None  # noqa: B023
        # Judged before its copy.
        world.run(20)
        world.produce("in", 1, [post("once"), post("aside")])
        world.produce("in", 0, [post("twice")], b"bad")
        world.produce("in", 0, [post("behind")])
        for _ in range(300):
            if trap.sprung:
                break
            world.run(1)
        assert trap.sprung or occurrence > 1, f"{step} was never reached"
        deployment.check()
        texts = world.cluster.values(OUTPUT)
        assert texts.count(post("behind")) == texts.count(post("before")) == 1
        buried = {OUTPUT: post("once"), DUPLICATES: post("twice")}
        dead = world.cluster.values(DEAD)
        assert sorted(filter(None, dead)) == sorted(filter(None, [b"{", buried.get(topic)]))
        for number in range(2):
            for _, entry in world.cluster.log(Partition(DEAD, number)).visible():
                reason = b"invalid_json" if entry.value in (b"{", b"") else b"refused"
                assert dict(entry.headers)["twinsieve-reason"] == reason
