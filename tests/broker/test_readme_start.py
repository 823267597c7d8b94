"""The start on Kafka of README, with the first posts of OPERATIONS, gives on a real broker what OPERATIONS prints."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.broker.worlds import fresh, read_all, until
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.commands.kafka.connect import connect
from twinsieve.pipeline.settings.model import KafkaSettings

_PROGRAM = [sys.executable, "-m", "twinsieve"]
_TIMEOUT_S = 120.0


@pytest.fixture
def section(root: Path) -> str:
    """The commands and the table of headers."""
    text = (root / "README.md").read_text("utf-8")
    return text[text.index("## On Kafka") : text.index("## What is promised")]


@pytest.fixture
def first_posts(root: Path) -> str:
    """Posts to type, and what is kept of them."""
    text = (root / "docs" / "OPERATIONS.md").read_text("utf-8")
    return text[text.index("## The first posts") : text.index("## What comes out")]


def _blocks(section: str, kind: str) -> list[str]:
    blocks = re.findall(r"^```([a-z]*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return [text for its, text in blocks if its == kind]


def _lines(records: Records) -> list[str]:
    """As the console consumer prints them with headers."""
    found = []
    for headers, value in zip(records.headers, records.values, strict=True):
        shown = ",".join(f"{name}:{(held or b'').decode()}" for name, held in headers)
        found.append(f"{shown}\t{(value or b'').decode()}")
    return found


def test_the_start_on_kafka_gives_what_the_page_prints(
    section: str, first_posts: str, root: Path, tmp_path: Path, bootstrap: str
) -> None:
    (first,), (second,) = _blocks(section, "sh"), _blocks(first_posts, "sh")
    (printed,) = _blocks(first_posts, "")
    make_topic, *commands, consume = [shlex.split(line) for line in first.splitlines()]
    assert consume[consume.index("--topic") + 1] == "posts.unique"
    assert "read_committed" in consume
    # A broker that was lent may have topics of these names.
    name = fresh("posts")
    own = {
        "app": fresh("app"),
        "kafka.bootstrap": bootstrap,
        "http.listen": "none",
        "input.topics": name,
        "output.topic": f"{name}.unique",
        "output.duplicates": f"{name}.duplicates",
        "output.dead_letter": f"{name}.dead",
    }
    sets = [word for key, value in own.items() for word in ("--set", f"{key}={value}")]
    (tmp_path / "config").symlink_to(root / "config")

    broker = connect(KafkaSettings(bootstrap=bootstrap))
    assert make_topic[make_topic.index("--topic") + 1] == "posts"
    partitions = int(make_topic[make_topic.index("--partitions") + 1])
    broker.admin().create_topic(NewTopic(name, partitions))
    *before, run = [[*_PROGRAM, *words[1:], *sets] for words in commands]
    for command in before:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=_TIMEOUT_S, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert before[-1][3:5] == ["topics", "check"]
    assert done.stdout == b""

    posts = [word for word in shlex.split(second) if word.startswith("{")]
    producer = Producer({"bootstrap.servers": bootstrap})
    for post in posts:
        producer.produce(name, post.encode(), partition=0)
    assert producer.flush(60) == 0
    assert "read_committed" in shlex.split(second)
    with subprocess.Popen(run, cwd=tmp_path, stderr=subprocess.PIPE) as running:
        try:
            kept, dropped, dead = (Partition(f"{name}.{one}", 0) for one in ("unique", "duplicates", "dead"))
            until(lambda: len(read_all(broker, dead).values) == 1)
            assert _lines(read_all(broker, kept)) == printed.replace("posts[", f"{name}[").splitlines()
            why = [dict(headers) for headers in read_all(broker, dropped).headers]
            reason = dict(read_all(broker, dead).headers[0])
        finally:
            running.send_signal(signal.SIGTERM)
            said = running.stderr.read().decode() if running.stderr is not None else ""
        assert running.wait(_TIMEOUT_S) == 0, said
    broker.close()

    assert [one["twinsieve-stage"] for one in why] == [b"exact", b"near"]
    shown = dict(re.findall(r"`(twinsieve-[a-z]+): ([^`]+)`", section))
    assert shown["twinsieve-leader"].replace("posts[", f"{name}[").encode() == why[1]["twinsieve-leader"]
    assert shown["twinsieve-similarity"].encode() == why[1]["twinsieve-similarity"]
    assert shown["twinsieve-reason"].encode() == reason["twinsieve-reason"]
