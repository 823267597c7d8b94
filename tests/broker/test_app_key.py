"""The key of an app on a real broker: drawn once, read by those alone who may, and an app of before goes over."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from base64 import b64encode
from pathlib import Path

import pytest

from tests.broker.cluster import SecureCluster
from tests.broker.deployment import Deployment, Watcher, in_thread, poll_until
from tests.broker.load import Load
from tests.broker.stranger import produce
from tests.broker.test_acls import Tenant
from tests.broker.worlds import World, fresh, read_all
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.app_key import secret_of
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import KafkaSettings, Settings
from twinsieve.stages.fingerprint.secret import Secret

_STARTS = 20


def new_app(world: World) -> Settings:
    """Settings of an app whose topics are there."""
    name = fresh("app")
    settings = Settings.model_validate({"app": name, "input": {"topics": [f"{name}-in"]}})
    broker = world.broker()
    broker.admin().create_topic(NewTopic(f"{name}-in", 1))
    create(settings, broker.admin())
    broker.close()
    return settings


def keys_of(world: World, settings: Settings) -> list[bytes | None]:
    return read_all(world.broker(), Partition(Names(settings.app).key, 0)).values


def test_twenty_first_starts_at_once_draw_one_key(world: World) -> None:
    settings = new_app(world)
    found: list[Secret] = []
    starts = [
        threading.Thread(target=lambda: found.append(secret_of(settings, world.broker(), SystemClock())))
        for _ in range(_STARTS)
    ]
    for each in starts:
        each.start()
    for each in starts:
        each.join()
    assert len(found) == _STARTS
    assert len(set(found)) == 1
    assert len(keys_of(world, settings)) == 1


def test_a_start_that_died_with_its_key_half_written_leaves_none(world: World) -> None:
    settings = new_app(world)
    place = Partition(Names(settings.app).key, 0)
    dead = world.broker().transactor(place.topic, [place.topic])
    dead.begin()
    half = Messages()
    half.add(b"key", b"\1" + bytes(16))
    dead.send(place.topic, place.number, half)
    secret = secret_of(settings, world.broker(), SystemClock())
    assert secret != Secret.of_key(bytes(16))
    with pytest.raises(BrokerError):
        dead.commit()
    assert secret_of(settings, world.broker(), SystemClock()) == secret
    assert len(keys_of(world, settings)) == 1


@pytest.mark.needs("own broker")
def test_the_key_is_read_by_workers_and_indexes_alone(secure_broker: SecureCluster, tmp_path: Path) -> None:
    near = {"window": {"messages": 40}, "segment": 10, "answers": "shards"}
    tenant = Tenant(secure_broker, tmp_path, **near)
    try:
        users = {role: tenant.add_user("--role", role) for role in ("worker", "index", "shard")}
        users["looks"] = tenant.add_user("--read-only")
        place = Partition(Names(tenant.app).key, 0)
        secret = secret_of(tenant.settings, tenant.connect_as(users["worker"]), SystemClock())
        assert secret_of(tenant.settings, tenant.connect_as(users["index"]), SystemClock()) == secret
        (key,) = read_all(tenant.chief, place).values
        assert key is not None
        for user in ("shard", "looks"):
            with pytest.raises(BrokerError):
                read_all(tenant.connect_as(users[user]), place)
            with pytest.raises(BrokerError):
                tenant.connect_as(users[user]).transactor(place.topic)
    finally:
        tenant.close()


@pytest.mark.minutes
def test_an_app_of_before_goes_over_to_one_with_a_key_while_its_stream_goes_on(
    bootstrap: str,
) -> None:
    """The old app has no key. With one it is refused; it goes on, and a new app learns from its output."""
    old = Deployment(bootstrap, fresh("before"))
    old.set("digest", key="none")
    old.create_topics()
    topic = f"{old.app}.in"
    new = Deployment(bootstrap, fresh("after"), source={"topics": [topic]})
    load = Load(bootstrap, topic, 8_000, 200.0, seed=5)
    olds, news = Watcher(bootstrap, old.outputs), Watcher(bootstrap, new.outputs)
    said = b'{"text": "the harbour bridge is closed for repairs until the end of may"}'
    try:
        old.start("a")
        in_thread(olds.run)
        produce(bootstrap, topic, said, partition=0)
        loading = in_thread(load.run)
        assert poll_until(lambda: len(olds.seen) > 1_000, 180.0)
        old.set("digest", key="own")
        command = [sys.executable, "-m", "twinsieve", "run", "-c", str(old.file), "--member", "b"]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert refused.returncode == 3
        assert "begun by an earlier version" in refused.stderr
        since_s, since = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for words in (
            ["topics", "create"],
            ["seed", "--topic", old.outputs[0], "--member", "b"],
            ["reset", "--to", since, "--yes"],
        ):
            assert main([*words, "-c", str(new.file)]) == 0
        new.start("b")
        in_thread(news.run)
        loading.join()
        produce(bootstrap, topic, said, partition=0)
        behind = {place for place, at_s in load.sent_s.items() if at_s >= since_s}
        total = len(load.sent_s) + 2
        assert poll_until(lambda: behind <= news.seen.keys() and len(olds.seen) == total, 180.0)
        assert all(len(seen) == 1 for seen in news.seen.values()), "each comes out once"
        copy = max(place for place in olds.seen if not place[0])
        assert poll_until(lambda: copy in news.seen, 60.0)
        assert news.seen[copy][0].topic == new.outputs[1], "a copy of what came out of the old app is dropped"
        assert old.processes["a"].poll() is None, "it goes on"
    finally:
        load.stop.set()
        for watcher in (olds, news):
            watcher.stop.set()
        old.close()
        new.close()


def test_the_key_is_nowhere_but_in_its_topic(bootstrap: str) -> None:
    """Neither in another topic or a record beside an offset, nor in logs, pages, snapshots and segments."""
    app = Deployment(bootstrap, fresh("leak"), snapshot_every="1s", segment=40)
    app.set("near", window={"messages": 200})
    app.set("log", level="debug")
    app.create_topics()
    names = Names(app.app)
    broker = KafkaBroker(KafkaSettings(bootstrap=bootstrap))
    try:
        pages = app.start_shown("a", "both")
        watcher = Watcher(bootstrap, app.outputs)
        in_thread(watcher.run)
        load = Load(bootstrap, f"{app.app}.in", 400, seed=3)
        load.run()
        assert poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), 120.0)
        assert poll_until(lambda: any(app.folder.rglob("*.snapshot")), 60.0)
        shown = "".join(pages.page(path)[1] for path in ("/metrics", "/readyz", "/healthz")).encode()
        watcher.stop.set()
        (held,) = read_all(broker, Partition(names.key, 0)).values
        assert held is not None
        key = held[1:]
        forms = [key, key.hex().encode(), key.hex().upper().encode(), b64encode(key).rstrip(b"=")]
        admin = broker.admin()
        places = [
            Partition(name, number)
            for name in (names.fingerprints, names.decisions, names.verdicts, *app.outputs)
            for number in range(admin.topics([name])[name].partitions)  # type: ignore[union-attr]
        ]
        records = [read_all(broker, place) for place in places]
        written = b"".join(
            value or b"" for each in records for value in (*each.keys, *each.values)
        ) + b"".join(value or b"" for each in records for row in each.headers for _, value in row)
        beside = "".join(
            committed.metadata
            for group in names.run_groups
            for committed in admin.group_offsets(group).values()
        ).encode()
        files = b"".join(path.read_bytes() for path in app.folder.rglob("*") if path.is_file())
        assert Secret.of_key(key).name.encode() in beside, "its name is on record"
        for form in forms:
            assert form not in shown + written + beside + files
        assert len(shown) > 1_000
        assert len(written) > 10_000
        assert len(files) > 10_000
    finally:
        app.close()
        broker.close()
