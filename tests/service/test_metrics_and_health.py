"""The pages of a running service: what they say is compared with what was sent to it.

The service's clock moves by hand, so that it looks at its gauges when told; the broker's goes by itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.memory.clients import MemoryReader
from tests.service.running import came_out, wait_for
from tests.service.scraped import Scraped, listening
from tests.service.stepped import edited, unlike
from tests.service.test_changed_settings import with_section
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import Messages, Partition, Records
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.service import run as service
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.waiting import WaitReason
from twinsieve.stages.contract import Kind

LOG = Partition("t.fingerprints", 0)
LOOK_S = 5.0
RING = 4
OUTPUTS = ("posts.unique", "posts.duplicates", "posts.dead")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "topics": {"auto_create": True},
            "state": {"dir": str(tmp_path / "state"), "snapshot_every": "12s"},
            "http": {"listen": "127.0.0.1:0"},
            # No reports while nothing moves: whether one is on its way when the gauges are read is chance.
            "kafka": {"idle_report": "1h", "answer_timeout": "60s"},
            "near": {"window": {"messages": RING}},
            "exact": {"window": {"messages": 10_000}},
        }
    )


@pytest.fixture
def start(
    settings: Settings, cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Scraped]]:
    """Starts services on free ports; whatever the test says of them, they end with it."""
    ports = listening(monkeypatch)
    started: list[Scraped] = []

    def make(changed: Settings = settings, **options: object) -> Scraped:
        started.append(Scraped(changed, cluster, ports, **options))  # type: ignore[arg-type]
        return started[-1]

    yield make
    for each in started:
        each.stop()


def post(number: int, at_ms: int | None = None) -> bytes:
    return orjson.dumps({"text": unlike(number), "created_at": at_ms})


def produce(cluster: MemoryCluster, partition: int, values: list[bytes]) -> None:
    messages = Messages()
    for value in values:
        messages.add(None, value)
    MemoryBroker(cluster).appender().append(Partition("posts", partition), messages)


def of_kinds(**counts: float) -> dict[tuple[str, ...], float]:
    """Messages of each kind, 0 where none is given."""
    names = [*(kind.name.lower() for kind in Kind), "no_text"]
    return {(name,): counts.get(name, 0.0) for name in names}


def test_metrics_are_what_was_sent(start: Callable[..., Scraped], cluster: MemoryCluster) -> None:
    running = start(member="one")
    began_ms, every_ms = running.clock.now_ms() - 7_200_000, 600_000
    near = orjson.dumps({"text": edited(unlike(4))})
    uniques = [post(number, began_ms + number * every_ms) for number in range(6)]
    produce(cluster, 0, [*uniques, post(5), near, post(0), b"{no json", b"[]", b"\xff"])
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 12, "all of the first partition")
    produce(cluster, 1, [post(6, began_ms + 6 * every_ms), post(6)])
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 14, "all of the second partition")
    running.clock.sleep(LOOK_S)
    running.tells(
        messages_total=of_kinds(unique=7, exact=3, near=1, unreadable=3),
        dead_letters_total={
            (str(reason),): float(reason in ("invalid_json", "not_an_object", "not_utf8"))
            for reason in DeadLetterReason
        },
        end_to_end_seconds_count=14,
        pending_messages={("0", "posts"): 0, ("1", "posts"): 0},
        lag_messages={("0", "posts"): 0, ("1", "posts"): 0},
        unanswered_blocks=0,
        waiting_partitions={(reason,): 0 for reason in WaitReason},
        assigned_partitions=2,
        unassigned_partitions=0,
        input_partitions={("posts",): 2},
        input_end_offset={("0", "posts"): 12, ("1", "posts"): 2},
        oldest_waiting_seconds={("0", "posts"): 0, ("1", "posts"): 0},
        input_open_transaction_seconds={("0", "posts"): 0, ("1", "posts"): 0},
        read_messages_total=14,
        skipped_messages_total={(str(reason),): 0 for reason in (*DeadLetterReason, WaitReason.UNREADABLE)},
        trimmed_messages_total=0,
        resyncs_total=0,
        index_live=1,
        index_lag_blocks=0,
        index_sessions_total=2,
        index_gap_blocks_total=0,
        index_unjudged_blocks_total=0,
        index_given_up_messages_total={(reason,): 0 for reason in GivenUp},
        # The first post had left the ring when it came again, the others had not.
        index_unconfirmed_total=1,
        window_messages=RING,
        window_capacity_messages=RING,
        # Posts 3, 4, 5 and 6 are held, ten minutes apart.
        window_seconds=1_800,
        snapshot_age_seconds=LOOK_S,
        snapshot_every_seconds=12,
        session_timeout_seconds=6,
        snapshot_failures_total=0,
        snapshot_bytes_written_total=0,
        broker_errors_total={("index",): 0, ("worker",): 0},
    )
    assert running.metrics()["step_seconds_count"].keys() >= {("worker.committed",), ("index.judged",)}


def test_the_age_of_the_snapshot_is_that_of_the_one_on_disk(
    start: Callable[..., Scraped], cluster: MemoryCluster, settings: Settings
) -> None:
    running = start(member="one")
    folder = Path(settings.state.dir) / "t"
    produce(cluster, 0, [post(1)])
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 1, "a message")
    for looks in (1, 2):
        running.clock.sleep(LOOK_S)
        running.tells(snapshot_age_seconds=looks * LOOK_S)
    assert not folder.exists()
    running.clock.sleep(LOOK_S)
    wait_for(lambda: len(list(folder.glob("*.snapshot"))) == 1, "a snapshot after twelve seconds")
    wait_for(lambda: "snapshot_age_seconds" not in running.metrics(), "nothing is left to follow")
    stored_s = running.clock.now_ms() / 1000
    running.tells(snapshot_last_success_timestamp_seconds=stored_s)
    metrics = running.metrics()
    assert 0 <= metrics["snapshot_pause_seconds"][()] <= metrics["snapshot_seconds"][()]
    pieces = [*folder.glob("*.piece"), *folder.glob("*.part")]
    assert pieces
    written = [*pieces, *folder.glob("*.snapshot")]
    running.tells(
        snapshot_files=len(pieces),
        snapshot_bytes_written_total=sum(path.stat().st_size for path in written),
        snapshot_stored_bytes=sum(path.stat().st_size for path in written),
    )
    produce(cluster, 0, [post(2)])
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 2, "a second message")
    running.clock.sleep(LOOK_S)
    running.tells(snapshot_age_seconds=LOOK_S, snapshot_last_success_timestamp_seconds=stored_s)


def test_what_waits_for_an_index_is_pending_and_lags_until_it_comes(
    start: Callable[..., Scraped], cluster: MemoryCluster
) -> None:
    first = start(member="one")
    for number in range(2):
        produce(cluster, number, [post(number)])
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 2, "both partitions begun")
    first.service.end()
    produce(cluster, 0, [post(number) for number in range(10, 15)])
    produce(cluster, 1, [post(number) for number in range(20, 23)])
    judged = cluster.log(LOG).end
    worker = start(member="one", role="worker")
    # Each partition asks with the block that begins its session, and after a pause with one of messages.
    wait_for(lambda: cluster.log(LOG).end == judged + 2, "two sessions")
    worker.clock.sleep(LOOK_S)
    wait_for(lambda: cluster.log(LOG).end == judged + 4, "everything is asked")
    worker.clock.sleep(LOOK_S)
    waiting = {("0", "posts"): 5.0, ("1", "posts"): 3.0}
    worker.tells(pending_messages=waiting, lag_messages=waiting, unanswered_blocks=4, index_live=0)
    assert worker.metrics()["messages_total"] == of_kinds()
    index = start(member="one", role="index")
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 10, "the answers")
    for each in (worker, index):
        each.clock.sleep(LOOK_S)
    worker.tells(
        pending_messages=dict.fromkeys(waiting, 0.0),
        lag_messages=dict.fromkeys(waiting, 0.0),
        unanswered_blocks=0,
        messages_total=of_kinds(unique=8),
        index_live=0,
    )
    index.tells(index_live=1, index_sessions_total=2, window_messages=RING)


class Gate:
    """Lets `polls` polls pass. `tried` is set once one was held back after them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = 0.0
        self.tried = threading.Event()

    def let(self, polls: float) -> None:
        with self._lock:
            self._left = polls
            self.tried.clear()

    def take(self) -> bool:
        with self._lock:
            if self._left <= 0:
                self.tried.set()
                return False
            self._left -= 1
            return True


class HeldBroker(MemoryBroker):
    """Its readers get a block and its decision at a time, while the gate lets them."""

    def __init__(self, cluster: MemoryCluster, gate: Gate) -> None:
        super().__init__(cluster)
        self._gate = gate

    def reader(self) -> MemoryReader:
        made = super().reader()
        poll = made.poll

        def held(timeout_s: float, _: int) -> list[Records]:
            return poll(timeout_s, 2) if self._gate.take() else []

        made.poll = held  # type: ignore[method-assign]
        return made


def test_a_restore_is_healthy_not_ready_and_tells_how_long_it_takes(
    start: Callable[..., Scraped],
    cluster: MemoryCluster,
    settings: Settings,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "twinsieve")
    settings = with_section(settings, "digest", key="none")  # the gate counts all polls of readers
    first = start(with_section(settings, "kafka", poll_messages=1), member="one")
    produce(cluster, 0, [post(number) for number in range(30)])
    wait_for(lambda: came_out(cluster, *OUTPUTS) == 30, "thirty blocks of one message")
    first.service.end()
    end = cluster.log(LOG).end
    assert end > 30
    gate = Gate()
    running = start(
        with_section(settings, "state", dir=str(tmp_path / "elsewhere")),
        broker=lambda cluster: HeldBroker(cluster, gate),
        member="one",
        role="index",
    )
    caplog.clear()
    for polls, at, told in (
        (5, 5, f"block 5 of {end}, 1 blocks a second, {end - 5}s left"),
        (10, 15, f"block 15 of {end}, 2 blocks a second, {(end - 15) / 2:.0f}s left"),
        (0, 15, f"block 15 of {end}, 0 blocks a second, unknown left"),
    ):
        gate.let(polls)
        assert gate.tried.wait(300), "the restore goes on"
        running.clock.sleep(LOOK_S)
        wait_for(lambda told=told: f"index: restoring, {told}" in caplog.messages, told)  # type: ignore[misc]
        running.tells(index_live=0, index_lag_blocks=end - at)
        assert (running.status("/healthz"), running.status("/readyz")) == (200, 503)
    gate.let(float("inf"))
    wait_for(lambda: running.status("/readyz") == 200, "it is ready")
    assert running.status("/healthz") == 200
    assert f"index: phase live, next block {end}" in caplog.messages
    assert len([line for line in caplog.messages if "restoring, block " in line]) == 3
    running.clock.sleep(LOOK_S)
    running.tells(index_live=1, index_lag_blocks=0, index_sessions_total=0, window_messages=RING)


def test_a_role_that_no_longer_goes_round_is_not_healthy(start: Callable[..., Scraped]) -> None:
    stuck, free, arrived = threading.Event(), threading.Event(), threading.Event()

    def hook(step: str) -> None:
        if step == "consumer.poll.before" and stuck.is_set():
            arrived.set()
            free.wait(300)

    running = start(broker=lambda cluster: MemoryBroker(cluster, hook), member="one")
    wait_for(lambda: running.status("/readyz") == 200, "it is ready")
    stuck.set()
    try:
        assert arrived.wait(300)
        running.clock.sleep(119.0)
        assert running.status("/healthz") == 200
        running.clock.sleep(2.0)
        assert running.status("/healthz") == 503
    finally:
        stuck.clear()
        free.set()
    wait_for(lambda: running.status("/healthz") == 200, "it goes round again")


def test_service_that_compiles_is_alive_and_in_no_group(
    start: Callable[..., Scraped], cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small share of a core compiles for minutes; a liveness probe that failed would begin them anew."""
    compiling, compiled = threading.Event(), threading.Event()

    def warm_up(_told: object, stopped: Callable[[], bool]) -> bool:
        compiling.set()
        return compiled.wait(300) and not stopped()

    monkeypatch.setattr(service, "warm_up", warm_up)
    running = start(member="one")
    assert compiling.wait(300)
    running.clock.sleep(1_000.0)
    assert (running.status("/healthz"), running.status("/readyz")) == (200, 503)
    assert cluster.groups == {}
    compiled.set()
    wait_for(lambda: running.status("/readyz") == 200, "it is ready")
    assert running.status("/healthz") == 200


def test_service_that_is_stopped_while_it_compiles_ends_without_joining(
    start: Callable[..., Scraped], cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiling = threading.Event()

    def warm_up(_told: object, stopped: Callable[[], bool]) -> bool:
        compiling.set()
        wait_for(stopped, "it is stopped")
        return False

    monkeypatch.setattr(service, "warm_up", warm_up)
    running = start(member="one")
    assert compiling.wait(300)
    running.service.end()
    assert cluster.groups == {}
