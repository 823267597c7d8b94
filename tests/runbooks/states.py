"""Bring an app into the state that a page is about."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.broker.deployment import in_thread
from tests.runbooks.on_call import OnCall

_OPENS = """
import sys, time
from tests.broker.stranger import transaction
opened = transaction(sys.argv[1], "loader", transaction_timeout_ms=600000)
opened.produce(sys.argv[2], b'{"text": "never committed"}', partition=0)
opened.flush()
print("open", flush=True)
time.sleep(600)
"""


def posts(number: int, first: int = 0) -> list[str]:
    """No two of them are alike."""
    draws = [random.Random(seed) for seed in range(first, first + number)]
    texts = ["".join(chr(draw.randrange(0x4E00, 0x9F00)) for _ in range(20)) for draw in draws]
    return [f'{{"text": "{text}"}}' for text in texts]


def well(on_call: OnCall, *roles: str, program: Sequence[str] = ()) -> None:
    """All that was posted comes out of an app with processes of these roles. program: as in `OnCall.start`"""
    for role in roles:
        on_call.start(role, program=program)
    on_call.post(*posts(3))
    on_call.see_the_end("no-index")


def lose_index(on_call: OnCall, *texts: str) -> None:
    """The index dies in an app that was well, and these posts wait."""
    well(on_call, "worker", "index")
    on_call.deployment.kill("index")
    on_call.post(*texts)


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


def open_transaction(on_call: OnCall, topic: str) -> None:
    """A producer opens a transaction in a topic of the app, named without it, and dies."""
    command = [sys.executable, "-c", _OPENS, on_call.bootstrap, f"{on_call.deployment.app}.{topic}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        assert producer.stdout.readline() == b"open\n"
        producer.kill()
