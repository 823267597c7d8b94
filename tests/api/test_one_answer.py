"""One file of rows has one answer: by the command, in Python and on Kafka, each with its defaults."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pytest

from tests.api.windows import default_window
from tests.generated_posts import generate
from tests.memory.broker import MemoryBroker, MemoryCluster
from tests.service.running import Service, came_out, wait_for
from twinsieve import Sieve
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.messages.fields import to_json
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import HttpSettings, Settings, StateSettings, TopicSettings

_ROWS = 30_000


@pytest.fixture(scope="module")
def posts() -> list[dict[str, Any]]:
    return list(generate(_ROWS, seed=11, rate=20.0))


def _by_command(posts: list[dict[str, Any]], folder: Path, *flags: str) -> list[bytes]:
    (folder / "in.jsonl").write_bytes(b"".join(to_json(post) + b"\n" for post in posts))
    assert main(["dedup", "-q", str(folder / "in.jsonl"), "-o", str(folder / "out.jsonl"), *flags]) == 0
    return (folder / "out.jsonl").read_bytes().splitlines()


def test_command_python_and_kafka_keep_the_same_rows(posts: list[dict[str, Any]], tmp_path: Path) -> None:
    expected = _by_command(posts, tmp_path)
    assert 0.3 * _ROWS < len(expected) < 0.9 * _ROWS
    assert [to_json(post) for post in Sieve().dedup(posts, text="text")] == expected
    assert [to_json(post) for post in Sieve().dedup(iter(posts), text="text", chunk=777)] == expected

    cluster = MemoryCluster(SystemClock())
    cluster.create(NewTopic("posts", 1))
    messages = Messages()
    for post in posts:
        messages.add(None, to_json(post))
    MemoryBroker(cluster).appender().append(Partition("posts", 0), messages)
    settings = Settings(
        topics=TopicSettings(auto_create=True),
        state=StateSettings(dir=str(tmp_path / "state")),
        http=HttpSettings(listen=None),
    )
    service = Service(settings, cluster, member="one")
    wait_for(lambda: came_out(cluster, "posts.unique", "posts.duplicates") == _ROWS, "every row")
    service.end()
    assert cluster.values("posts.unique") == expected


@pytest.mark.parametrize("make", [list, pd.DataFrame, lambda posts: pa.Table.from_pylist(posts)])
def test_rows_beyond_the_default_window_are_judged_with_a_window_of_their_number(
    posts: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Any], Any]
) -> None:
    """Copies of the oldest rows come last: with a smaller window they would be kept."""
    half = posts[:2_000]
    rows = half + [post | {"text": post["text"] + " ok"} for post in half]
    expected = _by_command(rows, tmp_path, "--set", f"near.window.messages={len(rows)}")
    smaller = _by_command(rows, tmp_path, "--set", "near.window.messages=500")
    assert len(smaller) > 1.2 * len(expected)
    default_window(monkeypatch, 500)
    kept = Sieve().dedup(make(rows), text="text")
    ids = [post["id"] for post in kept] if make is list else pa.table(kept)["id"].to_pylist()
    assert ids == [orjson.loads(line)["id"] for line in expected]


def test_a_window_that_is_set_and_one_that_holds_texts_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"{chr(0x4E00 + n)}{chr(0x5E00 + n)} a message of its own {n}" for n in range(50)]
    default_window(monkeypatch, 20)
    grown, used = Sieve(), Sieve()
    grown.save(tmp_path / "grown")
    grown.judge(texts)
    assert caplog.messages == []
    used.judge(texts[:2])
    used.judge(texts)
    assert (grown.stats().capacity, used.stats().capacity) == (50, 20)
    grown.save(tmp_path / "grown")
    assert Sieve.load(tmp_path / "grown").query(texts).leader.tolist() == list(range(50))
    for chosen in (Sieve(window=20), Sieve(settings={"near.window.messages": 20})):
        chosen.judge(texts)
        assert chosen.stats().capacity == 20


@pytest.mark.parametrize(
    ("given", "near", "exact"),
    [
        ({}, 60, 60),
        ({"exact_window": 10}, 60, 10),
        ({"window": 10}, 10, 60),
        ({"window": 10, "exact_window": 9}, 10, 9),
    ],
)
def test_each_window_that_is_set_stays_and_the_other_holds_the_first_call(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], near: int, exact: int
) -> None:
    """An exact window of n texts finds the copy of a text that n - 1 others follow, and no older one."""
    default_window(monkeypatch, 20)
    texts = [f"{chr(0x4E00 + n)}{chr(0x5E00 + n)} a message of its own {n}" for n in range(60)]
    sieve = Sieve(exact="trie", **given)
    sieve.judge(texts)
    stages = [sieve.query([text])[0].stage for text in texts]
    assert sieve.stats().capacity == near
    assert stages.count("exact") == exact


_GROWS = """
import re
from twinsieve import Sieve
from twinsieve.pipeline.tools.generate.stream import generate
def held():
    return int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
texts = [post["text"] for post in generate(1_000, seed=1)]
Sieve(window=10, exact_window=10).judge(texts)
before = held()
sieves = [Sieve() for _ in range(4)]
for sieve in sieves:
    sieve.judge(texts)
print((held() - before) / len(sieves))
"""


def test_memory_follows_what_is_kept_and_not_the_window() -> None:
    """MiB that a sieve with the default windows takes for 1,000 posts; its index would take 316 MiB when full."""
    ran = subprocess.run([sys.executable, "-c", _GROWS], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 64
