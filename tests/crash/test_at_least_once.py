"""`delivery: at-least-once`: a crash or a rebalance at every step loses nothing; some may come out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.test_crash_at_every_step import Deployment, Trap
from tests.driver import GROUP, OUTPUT, Process, origin_of
from tests.memory.broker import CrashError
from tests.model.checker import check_all_judged, check_complete, check_output, rebuild
from twinsieve.pipeline.worker.worker import WorkerStep


class PlainDeployment(Deployment):
    """The same processes, emitting without transactions."""

    def start(self, slot: str) -> Process:
        process = super().start(slot)
        self.world.processes.remove(process)
        return self.world.start(
            slot, snapshots=process.snapshots, index_config=process.index_config, delivery="at-least-once"
        )

    def check(self) -> None:
        self.feed()
        self.world.settle(tend=self.restart_dead)
        truth = rebuild(self.world)
        check_complete(self.world, truth, check_output(self.world, truth, in_order=False, once=False))
        check_all_judged(self.world, truth)
        assert not self.world.stops, self.world.stops


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("step", list(WorkerStep))
@pytest.mark.parametrize("what", ["crash", "rebalance"])
def test_nothing_is_lost(what: str, step: str, count: int, tmp_path: Path) -> None:
    deployment = PlainDeployment(count, tmp_path)
    group = deployment.world.cluster.group(GROUP)

    def act() -> None:
        if what == "crash":
            raise CrashError(step)
        group.rebalance()

    trap = Trap(step, 1 if step == WorkerStep.OPENED else 2, act)
    deployment.world.processes[0].hook = trap
    deployment.run_until(lambda: trap.sprung)
    assert trap.sprung, f"{step} was never reached"
    deployment.check()


def test_without_a_crash_everything_comes_out_once_and_in_order(tmp_path: Path) -> None:
    deployment = PlainDeployment(2, tmp_path)
    deployment.run_until(lambda: deployment.produced >= 30)
    deployment.world.settle()
    check_output(deployment.world, rebuild(deployment.world))


def test_a_crash_between_messages_and_offsets_brings_the_last_ones_again(tmp_path: Path) -> None:
    """The price that is stated: what stands here is why the default is exactly-once."""
    deployment = PlainDeployment(1, tmp_path)

    def crash() -> None:
        raise CrashError("sent, not committed")

    trap = Trap(WorkerStep.OFFSETS_SENT, 3, crash)
    deployment.world.processes[0].hook = trap
    deployment.run_until(lambda: trap.sprung)
    deployment.check()
    logs = deployment.world.cluster.topics[OUTPUT].logs
    origins = [origin_of(entry) for log in logs for _, entry in log.visible()]
    assert len(origins) > len(set(origins))
