"""A process with both roles, the real scheme and the real sieve on the memory broker, driven step by step."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import orjson

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from tests.memory.log import Entry
from tests.twins import Later
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, Header, Messages, Partition
from twinsieve.pipeline.index.index import Index
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.worker import Worker
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme

_MAX_ROUNDS = 2_000


def unlike(number: int) -> str:
    """A text that is unlike that of any other number."""
    dice = random.Random(number)
    return "".join(chr(0x4E00 + dice.randrange(5_000)) for _ in range(30))


def edited(text: str) -> str:
    """One character of such a text is another."""
    return text[:15] + "改" + text[16:]


class Stepped:
    """One such process; `again` ends it and starts the next. `counted`: counts of all that came out.

    partitions: of each input topic; the outputs get as many as the first, but for `topics.output_partitions`
    """

    def __init__(self, settings: Settings, scheme: Scheme, partitions: Mapping[str, int]) -> None:
        self.clock = ManualClock()
        self.cluster = MemoryCluster(self.clock, session_timeout_s=6.0, transaction_timeout_s=8.0)
        for name, count in partitions.items():
            self.cluster.create(NewTopic(name, count))
        self._broker = MemoryBroker(self.cluster)
        create(settings, self._broker.admin())
        self._settings = settings
        self._builder = Builder(
            settings, scheme, self.clock, lambda _: self._broker, "one", emit=True, background=Later()
        )
        self.counted = Emission()
        self.index, self.worker = self._roles()

    def _roles(self) -> tuple[Index, Worker]:
        return self._builder.index(no_hook), self._builder.worker(no_hook)

    def again(self, settings: Settings | None = None) -> None:
        """As kill -9 and a restart, with other settings if any: the index restores from log and decisions."""
        self.clock.sleep(20.0)
        self._builder = replace(self._builder, settings=settings or self._settings)
        self.index, self.worker = self._roles()

    @property
    def sieve(self) -> BatchSieve:
        """What the index remembers."""
        sieve = self.index.state.sieve
        assert isinstance(sieve, BatchSieve)
        return sieve

    def post(self, partition: Partition, text: str, time_ms: int | None = None) -> None:
        """Write one post and wait until everything written is judged and emitted."""
        self.posts(partition, [text], time_ms)

    def posts(self, partition: Partition, texts: Iterable[str], time_ms: int | None = None) -> None:
        """Write posts of one moment (default: now) and wait until everything written is emitted."""
        stamp = self.clock.now_ms() if time_ms is None else time_ms
        self.write(partition, (orjson.dumps({"text": text, "created_at": stamp}) for text in texts))

    def write(
        self,
        partition: Partition,
        values: Iterable[bytes | None],
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        stamp_ms: int = NO_TIMESTAMP,
    ) -> None:
        """Write messages with these values and wait until everything written is emitted."""
        messages = Messages()
        for value in values:
            messages.add(key, value, headers, stamp_ms)
        self.cluster.write(partition, messages)
        self.settle()

    def settle(self) -> None:
        """Run until every input partition is committed up to its end."""
        for _ in range(_MAX_ROUNDS):
            self.index.step(0.05)
            self.counted.count(self.worker.step(0.05))
            if self._quiet():
                return
        raise AssertionError(f"stuck: {self.index.notices} {self.worker.notices}")

    def _quiet(self) -> bool:
        offsets = self.cluster.group(Names(self._settings.app).workers).offsets
        partitions = [
            Partition(name, number)
            for name in self._settings.input.topics
            for number in range(len(self.cluster.topics[name].logs))
        ]
        return all(at in offsets and offsets[at].offset >= self.cluster.log(at).end for at in partitions)

    def entries(self, topic: str) -> list[Entry]:
        """What came out there, partition after partition."""
        return [entry for log in self.cluster.topics[topic].logs for _, entry in log.visible()]

    def texts(self, topic: str) -> list[str]:
        """Texts of the posts that came out there."""
        return [orjson.loads(entry.value or b"null")["text"] for entry in self.entries(topic)]
