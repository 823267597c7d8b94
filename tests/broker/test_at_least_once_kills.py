"""`delivery: at-least-once` through kill -9 of whole processes: nothing is lost; what comes out twice is counted."""

from __future__ import annotations

from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load
from tests.broker.worlds import fresh

_RATE = 200.0
_DEADLINE_S = 90.0


def test_nothing_is_lost_when_processes_are_killed(bootstrap: str, client: str) -> None:
    deployment = Deployment(bootstrap, client, fresh("alo"), delivery="at-least-once")
    deployment.create_topics()
    load = Load(bootstrap, f"{deployment.app}.in", int(600 * _RATE), _RATE)
    watcher = Watcher(bootstrap, deployment.outputs)

    def comes_out(messages: float) -> bool:
        wanted = len(watcher.seen) + messages
        return poll_until(lambda: len(watcher.seen) >= wanted, _DEADLINE_S)

    try:
        for member in ("a", "b"):
            deployment.start(member)
        watching, loading = in_thread(watcher.run), in_thread(load.run)
        for member in ("a", "b"):
            assert comes_out(_RATE), "it stands still"
            deployment.kill(member)
            deployment.start(member)
        load.stop.set()
        loading.join(_DEADLINE_S)
        poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), _DEADLINE_S)
        watcher.stop.set()
        watching.join(10.0)
        found = judge(load, watcher, deployment.outputs[0])
        print(f"{client}: {found.messages} messages, {found.extra} of them out again")
        assert load.failed == 0
        assert found.lost == 0, found
        assert found.orphans == 0, found
        assert watcher.seen.keys() <= load.sent_s.keys(), "what was never put in came out"
    finally:
        watcher.stop.set()
        load.stop.set()
        deployment.close()
