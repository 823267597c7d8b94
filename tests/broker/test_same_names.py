"""Two processes of one name, as two pods by a mistake in a manifest: one ends and says why, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.broker.deployment import Deployment, Watcher, in_thread, judge
from tests.broker.load import Load
from tests.broker.worlds import DEADLINE_S, Connect, assigned, fresh, make_topic, messages, read_all, until
from twinsieve.pipeline.broker.records import AbortableError, Committed, FatalError, Partition

pytestmark = pytest.mark.needs("broker")
_RATE = 200.0
_NOTICED_S = 0.5
"""The client has noticed by then, in its own thread, that a message was refused."""


@pytest.mark.parametrize(
    "role", ["both", *(pytest.param(name, marks=pytest.mark.minutes) for name in ("worker", "index"))]
)
def test_of_two_processes_of_one_name_one_ends_and_says_why(bootstrap: str, role: str) -> None:
    deployment = Deployment(bootstrap, fresh("names"))
    load = Load(bootstrap, f"{deployment.app}.in", 1_000_000, _RATE)
    watcher = Watcher(bootstrap, deployment.outputs)

    def logs() -> str:
        return "\n".join(deployment.log(name).read_text()[-3000:] for name in deployment.processes)

    try:
        deployment.create_topics()
        in_thread(watcher.run)
        loading = in_thread(load.run)
        if role != "both":
            deployment.start("other", {"worker": "index", "index": "worker"}[role])
        first = deployment.start("pod-0", role)
        until(lambda: len(watcher.seen) > _RATE)

        second = deployment.start("pod-0", role, tag="-again")

        until(lambda: first.poll() is not None or second.poll() is not None)
        ended, stays = ("pod-0", second) if first.poll() is not None else ("pod-0-again", first)
        seen = len(watcher.seen)
        until(lambda: len(watcher.seen) > seen + _RATE, logs)
        load.stop.set()
        loading.join(DEADLINE_S)
        until(lambda: load.sent_s.keys() <= watcher.seen.keys())
        assert stays.poll() is None
        assert deployment.processes[ended].wait(DEADLINE_S) == 1
        said = [line for line in deployment.log(ended).read_text().splitlines() if "level=critical" in line]
        assert len(said) == 1
        assert "another process has taken this member name" in said[0]
        assert "--member" in said[0]
        found = judge(load, watcher, deployment.outputs[0])
        assert found.good, found
    finally:
        load.stop.set()
        watcher.stop.set()
        deployment.close()


@pytest.mark.parametrize("taken", ["between two transactions", "in a transaction"])
def test_a_process_whose_slot_is_taken_hears_that_its_name_is_taken_next(
    bootstrap: str, taken: str, connect: Connect
) -> None:
    """A process that starts takes the slot first; the older one would take the name back if it did not wait."""
    # The older one waits for half a session.
    broker, newer = (connect(bootstrap, session_timeout="30s") for _ in range(2))
    group, slot = fresh("g"), fresh("tx")
    log, out = Partition(make_topic(broker), 0), Partition(make_topic(broker), 0)
    membership = assigned(broker.group_consumer(group, [log.topic], "slot"), 1).membership
    transactor: Any = broker.transactor(slot)

    def commit(number: int, meanwhile: Callable[[], None] = lambda: None) -> None:
        transactor.begin()
        transactor.send(out.topic, None, messages([b"of the first"]))
        time.sleep(_NOTICED_S)
        meanwhile()
        transactor.send_offsets({log: Committed(number)}, membership)
        transactor.commit()

    commit(1)

    def join() -> None:
        time.sleep(2 * _NOTICED_S)
        assigned(newer.group_consumer(group, [log.topic], "slot"), 1)

    def take() -> None:
        newer.transactor(slot)
        in_thread(join)

    def take_and_send() -> None:
        take()
        transactor.send(out.topic, None, messages([b"never"]))
        transactor._send_unsent()
        # It asks for a new epoch now, and for some milliseconds does not say why its calls fail.
        until(lambda: any(future.failed() for future in transactor._futures))

    def refused() -> None:
        try:
            if taken == "in a transaction":
                commit(2, take_and_send)
            else:
                take()
                commit(2)
        except AbortableError:
            transactor.abort()

    with pytest.raises(FatalError) as heard:
        refused()
    assert heard.value.fenced
    assert read_all(newer, out).values == [b"of the first"]
