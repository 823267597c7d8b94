"""Processes that were frozen longer than their session, and thaw when another one has their slot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.cluster import Cluster
from tests.broker.worlds import Connect, fresh, make_topic, until
from twinsieve.pipeline.broker.records import FatalError

_ROOT = Path(__file__).resolve().parents[2]
_SESSION_S = 6.0
_TIMES = {"session_timeout": f"{_SESSION_S:g}s"}
_LATER_S = 3.0
_MEMBER = f"""
import sys
from twinsieve.pipeline.broker.records import FatalError
from tests.broker.worlds import KafkaWorld

bootstrap, group, topic = sys.argv[1:]
consumer = KafkaWorld(bootstrap, **{_TIMES}).broker().group_consumer(group, [topic], "slot")
held = False
while True:
    try:
        now = bool(consumer.poll(0.1, 1).assignment)
    except FatalError as error:
        sys.exit(3 if error.fenced else 4)
    if now and not held:
        print("assigned", flush=True)
    held = now
"""


@pytest.fixture
def members() -> Iterator[list[subprocess.Popen[str]]]:
    """Started processes, killed at the end."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_a_thawed_member_ends_and_its_successor_stays(
    mortal_broker: Cluster, connect: Connect, members: list[subprocess.Popen[str]]
) -> None:
    broker = connect(mortal_broker.bootstrap, **_TIMES)
    group, topic = fresh("g"), make_topic(broker)
    command = [sys.executable, "-c", _MEMBER, mortal_broker.bootstrap, group, topic]
    frozen = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
    members.append(frozen)
    assert frozen.stdout is not None
    assert frozen.stdout.readline() == "assigned\n"
    os.kill(frozen.pid, signal.SIGSTOP)
    successor = broker.group_consumer(group, [topic], "slot")
    until(lambda: successor.poll(0.1, 1).assignment)
    thaw_s = time.monotonic() + _SESSION_S + 1.0
    until(lambda: (successor.poll(0.1, 1), time.monotonic() > thaw_s)[1])
    epoch = successor.poll(0.1, 1).epoch
    os.kill(frozen.pid, signal.SIGCONT)
    try:
        until(lambda: (successor.poll(0.1, 1), frozen.poll() is not None)[1])
        calm_s = time.monotonic() + _LATER_S
        until(lambda: (successor.poll(0.1, 1), time.monotonic() > calm_s)[1])
    except FatalError as error:
        pytest.fail(f"the thawed process took the slot back: {error}")
    assert frozen.returncode == 3
    assert successor.poll(0.1, 1).epoch == epoch
