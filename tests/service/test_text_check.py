"""A start that would find no text stops before it joins a group, asks or commits; in doubt it goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.memory.clients import MemoryReader
from tests.service.running import Service, came_out, patient_cluster, small, wait_for
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition, Records
from twinsieve.pipeline.service.redrive import run_redrive
from twinsieve.pipeline.service.seed import run_seed
from twinsieve.pipeline.settings.model import Settings

POSTS = [f"今天武汉下雨了，大家出门记得带伞 {number}" for number in range(20)]
WRONG = [{"id": f"p{number}", "body": text} for number, text in enumerate(POSTS)]
OUTPUTS = ("posts.unique", "posts.duplicates", "posts.dead")
RIGHT = [{"id": f"p{number}", "text": text} for number, text in enumerate(POSTS)]


@pytest.fixture
def cluster() -> MemoryCluster:
    cluster = patient_cluster()
    for name in ("posts", "more"):
        cluster.create(NewTopic(name, 2))
    return cluster


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path)


def _settings(folder: str, **source: object) -> Settings:
    return small(folder, source)


def _write(cluster: MemoryCluster, messages: Sequence[object], topic: str = "posts") -> None:
    for number, message in enumerate(messages):
        batch = Messages()
        batch.add(None, message if isinstance(message, bytes | None) else json.dumps(message).encode())
        cluster.write(Partition(topic, number % 2), batch)


def _refused(cluster: MemoryCluster, settings: Settings, **options: Any) -> list[str]:
    """The lines with which a start ends before anything was asked or committed."""
    app = f"{settings.app}-shadow" if options.get("dry_run") else settings.app
    blocks = came_out(cluster, Names(app).fingerprints)
    committed = dict(cluster.group(Names(app).workers).offsets)
    service = Service(settings, cluster, **options)
    service.join()
    assert isinstance(service.error, BrokerError)
    assert service.error.lasting
    assert came_out(cluster, Names(app).fingerprints) == blocks
    assert cluster.group(Names(app).workers).offsets == committed
    return str(service.error).splitlines()


def _all_come_out(cluster: MemoryCluster, settings: Settings, count: int, **options: Any) -> None:
    output = settings.output
    outputs = [topic for topic in (output.topic, output.duplicates, output.dead_letter) if topic]
    service = Service(settings, cluster, **options)
    wait_for(lambda: came_out(cluster, *outputs) >= count or not service.running, f"{count} messages")
    service.end()
    assert came_out(cluster, *outputs) == count


@pytest.mark.parametrize("options", [{}, {"dry_run": True}])
def test_a_wrong_field_ends_the_start_and_names_the_other(
    cluster: MemoryCluster, folder: str, options: dict[str, Any]
) -> None:
    _write(cluster, WRONG)
    (line,) = _refused(cluster, _settings(folder), **options)
    assert line.startswith("posts[")
    assert (
        "]@0: none of the first 20 messages has a text in 'text', but 'body' holds a string in 20 of 20"
        in line
    )
    assert line.endswith(
        "set input.text_field to 'body'; if these messages have no text, set input.expect_text: false"
    )
    if not options:
        _all_come_out(cluster, _settings(folder, text_field="body"), len(WRONG))


def test_each_topic_without_a_text_is_a_line(cluster: MemoryCluster, folder: str) -> None:
    _write(cluster, RIGHT)
    _write(cluster, WRONG, "more")
    (line,) = _refused(cluster, _settings(folder, topics=["posts", "more"]))
    assert line.startswith("more[")
    lines = _refused(cluster, _settings(folder, topics=["posts", "more"], text_field="words"))
    assert len(lines) == 2


def test_messages_without_texts_come_out_where_none_is_expected(cluster: MemoryCluster, folder: str) -> None:
    _write(cluster, WRONG)
    _all_come_out(cluster, _settings(folder, expect_text=False), len(WRONG))


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [None] * 20,
        [{"id": "a", "count": number} for number in range(20)],
        [b"{", b"\xff\xfe", b"[" * 1_000_000, b"", *[b'{"text": 1}'] * 16],
        [*WRONG, {"text": "one with a text"}],
        [{"type": "delete", "id": "1"}],
    ],
    ids=["nothing", "tombstones", "no text anywhere", "hostile", "one has a text", "one of a stranger"],
)
def test_in_doubt_the_start_goes_on(
    cluster: MemoryCluster, folder: str, messages: list[bytes | None]
) -> None:
    _write(cluster, messages)
    _all_come_out(cluster, _settings(folder), len(messages))


def test_settings_that_have_judged_a_text_are_not_checked_again(cluster: MemoryCluster, folder: str) -> None:
    _write(cluster, RIGHT)
    _all_come_out(cluster, _settings(folder), len(RIGHT))
    for times in (1, 2):
        _write(cluster, WRONG)
        _all_come_out(cluster, _settings(folder), len(RIGHT) + times * len(WRONG))
    # What is read from the committed offsets on decides, not what was judged before.
    _write(cluster, WRONG)
    (line,) = _refused(cluster, _settings(folder, text_field="txet"))
    assert "]@30: none of the first 20 messages" in line


def test_dead_letters_alone_put_no_settings_on_record(cluster: MemoryCluster, folder: str) -> None:
    _write(cluster, WRONG)
    _all_come_out(cluster, _settings(folder, expect_text=False), len(WRONG))
    _write(cluster, WRONG)
    (line,) = _refused(cluster, _settings(folder))
    assert "]@10: none of" in line


@pytest.mark.parametrize("judge", ["index", "redrive"])
def test_a_process_that_has_found_no_text_puts_its_settings_not_on_record(
    cluster: MemoryCluster, folder: str, tmp_path: Path, judge: str
) -> None:
    """Its index judges the texts of workers with other settings, or dead letters."""
    other = str(tmp_path / "other")
    right, wrong = _settings(folder), _settings(other, text_field="body")
    if judge == "index":
        index = Service(wrong, cluster, role="index")
        _write(cluster, RIGHT)
        worker = Service(right, cluster, role="worker")
        wait_for(lambda: came_out(cluster, *OUTPUTS) == len(RIGHT), "the posts")
        worker.end()
        index.end()
    else:
        _write(cluster, [*RIGHT, *WRONG])
        _all_come_out(cluster, right, len(RIGHT) + len(WRONG))
        redriven = run_redrive(wrong, lambda _: MemoryBroker(cluster))
        assert redriven.kinds.total() == len(WRONG)
    _write(cluster, RIGHT)
    (line,) = _refused(cluster, wrong, role="worker")
    assert "set input.text_field to 'text'" in line


def test_an_index_alone_puts_the_texts_that_it_finds_on_record(cluster: MemoryCluster, folder: str) -> None:
    _write(cluster, RIGHT)
    index = Service(_settings(folder), cluster, role="index")
    worker = Service(_settings(folder), cluster, role="worker")
    wait_for(lambda: came_out(cluster, *OUTPUTS) == len(RIGHT), "the posts")
    worker.end()
    index.end()
    _write(cluster, WRONG)
    _all_come_out(cluster, _settings(folder), len(RIGHT) + len(WRONG))


def test_a_start_at_the_end_looks_at_what_comes(
    cluster: MemoryCluster, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(cluster, RIGHT)
    polls = 0
    poll = MemoryReader.poll

    def comes(self: MemoryReader, timeout_s: float, max_records: int) -> list[Records]:
        nonlocal polls
        polls += 1
        if polls == 2:
            _write(cluster, WRONG)
        return poll(self, timeout_s, max_records)

    monkeypatch.setattr(MemoryReader, "poll", comes)
    (line,) = _refused(cluster, _settings(folder, start="latest"), clock=cluster.clock)
    assert "'body'" in line


def test_no_more_than_200_messages_of_a_topic_are_looked_at(cluster: MemoryCluster, folder: str) -> None:
    _write(cluster, [*WRONG * 20, {"text": "one with a text"}])
    (line,) = _refused(cluster, _settings(folder))
    assert "none of the first 200 messages" in line


@pytest.mark.parametrize("since", [False, True])
def test_seed_checks_its_own_topic_before_it_commits(
    cluster: MemoryCluster, folder: str, since: bool
) -> None:
    _write(cluster, RIGHT)
    since_ms, first = None, 0
    if since:
        _write(cluster, RIGHT, "more")
        cluster.clock.sleep(60.0)
        since_ms, first = cluster.clock.now_ms(), len(RIGHT) // 2
    _write(cluster, WRONG, "more")
    with pytest.raises(BrokerError, match=rf"^more\[.\]@{first}: none of the first 20 messages"):
        run_seed(_settings(folder), "more", lambda _: MemoryBroker(cluster), since_ms=since_ms)
    assert came_out(cluster, "t.fingerprints") == 0
    assert cluster.group("t.seed").offsets == {}
