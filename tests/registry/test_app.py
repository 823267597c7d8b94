"""An app whose input is of a schema registry: messages go out as they came, and wait while it does not answer."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.calling import Run, setting
from tests.memory.broker import MemoryCluster
from tests.registry import posts
from tests.registry.own_registry import OwnRegistry
from tests.service.running import Service, came_out, patient_cluster, small, wait_for
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition

TEXTS = [
    "今天武汉下雨了，大家出门记得带伞",
    "北京的天气晴朗，适合到公园里走一走",
    "今天武汉下雨了，大家出门记得带伞!",
]


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
