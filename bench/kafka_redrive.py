"""Dead letters judged again while messages come in and every process is killed.

    python -m bench.kafka_redrive

An app with a mistyped `input.text_field` makes dead letters of all its input but the first messages. Then the
field is corrected, two processes run under a steady load, and `twinsieve redrive` runs beside them. Whenever
some thousand dead letters more have come out, `redrive` and one of the processes are killed with SIGKILL, in
turn at the same moment and one after the other, and started again. Half of the messages that come in have
the text of a dead letter, and some dead letters are equal or stay unreadable.

The checker reads the raw topics and knows nothing of how twinsieve works: a message is told by its key alone.
Every readable one must come out once, with its first place, value and timestamp, whichever way it took; every
other one is a dead letter again with a reason, at most once in each run of the command; a dropped one names a
message that came out, and no two that came out have the same text. Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, in_thread, poll_until
from tests.broker.load import PARTITIONS
from tests.broker.stranger import Message, arrived, producer, queue, reader
from twinsieve.pipeline.tools.generate.stream import generate

_READY = 400
"""Messages that the wrong settings can read: a start that reads none at all may be refused."""
_SETTLE_S = 240.0
_PLACE = re.compile(r"(.+)\[(\d+)\]@(\d+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=100_000, help="dead letters")
    parser.add_argument("--rate", type=float, default=1_000.0, help="messages a second that come in")
    parser.add_argument("--kills", type=int, default=8, help="times that `redrive` is killed")
    parser.add_argument("--pause", type=float, default=10.0, help="seconds between kills of the others")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line(), flush=True)
    with Cluster(lives_long=True).start() as cluster:
        good = _Redriven(cluster.bootstrap, options).run()
    sys.exit(0 if good else 1)


class _Redriven:
    """Dead letters are made, redriven under kills, and counted."""

    def __init__(self, bootstrap: str, options: argparse.Namespace) -> None:
        self._options = options
        self._dice = random.Random(options.seed)
        self._deployment = Deployment(bootstrap, "redrive", segment=20_000)
        self._deployment.create_topics()
        self._in, (self._out, self._dup, self._dead) = f"{self._deployment.app}.in", self._deployment.outputs
        self._bootstrap = bootstrap
        self._watch = _Watch(bootstrap, [self._out, self._dup, self._dead])
        self._sent = 0
        self._stop = threading.Event()
        self._kills: Counter[str] = Counter()
        self._runs = 0

    def run(self) -> bool:
        """Whether all is where it belongs; prints what was found."""
        watching = in_thread(self._watch.run)
        found = None
        try:
            self._make_letters()
            before = sum(self._watch.counts.values())
            self._deployment.start("a")
            self._deployment.start("b")
            loading = in_thread(self._load)
            assert poll_until(lambda: sum(self._watch.counts.values()) > before, 120.0), "nothing comes in"
            began_s = time.monotonic()
            self._redrive()
            took_s = time.monotonic() - began_s
            self._stop.set()
            loading.join(60.0)
            poll_until(self._is_all_out, _SETTLE_S)
            for name in ("a", "b"):
                self._deployment.signal(name, signal.SIGTERM)
            found = self._check()
        finally:
            self._stop.set()
            self._watch.stop.set()
            watching.join(10.0)
            self._deployment.close(keep_logs=self._options.keep_logs or found is None or not found.good)
        came_in = self._sent - self._options.letters - _READY
        kills = ", ".join(f"{name} {count}" for name, count in sorted(self._kills.items()))
        print(
            f"{self._options.letters} dead letters redriven in {took_s:.0f} s and "
            f"{self._runs} runs, while {came_in} messages came in ({came_in / took_s:.0f}/s); "
            f"kills: {kills}\n{found}",
            flush=True,
        )
        return found.good

    def _make_letters(self) -> None:
        letters = self._options.letters
        texts = [post["text"] for post in generate(letters, self._options.seed)]
        self._texts, self._watch.most = texts, _READY + letters

        def values() -> Iterator[bytes]:
            for number in range(_READY):
                yield orjson.dumps({"txet": f"{number} {texts[number]}"})
            for number, text in enumerate(texts):
                if number % 50 == 7:
                    yield b"no JSON %d" % number
                elif number % 50 == 9:
                    yield orjson.dumps({"body": text})
                else:
                    yield orjson.dumps({"text": text})

        self._deployment.set("input", text_field="txet")
        self._write(values())
        process = self._deployment.start("a")
        made = poll_until(lambda: self._watch.counts[self._dead] >= letters, _SETTLE_S)
        assert made, f"{self._watch.counts} dead letters"
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self._deployment.set("input", text_field="text")

    def _load(self) -> None:
        """Half of it has the texts of dead letters, the other half is new."""
        began_s, rate = time.monotonic(), self._options.rate

        def values() -> Iterator[bytes]:
            number = 0
            while not self._stop.is_set():
                ahead_s = began_s + number / rate - time.monotonic()
                if ahead_s > 0:
                    time.sleep(ahead_s)
                old = self._dice.randrange(len(self._texts))
                text = (
                    self._texts[old] if number % 2 else f"{number} {self._texts[old]} {self._dice.random()}"
                )
                yield orjson.dumps({"text": text})
                number += 1

        self._write(values())

    def _write(self, values: Iterator[bytes]) -> None:
        writer = producer(self._bootstrap, enable_idempotence=True, linger_ms=5)
        for value in values:
            queue(writer, self._in, value, b"%d" % self._sent, partition=self._sent % PARTITIONS)
            self._sent += 1
            writer.poll(0)
        assert writer.flush(60) == 0

    def _redrive(self) -> None:
        """Run the command until it is done; it is killed as often as asked, and so are the others."""
        every = self._options.letters // (self._options.kills + 1)
        process, killed, next_at = self._start_redrive(), 0, every
        due_s = time.monotonic() + self._options.pause
        while True:
            self._supervise()
            code = process.poll()
            if code == 0:
                return
            if code is not None:
                process = self._start_redrive()
            elif killed < self._options.kills and self._watch.redriven >= next_at:
                killed, next_at = killed + 1, next_at + every
                victims = [["redrive"], ["redrive", "a"], ["redrive", "b"], ["redrive", "a", "b"]][killed % 4]
                for name in victims:
                    self._deployment.signal(name, signal.SIGKILL)
                    self._kills[name] += 1
            elif time.monotonic() >= due_s:
                due_s = time.monotonic() + self._dice.uniform(0.5, 1.5) * self._options.pause
                name = self._dice.choice("ab")
                self._deployment.signal(name, signal.SIGKILL)
                self._kills[name] += 1
            time.sleep(0.05)

    def _start_redrive(self) -> subprocess.Popen[bytes]:
        self._runs += 1
        return self._deployment.redrive("redrive")

    def _supervise(self) -> None:
        for name in ("a", "b"):
            if self._deployment.processes[name].poll() is not None:
                self._deployment.start(name)

    def _is_all_out(self) -> bool:
        self._supervise()
        return self._watch.out >= self._sent - len(self._unreadable)

    @property
    def _unreadable(self) -> set[int]:
        """Keys of the messages that the right settings cannot read either."""
        return {_READY + number for number in range(self._options.letters) if number % 50 in (7, 9)}

    def _check(self) -> _Findings:
        """What the raw topics hold, by the keys of their messages."""
        topics = {
            name: _read_all(self._bootstrap, name) for name in (self._in, self._out, self._dup, self._dead)
        }
        keys = {
            (name, message.partition(), message.offset()): message.key()
            for name, messages in topics.items()
            for message in messages
        }
        sent = {message.key(): message for message in topics[self._in]}
        out = Counter(message.key() for message in topics[self._out])
        ended = out + Counter(message.key() for message in topics[self._dup])
        dead = Counter(message.key() for message in topics[self._dead])
        unreadable = {b"%d" % number for number in self._unreadable}
        letters = {b"%d" % number for number in range(_READY, _READY + self._options.letters)}
        found = _Findings(len(topics[self._in]), out.total(), ended.total() - out.total())
        found.lost = sum(not ended[key] for key in sent.keys() - unreadable) + sum(
            dead[key] < 2 for key in unreadable
        )
        found.extra = sum(count - 1 for count in ended.values()) + sum(ended[key] for key in unreadable)
        found.extra += sum(dead[key] - 1 for key in letters - unreadable) + sum(
            dead[key] for key in sent.keys() - letters
        )
        found.extra += sum(max(0, dead[key] - 1 - self._runs) for key in unreadable)
        found.refused = sum(dead[key] - 1 for key in unreadable)
        kept = Counter(_text_of(message) for message in topics[self._out])
        found.equal = kept.total() - len(kept)
        for name in (self._out, self._dup, self._dead):
            for message in topics[name]:
                headers = dict(message.headers())
                first = sent[message.key()]
                is_first = keys[_place(headers["twinsieve-origin"])] == message.key()
                same = message.value() == first.value() and message.timestamp() == first.timestamp()
                found.changed += not (is_first and same and len(headers) == len(message.headers()))
                if name == self._dead:
                    found.unsaid += not headers.get("twinsieve-reason")
                elif name == self._dup and "twinsieve-leader" in headers:
                    found.orphans += not out[keys[_place(headers["twinsieve-leader"])]]
        return found


@dataclass
class _Findings:
    """lost: never came out, or was not refused again; extra: came out or was refused too often

    refused: dead letters once more; equal: kept, though the same text was kept; changed: another first place,
    value or timestamp; unsaid: refused without a reason; orphans: dropped for a message that was not kept
    """

    messages: int
    unique: int
    duplicates: int
    lost: int = 0
    extra: int = 0
    refused: int = 0
    equal: int = 0
    changed: int = 0
    unsaid: int = 0
    orphans: int = 0

    @property
    def good(self) -> bool:
        return not (self.lost or self.extra or self.equal or self.changed or self.unsaid or self.orphans)

    def __str__(self) -> str:
        verdict = "OK" if self.good else "WRONG"
        return (
            f"{verdict}: {self.messages} messages, {self.unique} unique, {self.duplicates} duplicates, "
            f"{self.refused} refused again; {self.lost} lost, {self.extra} extra, {self.equal} kept twice, "
            f"{self.changed} changed, {self.unsaid} without a reason, {self.orphans} orphans"
        )


@dataclass
class _Watch:
    """Reads what comes out, in a thread, to know how far it is."""

    bootstrap: str
    topics: list[str]
    counts: Counter[str] = field(default_factory=Counter)
    ended: set[bytes] = field(default_factory=set)
    redriven: int = 0
    most: int = 0
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def out(self) -> int:
        """Number of messages in the output or the duplicates."""
        return len(self.ended)

    def run(self) -> None:
        """Until stopped."""
        outputs = reader(self.bootstrap, self.topics, PARTITIONS)
        while not self.stop.is_set():
            for message in arrived(outputs):
                self.counts[message.topic()] += 1
                if message.topic() != self.topics[-1] and message.key() not in self.ended:
                    self.ended.add(message.key())
                    self.redriven += _READY <= int(message.key()) < self.most
        outputs.close()


def _read_all(bootstrap: str, topic: str) -> list[Message]:
    """All committed messages of a topic."""
    reads, found = reader(bootstrap, [topic], PARTITIONS), []
    parts = reads.assignment()
    ends = {part.partition: reads.get_watermark_offsets(part, 30.0)[1] for part in parts}
    while any(at.offset < ends[at.partition] for at in reads.position(parts)):
        found += arrived(reads)
    reads.close()
    return found


def _place(header: bytes) -> tuple[str, int, int]:
    match = _PLACE.fullmatch(header.decode())
    assert match is not None, header
    return match[1], int(match[2]), int(match[3])


def _text_of(message: Message) -> str:
    document = orjson.loads(message.value())
    return str(document.get("text", document.get("txet")))


if __name__ == "__main__":
    main()
