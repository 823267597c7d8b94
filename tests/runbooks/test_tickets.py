"""The page of each alert that is a ticket is followed as it stands, against a real broker, in the state that it is about."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.broker.cluster import Cluster
from tests.broker.deployment import in_thread, poll_until
from tests.broker.fixtures import _shared, bootstrap
from tests.broker.memory_groups import memory_groups
from tests.broker.stranger import set_topics, transaction
from tests.broker.worlds import fresh
from tests.deploy import prometheus as distribution
from tests.deploy.scraping import scraping
from tests.runbooks.fixtures import alerts, on_call, watched, watched_only
from tests.runbooks.on_call import OnCall
from tests.runbooks.states import lose_index, posts, well

__all__ = ["_shared", "alerts", "bootstrap", "on_call"]

_GIB = 1 << 30


def test_behind(on_call: OnCall) -> None:
    lose_index(on_call, *posts(2_000))
    on_call.look("behind")
    on_call.start("index")
    on_call.do("behind")
    on_call.see_the_end("behind")


@pytest.mark.minutes
@watched_only
def test_slower_than_its_input(on_call: OnCall) -> None:
    on_call.deployment.set("kafka", poll_messages=10, pending_messages=10)
    well(on_call, "worker", "index")
    on_call.post(*posts(80_000, first=3))
    on_call.look("behind")
    on_call.deployment.set("kafka", poll_messages=10_000, pending_messages=50_000)
    on_call.deployment.kill("worker")
    on_call.do("behind")
    on_call.see_the_end("behind")


@watched
def test_segments_unanswered(on_call: OnCall) -> None:
    deployment = on_call.deployment
    deployment.set("near", window={"messages": 200}, segment=50, answers="shards", patience="10s")
    deployment.set("exact", window={"messages": 10_000})
    (deployment.folder / "scratch").mkdir()
    deployment.set("state", snapshot_every="1s", scratch=str(deployment.folder / "scratch"))
    on_call.say("twinsieve topics create -c FILE")
    well(on_call, "worker", "index")
    on_call.post(*posts(180))
    on_call.look("segments-unanswered")
    on_call.do("segments-unanswered")
    on_call.post(*posts(20, first=180))
    on_call.see_the_end("segments-unanswered")


@watched
def test_snapshots_fail(on_call: OnCall) -> None:
    on_call.deployment.set("state", snapshot_every="1s")
    well(on_call, "worker", "index")
    state = on_call.deployment.folder / "state"
    assert poll_until(lambda: any(state.rglob("*.snapshot")), 60.0)
    state.rename(on_call.deployment.folder / "moved")
    state.touch()
    on_call.post(*posts(5))
    on_call.look("snapshots-fail")
    state.unlink()
    (on_call.deployment.folder / "moved").rename(state)
    for file in state.rglob("*.snapshot"):
        file.unlink()
    on_call.do("snapshots-fail")
    on_call.post(*posts(4, first=5))
    on_call.see_the_end("snapshots-fail")


@watched
def test_dead_letters(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    on_call.post('{"message": "今天武汉下雨了，大家出门记得带伞"}')
    on_call.look("dead-letters")
    for name in ("worker", "index"):
        on_call.deployment.kill(name)
    on_call.deployment.set("input", text_field=["text", "message"])
    on_call.start("both")
    on_call.do("dead-letters")
    on_call.see_the_end("dead-letters")


@pytest.mark.minutes
def test_drop_rate_jumps(on_call: OnCall, tmp_path: Path) -> None:
    """The threshold was too low: one of two dropped messages comes out by the higher one, the exact copy does not."""
    well(on_call, "both")
    (post,) = posts(1)
    on_call.post(post, post[:-4] + '好的"}')
    on_call.name(
        **{"posts[0]@1": f"{on_call.deployment.app}.in[0]@{on_call.posts - 1}"},
        PID=on_call.deployment.processes["both"].pid,
        DROPPED=tmp_path / "dropped",
    )
    on_call.see_the_end("drop-rate-jumps")
    on_call.look("drop-rate-jumps")
    assert on_call.came_out() == 3
    on_call.deployment.set("near", similarity=0.95)
    on_call.do("drop-rate-jumps")
    assert poll_until(lambda: on_call.came_out() == 4, 60.0)
    on_call.see_the_end("drop-rate-jumps")
    assert on_call.came_out() == 4


@pytest.mark.minutes
@watched_only
def test_wave_of_copies(on_call: OnCall) -> None:
    """After minutes in which nothing was dropped."""
    well(on_call, "worker", "index")
    for number in range(1, 41):
        on_call.post(*posts(20, first=20 * number))
        time.sleep(5.0)
    on_call.post(*(600 * posts(1)))
    on_call.name(**{"posts[0]@1": f"{on_call.deployment.app}.in[0]@{on_call.posts - 1}"})
    on_call.look("drop-rate-jumps")
    on_call.see_the_end("drop-rate-jumps")


def test_log_grows(on_call: OnCall) -> None:
    app = on_call.deployment.app
    logs = [f"{app}.fingerprints", f"{app}.decisions"]
    set_topics(on_call.bootstrap, logs, "retention.ms", "31536000000")
    on_call.follow("log-grows")


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_log_is_half_as_large_again(tmp_path: Path) -> None:
    """Beside what a Prometheus remembers of the day before. Nobody reads what makes it so large: it was aborted."""
    app, day_s = fresh("page"), 86_400
    past = f'# TYPE app:twinsieve_log:bytes gauge\napp:twinsieve_log:bytes{{app="{app}"}} {_GIB / 2}'
    past += f" {time.time() - 1.5 * day_s:.0f}\n# EOF\n"
    own = Cluster(extra={"log.retention.check.interval.ms": "1000"}, mortal=True)
    with (
        own.start() as cluster,
        scraping(distribution.server(), past, distribution.promtool()) as alerts,
        OnCall(cluster.bootstrap, tmp_path, alerts, app=app) as on_call,
    ):
        on_call.deployment.create_topics()
        log = f"{app}.fingerprints"
        set_topics(cluster.bootstrap, [log], "segment.bytes", str(_GIB // 16))
        well(on_call, "worker", "index")
        set_topics(cluster.bootstrap, [log, f"{app}.decisions"], "retention.ms", "31536000000")
        write_aborted(cluster.bootstrap, log, 9 * _GIB // 8)
        on_call.look("log-grows")
        on_call.do("log-grows")
        # As the index does behind a snapshot that is shared.
        on_call.trim("fingerprints")
        on_call.see_the_end("log-grows")


def write_aborted(bootstrap: str, topic: str, size_bytes: int) -> None:
    """So many bytes, in a transaction that is aborted."""
    opened = transaction(bootstrap, "large", linger_ms=50)
    value = random.Random(1).randbytes(500_000)
    for _ in range(size_bytes // len(value)):
        opened.produce(topic, value, partition=0)
        opened.flush(60)
    opened.abort_transaction(60)


def test_memory_near_limit(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    on_call.name(PID=on_call.deployment.processes["index"].pid)
    on_call.follow("memory-near-limit")


@pytest.mark.minutes
@watched_only
def test_memory_is_nearly_used(on_call: OnCall) -> None:
    """In a cgroup that is little larger than what the index takes."""
    well(on_call, "worker", "index")
    said = on_call.say("curl -s http://INDEX:8080/metrics | grep '^twinsieve_memory_bytes'")
    on_call.deployment.kill("index")
    with memory_groups() as groups:
        within = groups.within(round(float(said.split()[1]) * 1.07))
        on_call.name(PID=on_call.start("index", program=[*within, sys.executable, "-m", "twinsieve"]).pid)
        try:
            on_call.follow("memory-near-limit")
        finally:
            on_call.deployment.kill("index")


@watched
def test_ends_at_each_start(on_call: OnCall) -> None:
    well(on_call, "both")
    on_call.deployment.kill("both")
    on_call.delete("dead")
    assert on_call.start("both").wait(60) == 3
    with starts_again(on_call, "both"):
        on_call.look("ends-at-each-start")
    on_call.do("ends-at-each-start")
    on_call.see_the_end("ends-at-each-start")


@contextmanager
def starts_again(on_call: OnCall, role: str) -> Iterator[None]:
    """A supervisor starts a process again whenever it ends, while the block runs."""
    over = threading.Event()

    def supervise() -> None:
        while not over.wait(1.0):
            on_call.start(role).wait()

    supervisor = in_thread(supervise)
    try:
        yield
    finally:
        over.set()
        on_call.deployment.kill(role)
        supervisor.join(60.0)


@watched
def test_settings_differ(on_call: OnCall) -> None:
    on_call.start("index")
    assert poll_until(lambda: "live 1.0" in on_call.say("curl -s http://INDEX:8080/metrics"), 60.0)
    file = on_call.deployment.file.read_bytes()
    on_call.deployment.set("near", similarity=0.9)
    on_call.start("worker")
    on_call.post(*posts(3))
    on_call.see_the_end("no-index")
    on_call.deployment.file.write_bytes(file)
    on_call.name(PID=on_call.deployment.processes["worker"].pid)
    on_call.follow("settings-differ")
