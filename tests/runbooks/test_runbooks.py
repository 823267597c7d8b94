"""Each page of docs/runbooks is followed as it stands, against a real broker, in the state that it is about."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.certificates import make_certificates
from tests.broker.cluster import PASSWORDS, Cluster, SecureCluster
from tests.broker.deployment import Deployment, in_thread, poll_until
from tests.broker.fixtures import _shared, bootstrap, mortal_broker, secure_broker, three_brokers
from tests.broker.grants import set_password
from tests.broker.memory_groups import memory_groups
from tests.broker.server import free_ports
from tests.broker.test_disaster_recovery import back_up, restore
from tests.broker.topic_limits import limit_topics, set_topics
from tests.broker.worlds import fresh
from tests.deploy import prometheus as distribution
from tests.deploy.played import rules
from tests.deploy.scraping import Prometheus, scraping
from tests.registry import posts as registry_posts
from tests.registry.own_registry import OwnRegistry
from tests.runbooks import pages
from tests.runbooks.on_call import OnCall
from twinsieve.pipeline.wire.frame import VERSION
from twinsieve.pipeline.worker.waiting import WaitReason

__all__ = ["_shared", "bootstrap", "mortal_broker", "secure_broker", "three_brokers"]

_GIB = 1 << 30
_JOINS = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "client.id": "console",
                     "session.timeout.ms": 6000, "partition.assignment.strategy": "range"})
consumer.subscribe([sys.argv[3]])
while True:
    consumer.poll(1.0)
"""
_OPENS = """
import sys, time
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "loader", "transaction.timeout.ms": 600000})
producer.init_transactions()
producer.begin_transaction()
producer.produce(sys.argv[2], b'{"text": "never committed"}', partition=0)
producer.flush()
print("open", flush=True)
time.sleep(600)
"""


watched = pytest.mark.parametrize(
    "alerts", [False, pytest.param(True, marks=pytest.mark.minutes)], ids=["page", "alert"], indirect=True
)
"""The page once more in a deployment that a Prometheus scrapes: its alert fires before somebody looks."""
watched_only = pytest.mark.parametrize("alerts", [True], ids=["alert"], indirect=True)


@pytest.fixture
def alerts(request: pytest.FixtureRequest) -> Iterator[Prometheus | None]:
    if not getattr(request, "param", False):
        yield None
        return
    with scraping(distribution.server()) as server:
        yield server


@pytest.fixture
def on_call(bootstrap: str, tmp_path: Path, alerts: Prometheus | None) -> Iterator[OnCall]:
    """With all topics, and no process yet."""
    with OnCall(bootstrap, "confluent", tmp_path, alerts, session_timeout="6s") as made:
        made.deployment.create_topics()
        yield made


def posts(number: int, first: int = 0) -> list[str]:
    """No two of them are alike."""
    draws = [random.Random(seed) for seed in range(first, first + number)]
    texts = ["".join(chr(draw.randrange(0x4E00, 0x9F00)) for _ in range(20)) for draw in draws]
    return [f'{{"text": "{text}"}}' for text in texts]


def lose_index(on_call: OnCall, *texts: str) -> None:
    """The index dies in an app that was well, and these posts wait."""
    well(on_call, "worker", "index")
    on_call.deployment.kill("index")
    on_call.post(*texts)


def well(on_call: OnCall, *roles: str, program: Sequence[str] = ()) -> None:
    """All that was posted comes out of an app with processes of these roles. program: as in `OnCall.start`"""
    for role in roles:
        on_call.start(role, program=program)
    on_call.post(*posts(3))
    on_call.see_the_end("no-index")


@contextmanager
def comes_in(
    on_call: OnCall, partition: int = 0, make: Callable[[int], str] = lambda number: posts(1, number)[0]
) -> Iterator[None]:
    """A post a second, while the block runs. make: the post with this number"""
    over = threading.Event()

    def post() -> None:
        for number in itertools.count(1_000_000):
            if over.wait(1.0):
                return
            on_call.post(make(number), partition=partition)

    poster = in_thread(post)
    try:
        yield
    finally:
        over.set()
        poster.join(60.0)


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


def test_every_page_has_the_same_parts_and_every_alert_names_its_page() -> None:
    for name in pages.names():
        assert pages.headings(name) == list(pages.SECTIONS), name
    named = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules() if "alert" in rule}
    listed = (pages.FOLDER / "README.md").read_text("utf-8")
    for alert, url in named.items():
        page = url.removeprefix("docs/runbooks/").removesuffix(".md")
        assert page in pages.names(), url
        assert f"| {alert} | [{page}]({page}.md) |" in listed
    for name in pages.names():
        assert f"({name}.md)" in listed


@watched
def test_gone(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    on_call.deployment.kill("worker")
    on_call.deployment.kill("index")
    on_call.follow("gone", by_tree=True)


@watched
def test_nothing_comes_out(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    frozen = on_call.deployment.processes["worker"]
    on_call.name(PID=frozen.pid)
    os.killpg(frozen.pid, signal.SIGSTOP)
    on_call.post(*posts(2, first=3))
    on_call.follow("nothing-comes-out", by_tree=True)
    assert poll_until(lambda: on_call.came_out() == on_call.posts, 60.0)


def open_transaction(on_call: OnCall, topic: str) -> None:
    """A producer opens a transaction in a topic of the app, named without it, and dies."""
    command = [sys.executable, "-c", _OPENS, on_call.bootstrap, f"{on_call.deployment.app}.{topic}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        assert producer.stdout.readline() == b"open\n"
        producer.kill()


@pytest.mark.parametrize(
    ("page", "make"),
    [
        ("open-transaction", lambda number: posts(1, number)[0]),
        ("drop-rate-jumps", lambda _: posts(1)[0]),
        ("dead-letters", lambda _: '{"message": "今天武汉下雨了，大家出门记得带伞"}'),
    ],
)
def test_the_tree_leads_by_what_grows(on_call: OnCall, page: str, make: Callable[[int], str]) -> None:
    well(on_call, "worker", "index")
    if page == "open-transaction":
        open_transaction(on_call, "out")
    with comes_in(on_call, make=make):
        assert on_call.find_page() == [page]


def test_the_tree_leads_to_a_backlog(on_call: OnCall) -> None:
    on_call.deployment.set("kafka", poll_messages=10, pending_messages=10)
    well(on_call, "worker", "index")
    on_call.post(*posts(40_000, first=3))
    assert on_call.find_page() == ["behind"]


def test_the_tree_leads_to_a_token_endpoint_that_is_away(on_call: OnCall, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the client")
    secret.chmod(0o600)
    (port,) = free_ports(1)
    security = {
        "protocol": "sasl_plaintext",
        "mechanism": "oauthbearer",
        "username": "client",
        "password_file": str(secret),
        "token_endpoint": f"http://127.0.0.1:{port}/token",
    }
    on_call.deployment.set("kafka", security=security)
    on_call.start("both")
    assert poll_until(lambda: "token endpoint" in on_call.say("curl -s http://WORKER:8080/readyz"), 60.0)
    assert on_call.find_page() == ["expired-secret"]


def test_the_tree_leads_to_a_registry_that_is_away(on_call: OnCall) -> None:
    with OwnRegistry() as registry:
        registry.status = 503
        on_call.deployment.set("input", **registry_posts.settings(registry, "avro"))
        on_call.start("worker")
        on_call.start("index")
        assert poll_until(lambda: "live 1.0" in on_call.say("curl -s http://INDEX:8080/metrics"), 60.0)
        message = registry_posts.writer(registry, "avro")(b'{"id": "1", "text": "", "created_at": ""}')
        on_call.post(message.decode("latin-1"))
        assert poll_until(lambda: "schema registry" in on_call.say("curl -s http://WORKER:8080/readyz"), 60.0)
        assert on_call.find_page() == ["half-comes-out"]
        said = on_call.say("curl -s http://WORKER:8080/metrics")
        assert f'twinsieve_waiting_partitions{{reason="{WaitReason.FAILED}"}} 1.0' in said


@watched
def test_open_transaction(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    open_transaction(on_call, "in")
    on_call.post('{"text": "behind the open transaction"}')
    on_call.look("open-transaction", by_tree=True)
    # The transaction's first message stands between what `well` posted and the last post.
    on_call.name(OFFSET=on_call.posts - 1)
    assert on_call.came_out() == on_call.posts - 1
    on_call.do("open-transaction")
    on_call.see_the_end("open-transaction")
    assert poll_until(lambda: on_call.came_out() == on_call.posts, 60.0)


def test_half_comes_out(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    limit_topics(on_call.bootstrap, [f"{on_call.deployment.app}.dead"], 200)
    # Too large for the dead letter topic, also compressed.
    on_call.post("{" + random.Random(1).randbytes(500).hex())
    on_call.name(PID=on_call.deployment.processes["worker"].pid)
    on_call.follow("half-comes-out", by_tree=True)


@pytest.mark.minutes
@watched_only
def test_one_of_two_partitions_waits(bootstrap: str, tmp_path: Path, alerts: Prometheus) -> None:
    with OnCall(bootstrap, "confluent", tmp_path, alerts, partitions=2, session_timeout="6s") as on_call:
        on_call.deployment.create_topics()
        well(on_call, "worker", "index")
        limit_topics(on_call.bootstrap, [f"{on_call.deployment.app}.dead"], 200)
        on_call.post("{" + random.Random(1).randbytes(500).hex())
        on_call.name(PID=on_call.deployment.processes["worker"].pid)
        with comes_in(on_call, partition=1):
            on_call.follow("half-comes-out")


def test_behind(on_call: OnCall) -> None:
    lose_index(on_call, *posts(2_000))
    on_call.look("behind")
    on_call.start("index")
    on_call.do("behind")
    on_call.see_the_end("behind")


@watched
def test_no_index(on_call: OnCall) -> None:
    lose_index(on_call, *posts(2))
    on_call.follow("no-index", by_tree=True)


def test_two_indexes(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    frozen = on_call.deployment.processes["index"]
    on_call.name(PID=frozen.pid)
    os.killpg(frozen.pid, signal.SIGSTOP)
    on_call.start("index", member="other")
    on_call.follow("two-indexes")
    assert frozen.wait(30) == -signal.SIGKILL


@pytest.mark.minutes
@watched_only
@pytest.mark.needs("own broker")
def test_one_name_on_two_clusters(on_call: OnCall, mortal_broker: Cluster) -> None:
    well(on_call, "worker", "index")
    other = Deployment(mortal_broker.bootstrap, "confluent", on_call.deployment.app, partitions=1)
    (port,) = free_ports(1)
    try:
        other.create_topics()
        on_call.name(PID=other.start("other", "both", listen=f"127.0.0.1:{port}").pid)
        on_call.watch(port, "other")
        on_call.follow("two-indexes")
    finally:
        other.close()


@watched
@pytest.mark.needs("own broker")
def test_broker_unreachable(mortal_broker: Cluster, tmp_path: Path, alerts: Prometheus | None) -> None:
    with OnCall(mortal_broker.bootstrap, "confluent", tmp_path, alerts) as on_call:
        on_call.deployment.create_topics()
        well(on_call, "worker", "index")
        (node,) = mortal_broker.nodes
        node.kill()
        try:
            on_call.look("broker-unreachable", by_tree=True)
        finally:
            node.start()
            node.wait_ready()
        on_call.do("broker-unreachable")
        on_call.see_the_end("broker-unreachable")


@watched
def test_messages_lost(on_call: OnCall) -> None:
    on_call.deployment.set("input", trimmed="continue")
    well(on_call, "worker", "index")
    on_call.deployment.kill("worker")
    on_call.post(*posts(5))
    on_call.trim("in")
    on_call.start("worker")
    on_call.follow("messages-lost")


@watched
def test_foreign_consumer(on_call: OnCall) -> None:
    well(on_call, "worker", "index")
    app = on_call.deployment.app
    command = [sys.executable, "-c", _JOINS, on_call.bootstrap, f"{app}.workers", f"{app}.in"]
    with subprocess.Popen(command) as stranger:
        on_call.name(PID=stranger.pid)
        on_call.look("foreign-consumer", by_tree=True)
        on_call.do("foreign-consumer")
        on_call.see_the_end("foreign-consumer")


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
        OnCall(cluster.bootstrap, "confluent", tmp_path, alerts, app=app) as on_call,
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
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "large", "linger.ms": 50})
    producer.init_transactions(60)
    producer.begin_transaction()
    value = random.Random(1).randbytes(500_000)
    for _ in range(size_bytes // len(value)):
        producer.produce(topic, value, partition=0)
        producer.flush(60)
    producer.abort_transaction(60)


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


def newer(on_call: OnCall, formats: str) -> None:
    """An app of a later version, which has other formats there, with a snapshot."""
    on_call.deployment.set("state", snapshot_every="1s")
    well(on_call, "worker", "index", program=[sys.executable, "-m", "tests.runbooks.newer_program", formats])
    state = on_call.deployment.folder / "state"
    assert poll_until(lambda: any(state.rglob("*.snapshot")), 60.0)
    on_call.name(PID=on_call.deployment.processes["index"].pid)
    on_call.look("roll-back")
    on_call.do("roll-back")


def test_roll_back(on_call: OnCall) -> None:
    """The old version cannot read the snapshot, and reads the log."""
    newer(on_call, "snapshots")
    (log,) = on_call.deployment.folder.glob("index?*.log")
    assert poll_until(lambda: "has format version" in log.read_text(), 60.0)
    on_call.post(*posts(4))
    on_call.see_the_end("roll-back")
    assert on_call.came_out() == 4


def test_roll_back_behind_another_log(on_call: OnCall) -> None:
    newer(on_call, "snapshots,log")
    (name,) = on_call.deployment.processes.keys() - {"worker", "index"}
    assert on_call.deployment.processes[name].wait(60) == 3
    assert (
        f"format version {VERSION + 1}, this program reads {VERSION}"
        in on_call.deployment.log(name).read_text()
    )
    on_call.deployment.kill("worker")
    on_call.name(
        SINCE="2024-05-01T12:00:00+08:00", STOPPED=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    )
    on_call.post(*posts(4))
    on_call.do("new-cluster")
    on_call.see_the_end("new-cluster")
    assert on_call.came_out() == 4


@pytest.mark.needs("own broker")
def test_broker_upgrade(three_brokers: Cluster, tmp_path: Path) -> None:
    with OnCall(three_brokers.bootstrap, "confluent", tmp_path) as on_call:
        on_call.deployment.settings["topics"] = {"replication": 3, "min_in_sync": 2}
        on_call.deployment.create_topics(replication=3)
        well(on_call, "worker", "index")
        on_call.look("broker-upgrade")
        for node in three_brokers.nodes:
            node.stop()
            on_call.post(*posts(2))
            node.start()
            node.wait_ready()
            on_call.do("broker-upgrade")
        on_call.see_the_end("broker-upgrade")


@pytest.mark.needs("own broker")
def test_new_cluster(on_call: OnCall, mortal_broker: Cluster, tmp_path: Path) -> None:
    """Three of four posts that the old app has not read are copies of what came out of it."""
    well(on_call, "worker", "index")
    for name in ("worker", "index"):
        on_call.deployment.signal(name, signal.SIGTERM)
        on_call.deployment.processes[name].wait(60)
    stopped = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    old = tmp_path / "old.yaml"
    old.write_bytes(on_call.deployment.file.read_bytes())
    on_call.name(OLD=old, SINCE="2024-05-01T12:00:00+08:00", STOPPED=stopped)
    on_call.post(*posts(4))
    for name in ("in", "out"):
        copy_topic(f"{on_call.deployment.app}.{name}", on_call.bootstrap, mortal_broker.bootstrap)
    on_call.move(mortal_broker.bootstrap)
    on_call.follow("new-cluster")
    assert on_call.came_out() == 4


def copy_topic(topic: str, source: str, target: str) -> None:
    """Copy the committed messages of a topic with one partition to another cluster, as MirrorMaker does."""
    # Its last reference ends it, whatever is on its way.
    admin = AdminClient({"bootstrap.servers": target})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    consumer = Consumer({"bootstrap.servers": source, "group.id": "copy", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    producer = Producer({"bootstrap.servers": target})
    while (message := consumer.poll(60)) is not None and message.error() is None:
        _, time_ms = message.timestamp()
        producer.produce(
            topic, message.value(), message.key(), 0, timestamp=time_ms, headers=message.headers()
        )
    assert message is not None
    assert message.error().code() == KafkaError._PARTITION_EOF
    assert producer.flush(60) == 0
    consumer.close()


@pytest.mark.needs("own broker")
def test_expired_secret(secure_broker: SecureCluster, tmp_path: Path) -> None:
    secret, new = tmp_path / "password", tmp_path / "new"
    secret.write_text(PASSWORDS["admin"])
    new.write_text("the-new-one")
    secret.chmod(0o600)
    login = secure_broker.login(password_file=str(secret))
    with OnCall(secure_broker.bootstrap, "confluent", tmp_path) as on_call:
        on_call.deployment.create_topics()
        on_call.name(SECRET=secret, NEW=new, **{"KAFKA:9092": secure_broker.secure})
        on_call.deployment.set("kafka", bootstrap=secure_broker.secure, security=login)
        well(on_call, "worker", "index")
        set_password(secure_broker.bootstrap, "admin", "the-new-one")
        try:
            replace_secret(on_call, "or its password")
        finally:
            set_password(secure_broker.bootstrap, "admin", PASSWORDS["admin"])


@pytest.mark.needs("own broker")
def test_expired_certificate(tmp_path: Path) -> None:
    """The broker comes back and trusts another authority alone."""
    new = make_certificates(tmp_path / "new", "another-ca")
    with SecureCluster().start() as cluster, OnCall(cluster.bootstrap, "confluent", tmp_path) as on_call:
        security = cluster.client_files(tmp_path, new)
        on_call.deployment.create_topics()
        on_call.name(SECRET=security["key_file"], NEW=new.client, **{"KAFKA:9092": cluster.mutual})
        on_call.deployment.set("kafka", bootstrap=cluster.mutual, security=security)
        well(on_call, "worker", "index")
        cluster.change_authority(new)
        replace_secret(on_call, "does not accept our TLS certificate")


def replace_secret(on_call: OnCall, said: str) -> None:
    """Follow the page by the row of its table for what is said."""
    assert f"\n| `{said}` |" in pages.text("expired-secret")
    on_call.look("expired-secret")
    assert said in on_call.say("twinsieve topics check -c FILE")
    assert on_call.find_page() == ["broker-unreachable"]
    on_call.do("expired-secret")
    on_call.see_the_end("expired-secret")


@pytest.mark.needs("own broker")
def test_disaster_recovery(tmp_path: Path) -> None:
    with Cluster(mortal=True).start() as cluster, OnCall(cluster.bootstrap, "confluent", tmp_path) as on_call:
        (node,) = cluster.nodes
        on_call.deployment.create_topics()
        well(on_call, "both")
        on_call.deployment.kill("both")
        back_up(node, tmp_path / "backup")
        on_call.start("both")
        on_call.post(*posts(2, first=3))
        on_call.see_the_end("disaster-recovery")
        on_call.deployment.kill("both")
        restore(node, tmp_path / "backup")
        on_call.do("disaster-recovery")
        on_call.post(*posts(2, first=3))
        on_call.see_the_end("disaster-recovery")
        assert on_call.came_out() == 5
