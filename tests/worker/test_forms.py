"""One message from Kafka to Kafka takes the forms that DESIGN lists, and where it lists a reference nothing is copied."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from tests.configs import emit_config
from tests.driver import LOG, World
from tests.memory.broker import MemoryBroker
from tests.twins import ruled
from twinsieve.pipeline.broker.records import Copies, Messages, Partition, Records
from twinsieve.pipeline.index.state import IndexState
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.block import Block, BlockFlag, decode_block, encode_block
from twinsieve.pipeline.wire.frame import scheme_hash
from twinsieve.pipeline.worker.emit import Emission, Emitter, unsendable
from twinsieve.pipeline.worker.record_reader import RecordReader
from twinsieve.pipeline.worker.session import PendingBlock
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.stages.contract import Bodies, Fingerprints, NearConfig, SieveConfig, Window
from twinsieve.stages.judge import batch_sieve as sieve_module
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

SCHEME = scheme_hash("forms")
TEXT = "今天武汉下雨了，大家出门记得带伞"


def listed(root: Path) -> list[str]:
    text = (root / "docs" / "DESIGN.md").read_text("utf-8")
    return re.findall(r"^\| \d+ \| `(\w+)` \|", text, re.MULTILINE)


class _Messages(MessageReader):
    def __init__(self, seen: list[Any]) -> None:
        super().__init__(Settings())
        self._seen = seen

    def read(self, messages: Any, unreadable: Any = None, headers: Any = ()) -> MessageColumns:
        self._seen.append(super().read(messages, unreadable, headers))
        return self._seen[-1]  # type: ignore[no-any-return]


class _Scheme:
    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen
        self._inner = Scheme(SchemeConfig())

    def read(self, texts: list[str], keys: list[bytes] | None = None) -> tuple[Bodies, Fingerprints]:
        made = self._inner.read(texts, keys)
        self._seen += made
        return made


class _Takes:
    """A producer whose topics take everything; keeps what it was asked about."""

    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def unsendable(self, _topic: str, messages: Any) -> dict[int, Any]:
        self._seen.append(messages)
        return {}


def test_a_message_takes_the_forms_that_are_listed(root: Path, monkeypatch: Any) -> None:
    seen: list[Any] = []
    world = World(partitions=1)
    world.produce("in", 0, [f'{{"text": "{TEXT}"}}'.encode()])
    records = _polled(world, Partition("in", 0))
    seen.append(records)
    takes: Any = _Takes(seen)
    config = emit_config("out", None, None)
    refused = unsendable(config, records, takes)
    kinds, batch, reasons = RecordReader(_Messages(seen), _Scheme(seen), part="value", stamped=True).read(
        records, refused
    )
    columns, bodies, prints = seen[2:]
    seen.append(batch)
    assert batch.bodies is bodies
    assert batch.fingerprints is prints
    assert batch.ids is columns.id_hashes
    asked = Block(
        bytes(16), 0, 0, 1, BlockFlag.START, 0, 1, 0, 0, stable_end=1, topic="in",
        offsets=np.array(records.offsets), kinds=kinds, batch=batch,
    )  # fmt: skip
    pending = PendingBlock(0, 1, records.slice(0, 1), reasons)
    assert pending.records is records
    seen.append(encode_block(asked, SCHEME))

    world.cluster.write(LOG, _one(seen[-1]))
    log = _polled(world, LOG)
    seen.append(log)
    block = decode_block(log.values[0] or b"", SCHEME, "log")
    seen.append(block.batch)
    whole_batch = sieve_module.whole_batch

    def chunked(*given: Any, **more: Any) -> Any:
        seen.append(whole_batch(*given, **more))
        return seen[-1]

    monkeypatch.setattr(sieve_module, "whole_batch", chunked)
    window = Window(100)
    judge = BatchSieve(SieveConfig(near=NearConfig(window=window)))
    ruling = ruled(IndexState(judge), block, 0, 0)
    chunk = seen[-1]
    assert np.shares_memory(chunk.chars, block.batch.bodies.chars)
    assert np.shares_memory(chunk.band_keys, block.batch.fingerprints.band_keys)
    seen.append(judge.near.ring.columns)

    emission = Emission()
    Emitter(config, {}, takes, Suspects()).add(emission, pending, ruling)
    ((out,),) = emission.outgoing.values()
    seen.append(out)
    assert isinstance(out, Copies)
    assert out.records is records
    names = [type(each).__name__ for each in seen]
    assert names == listed(root)
    assert len(names) <= 12


def _polled(world: World, partition: Partition) -> Records:
    reader = MemoryBroker(world.cluster).reader()
    reader.assign([partition])
    reader.seek(partition, 0)
    (records,) = reader.poll(0.0, 10)
    assert len(records) == 1
    return records


def _one(value: bytes) -> Messages:
    messages = Messages()
    messages.add(None, value)
    return messages
