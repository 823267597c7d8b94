"""The pages that no alert leads to are followed as they stand, against a real broker."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from tests.broker.certificates import make_certificates
from tests.broker.cluster import PASSWORDS, Cluster, SecureCluster
from tests.broker.deployment import poll_until
from tests.broker.fixtures import _shared, bootstrap, mortal_broker, secure_broker, three_brokers
from tests.broker.grants import set_password
from tests.broker.test_disaster_recovery import back_up, restore
from tests.broker.worlds import read_all, write
from tests.runbooks import pages
from tests.runbooks.fixtures import alerts, on_call
from tests.runbooks.on_call import OnCall
from tests.runbooks.states import posts, well
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.wire.frame import VERSION

__all__ = ["_shared", "alerts", "bootstrap", "mortal_broker", "on_call", "secure_broker", "three_brokers"]


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


def test_app_key(on_call: OnCall) -> None:
    """Somebody has deleted the topic of the key, and made it again."""
    well(on_call, "worker", "index")
    on_call.delete("key")
    assert ".key" in on_call.say("twinsieve topics create -c FILE")
    on_call.look("app-key")
    on_call.post(*posts(2, 10))
    on_call.see_the_end("no-index")
    assert on_call.came_out() == 5, "processes that run go on"
    for name in ("worker", "index"):
        on_call.deployment.kill(name)
    started = on_call.start("both", "again")
    assert started.wait(60) == 3
    assert f"{on_call.deployment.app}.key holds no key" in on_call.deployment.log("again").read_text()
    stopped = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    on_call.name(SINCE="2024-05-01T12:00:00+08:00", STOPPED=stopped)
    on_call.post(*posts(4))
    on_call.do("new-cluster")
    on_call.see_the_end("app-key")
    assert poll_until(lambda: on_call.came_out() == 6, 60.0), "three of the four came out before"


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_broker_upgrade(three_brokers: Cluster, tmp_path: Path) -> None:
    with OnCall(three_brokers.bootstrap, tmp_path) as on_call:
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


@pytest.mark.minutes
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
    old, new = (KafkaBroker(KafkaSettings(bootstrap=each)) for each in (source, target))
    at = Partition(topic, 0)
    new.admin().create_topic(NewTopic(topic, 1))
    copied = read_all(old, at)
    write(new, at, Messages(copied.keys, copied.values, copied.headers, copied.timestamps_ms))
    for broker in (old, new):
        broker.close()


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_expired_secret(secure_broker: SecureCluster, tmp_path: Path) -> None:
    secret, new = tmp_path / "password", tmp_path / "new"
    secret.write_text(PASSWORDS["admin"])
    new.write_text("the-new-one")
    secret.chmod(0o600)
    login = secure_broker.login(password_file=str(secret))
    with OnCall(secure_broker.bootstrap, tmp_path) as on_call:
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
    with SecureCluster().start() as cluster, OnCall(cluster.bootstrap, tmp_path) as on_call:
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


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_disaster_recovery(tmp_path: Path) -> None:
    with Cluster(mortal=True).start() as cluster, OnCall(cluster.bootstrap, tmp_path) as on_call:
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
