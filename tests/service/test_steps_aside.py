"""An index that fails again and again for a reason of its own leaves its group, and comes back after longer pauses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.service.test_changed_settings import base, posts
from tests.service.turned import Turned
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import AbortableError, MovedOnError
from twinsieve.stages.judge.scheme import Scheme

GROUP = Names("t").index


class Faulty:
    """A hook of a process whose transactions are refused, while `on`, whatever they hold."""

    def __init__(self, error: Callable[[str], Exception] = AbortableError) -> None:
        self.on = False
        self.met = 0
        self._error = error

    def __call__(self, step: str) -> None:
        if self.on and step == "transactor.commit.before":
            self.met += 1
            raise self._error("commit: INVALID_TIMESTAMP")


@pytest.fixture
def three(tmp_path: Path, scheme: Scheme) -> Callable[[Faulty, Faulty], tuple[Turned, Turned, Turned]]:
    """A worker, and two indexes with these faults, of which the first one judges."""

    def make(one: Faulty, two: Faulty) -> tuple[Turned, Turned, Turned]:
        settings = base(str(tmp_path))
        first = Turned(settings, scheme, hook=one, name="a")
        worker = Turned(settings, scheme, world=first.world, name="w")
        worker.loops = [worker.worker]
        first.loops = [first.index]
        run((first, worker), 5.0)
        second = Turned(settings, scheme, world=first.world, hook=two, name="b")
        second.loops = [second.index]
        run((first, worker, second), 20.0)
        assert first.value("index_live") == 1
        return worker, first, second

    return make


Three = Callable[[Faulty, Faulty], tuple[Turned, Turned, Turned]]


def run(
    processes: Sequence[Turned],
    seconds: float,
    holds: Callable[[], bool] | None = None,
    each_s: float = 0.1,
) -> bool:
    clock = processes[0].clock
    end_s = clock.monotonic_s() + seconds
    while clock.monotonic_s() < end_s:
        for each in processes:
            each.turn(1)
        clock.sleep(each_s)
        if holds is not None and holds():
            return True
    return False


def asides(turned: Turned) -> float:
    return turned.value("index_asides_total") or 0.0


def test_a_healthy_standby_judges_and_the_other_says_why(
    three: Three, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Faulty()
    made = three(fault, Faulty())
    worker, bad, good = made
    fault.on = True
    worker.world.produce(posts(1, 20))
    assert run(made, 60.0, worker.world.done), "the standby judges"
    assert asides(bad) == 1
    assert good.value("index_live") == 1
    assert "leaves its group for 30 s" in caplog.text
    assert "INVALID_TIMESTAMP" in bad.index.remark
    assert not bad.index.ready
    assert bad.index.alive
    members = bad.world.cluster.group(GROUP).members.values()
    assert [member.instance for member in members] == ["b-index"]


def test_it_comes_back_and_pauses_grow_until_it_records_again(three: Three) -> None:
    fault = Faulty()
    made = three(fault, Faulty())
    worker, bad, _ = made
    fault.on = True
    away = []
    for number in range(1, 6):
        worker.world.produce(posts(number, 3))
        assert run(made, 120.0, worker.world.done), "the other one judges"
        assert asides(bad) == number
        left_s = worker.clock.monotonic_s()
        assert run(made, 900.0, lambda: not bad.index.remark and bad.index.ready, each_s=1.0)
        away.append(worker.clock.monotonic_s() - left_s)
        if number == 4:
            fault.on = False
        # It gets the log again.
        if bad.value("index_live") == 0:
            worker.world.cluster.group(GROUP).rebalance()
        assert run(made, 60.0, lambda: bad.value("index_live") == 1), number
        if number == 4:
            # Once it has recorded something, a fault counts anew.
            worker.world.produce(posts(100, 3))
            assert run(made, 60.0, worker.world.done)
            fault.on = True
    assert away[0] < 40 < away[1] < 70 < away[2] < 140 < away[3]
    assert away[4] < 40


def test_two_with_the_same_fault_do_not_pass_the_role_round(three: Three) -> None:
    one, two = Faulty(), Faulty()
    made = three(one, two)
    worker, first, second = made
    one.on = two.on = True
    worker.world.produce(posts(1, 20))
    run(made, 900.0, each_s=2.0)
    assert 2 <= asides(first) + asides(second) <= 9
    # Somebody always tries, so that it goes on as soon as it can.
    one.on = two.on = False
    assert run(made, 20.0, worker.world.done)


@pytest.mark.parametrize("stranger", [False, True])
def test_who_is_alone_stays(stranger: bool, tmp_path: Path, scheme: Scheme) -> None:
    """A consumer that joins the group judges nothing, so it does not count as an index."""
    fault = Faulty()
    alone = Turned(base(str(tmp_path)), scheme, hook=fault)
    alone.run(5.0)
    fault.on = True
    if stranger:
        alone.world.cluster.group(GROUP).join(("nothing",), None, 1e9)
    alone.world.produce(posts(1, 20))
    run((alone,), 120.0, each_s=0.5)
    assert fault.met > 10
    assert asides(alone) == 0
    fault.on = False
    alone.run_until(alone.world.done, 20.0)


def test_a_group_that_moves_on_is_no_reason(three: Three) -> None:
    fault = Faulty(MovedOnError)
    made = three(fault, Faulty())
    worker, first, _ = made
    fault.on = True
    worker.world.produce(posts(1, 20))
    run(made, 60.0, lambda: fault.met >= 6)
    assert fault.met >= 6
    assert asides(first) == 0
