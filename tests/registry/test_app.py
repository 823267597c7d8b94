"""An app whose input is of a schema registry: messages go out as they came, and wait while it does not answer."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.calling import Run, setting
from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.registry import posts
from tests.registry.own_registry import OwnRegistry
from tests.registry.test_header_ids import written
from tests.registry.test_values import POST, framed, post
from tests.service.running import Service, came_out, patient_cluster, small, wait_for
from tests.service.scraped import Scraped, listening
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.operate.dead_letters import letter_topic, survey
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.why.duplicates_topic import TopicDrops
from twinsieve.pipeline.why.verdict import verdict_of
from twinsieve.pipeline.wire.headers import reason_of
from twinsieve.pipeline.worker import schema_holds
from twinsieve.pipeline.worker.waiting import WaitReason

TEXTS = [
    "今天武汉下雨了，大家出门记得带伞",
    "北京的天气晴朗，适合到公园里走一走",
    "今天武汉下雨了，大家出门记得带伞!",
]


@pytest.fixture(autouse=True)
def _answers(own: OwnRegistry) -> None:
    own.answer_again()


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = patient_cluster()
    cluster.create(NewTopic("posts", 1))
    return cluster


def _write(cluster: MemoryCluster, values: list[bytes]) -> None:
    messages = Messages()
    for value in values:
        messages.add(b"k", value)
    cluster.write(Partition("posts", 0), messages)


def encoded(own: OwnRegistry, number: int) -> bytes:
    """A message that no other is a copy of."""
    text = f"{number:x} is the text of a post and {number * 7919:x}"
    return posts.writer(own, "avro")(orjson.dumps({"id": f"{number}", "text": text, "created_at": ""}))


def _values(cluster: MemoryCluster, topic: str) -> list[bytes | None]:
    return [entry.value for _, entry in cluster.log(Partition(topic, 0)).visible()]


@pytest.mark.parametrize("encoding", ["avro", "json_schema", "protobuf"])
def test_messages_go_out_as_they_came(
    encoding: str, own: OwnRegistry, cluster: MemoryCluster, tmp_path: Path
) -> None:
    write = posts.writer(own, encoding)
    values = [
        write(orjson.dumps({"id": f"{number}", "text": text, "created_at": "2024-01-01T08:00:00Z"}))
        for number, text in enumerate(TEXTS)
    ]
    _write(cluster, [*values, b"{}"])
    service = Service(small(tmp_path, posts.settings(own, encoding)), cluster)
    wait_for(lambda: came_out(cluster, "posts.unique", "posts.duplicates", "posts.dead") == 4, "all")
    service.end()
    assert _values(cluster, "posts.unique") == values[:2]
    assert _values(cluster, "posts.duplicates") == values[2:]
    assert _values(cluster, "posts.dead") == [b"{}"]


def test_messages_with_ids_in_headers_go_out_as_they_came(
    own: OwnRegistry, cluster: MemoryCluster, tmp_path: Path
) -> None:
    """Their texts are read too where a message is looked up later."""
    rows = [written(own, post(number, text)) for number, text in enumerate(TEXTS)]
    value = rows[0][0]
    held = {**POST, "name": "Other"}
    with OwnRegistry() as other:
        guid = other.guid(other.add("posts-value", held)).bytes
    rows += [(value, [("__value_schema_id", b"\2")]), (value, [("__value_schema_id", b"\1" + guid)])]
    messages = Messages()
    for each, headers in rows:
        messages.add(b"k", each, headers)
    cluster.write(Partition("posts", 0), messages)
    settings = small(tmp_path, posts.settings(own, "avro"))
    service = Service(settings, cluster)
    wait_for(lambda: came_out(cluster, "posts.unique", "posts.duplicates", "posts.dead") == 5, "all")
    service.end()
    for topic, sent in (
        ("posts.unique", rows[:2]),
        ("posts.duplicates", rows[2:3]),
        ("posts.dead", rows[3:]),
    ):
        found = [entry for _, entry in cluster.log(Partition(topic, 0)).visible()]
        assert [(entry.value, list(entry.headers)[:1]) for entry in found] == sent
    broker, clock = MemoryBroker(cluster), SystemClock()
    account = verdict_of(settings, broker, clock, InputPosition(Partition("posts", 0), 2), 1_000)
    assert account.drop is not None
    assert account.drop.leader is not None
    assert account.drop.leader.text == TEXTS[0]
    drops = TopicDrops(settings, broker, clock)
    (drop,) = drops.told(list(drops.read()))
    drops.close()
    assert (drop.message.text, drop.leader and drop.leader.text) == (TEXTS[2], TEXTS[0])
    own.add("posts-value", held)
    letters = survey(settings, broker, clock, letter_topic(settings, broker), read=True).letters
    assert {reason: each.readable for reason, each in letters.items()} == {
        "no_schema": 0,
        "unknown_schema": 1,
    }


def test_messages_wait_while_the_registry_does_not_answer(
    own: OwnRegistry, cluster: MemoryCluster, tmp_path: Path
) -> None:
    write = posts.writer(own, "avro")
    _write(cluster, [write(orjson.dumps({"id": "1", "text": TEXTS[0], "created_at": ""}))])
    own.status = 503
    service = Service(small(tmp_path, posts.settings(own, "avro")), cluster)
    wait_for(lambda: len(own.asked) > 2, "it is asked again")
    assert came_out(cluster, "posts.unique", "posts.dead") == 0
    own.status = None
    wait_for(lambda: came_out(cluster, "posts.unique") == 1, "the message comes out")
    service.end()


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return listening(monkeypatch)


def test_a_start_waits_for_no_registry(
    own: OwnRegistry, cluster: MemoryCluster, ports: list[int], tmp_path: Path
) -> None:
    """So one message among the first of a topic does not keep a new app from its start."""
    good = [encoded(own, number) for number in range(3)]
    _write(cluster, [framed(777, b"\2a"), *good])
    own.is_dead = True
    listens = {"http": {"listen": "127.0.0.1:0"}}
    app = Scraped(small(tmp_path, posts.settings(own, "avro"), **listens), cluster, ports)
    reasons = {(str(reason),): float(reason is WaitReason.SCHEMA) for reason in WaitReason}
    app.tells(waiting_partitions=reasons)
    assert app.metrics()["process_phase"]["waiting_for_broker",] == 0
    assert app.status("/readyz") == 200
    own.is_dead = False
    own.says = lambda _: (403, {"error_code": 40301, "message": "User is denied operation Read"})

    def all_came() -> bool:
        app.clock.sleep(0.05)
        return came_out(cluster, "posts.unique", "posts.dead") == 4

    wait_for(all_came, "all but the one")
    app.stop()
    assert _values(cluster, "posts.dead") == [framed(777, b"\2a")]


@pytest.mark.parametrize("slow", [{"a_second": 25}, {"delay_s": 0.2}])
def test_ids_that_nobody_knows_hold_their_own_partition_and_not_for_long(
    slow: dict[str, float], own: OwnRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that takes 25 requests a second, or is 200 ms away, is asked for 600 ids of strangers."""
    monkeypatch.setattr(schema_holds, "PATIENCE_S", 3.0)
    cluster = patient_cluster()
    cluster.create(NewTopic("posts", 2))
    good = [encoded(own, number) for number in range(40)]
    strange = [framed(1_000 + number, b"\2a") for number in range(600)]
    _write(cluster, [value for at, one in enumerate(strange) for value in (one, *good[at::600])])
    own.asked.clear()
    for name, value in slow.items():
        setattr(own, name, value)
    service = Service(small(tmp_path, posts.settings(own, "avro")), cluster)
    wait_for(lambda: came_out(cluster, "posts.dead") > 0, "a message of strangers was judged")
    others = Messages()
    for number in range(40, 60):
        others.add(b"k", encoded(own, number))
    cluster.write(Partition("posts", 1), others)
    wait_for(lambda: came_out(cluster, "posts.unique") >= 20, "the other partition goes on")
    assert came_out(cluster, "posts.dead") < 600
    wait_for(lambda: came_out(cluster, "posts.unique", "posts.dead") == 660, "all")
    service.end()
    letters = [entry for log in cluster.topics["posts.dead"].logs for _, entry in log.visible()]
    assert [entry.value for entry in letters] == strange
    assert {str(reason_of(entry.headers)) for entry in letters} == {"unknown_schema", "schema_unanswered"}
    assert [value for value in _values(cluster, "posts.unique") if value in good] == good


WRONG = [
    ({"input.encoding": "avro"}, "input.registry.url is missing"),
    ({"input.encoding": "protobuf", "input.registry.url": "http://me:secret@host"}, "cannot be used"),
    ({"input.registry.url": "http://host:8081"}, "input.registry.url is set, but input.encoding is json"),
    (
        {"input.encoding": "avro", "input.registry.url": "http://h", "input.registry.key_file": "/dev/null"},
        "input.registry.key_file and certificate_file come together",
    ),
]


@pytest.mark.parametrize(("given", "told"), WRONG)
def test_lint_says_what_is_wrong(given: dict[str, str], told: str, run: Run) -> None:
    ran = run("lint", *setting(*(f"{key}={value}" for key, value in given.items())))
    assert ran.code == 2
    assert told in ran.out + ran.err
    assert "secret" not in ran.out + ran.err


def test_files_are_not_read_as_avro(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "posts.jsonl"
    file.write_text("{}\n")
    ran = run("dedup", str(file), *setting("input.encoding=avro", "input.registry.url=http://h"))
    assert ran.code != 0
    assert "is for Kafka" in ran.err
