"""Batches that a client may fail to decode: every codec is read, odd names pass, damage holds its partition."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from kafka import KafkaProducer

from tests.broker.cluster import Cluster
from tests.broker.services import POSTS, Service, origins, value_of, wait_for
from tests.broker.stranger import produce, producer
from tests.broker.worlds import (
    Connect,
    fetched,
    make_topic,
    read_all,
    reader_at,
    reading,
    until,
    write,
)
from twinsieve.pipeline.broker.ports import Broker, Reader
from twinsieve.pipeline.broker.records import BrokerError, Partition, Records, UnreadableError

_BATCH = 20


def write_batch(bootstrap: str, log: Partition, codec: str) -> None:
    """One batch of 20 messages, compressed."""
    sends = producer(bootstrap, compression_type=codec, linger_ms=1_000)
    # flush() would send what is there; before the leader is known that may be a part of it.
    sends.list_topics(log.topic, timeout=60.0)
    for number in range(_BATCH):
        sends.produce(log.topic, b"%d" % number * 100, partition=log.number)
    until(lambda: sends.poll(0.1) >= 0 and not len(sends))


def nothing_more(reader: Reader) -> bool:
    """kafka-python may have fetched the damage again meanwhile, and says so once more."""
    try:
        return reader.poll(0.0, 100) == []
    except BrokerError as error:
        return "cannot be decoded" in str(error)


def damage(cluster: Cluster, log: Partition) -> None:
    """Alters the middle of the log on disk, where brokers do not look."""
    segment = cluster.folder / "node1" / "data" / f"{log.topic}-{log.number}" / f"{0:020}.log"
    with open(segment, "r+b") as file:
        file.seek(segment.stat().st_size // 2)
        held = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([held[0] ^ 0x55]))


def polled(reader: Reader, log: Partition, offset: int) -> Records:
    """The first records from this offset on."""
    reader.seek(log, offset)
    return until(lambda: reader.poll(0.1, 100))[0]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(bootstrap: str, codec: str, broker: Broker) -> None:
    log = Partition(make_topic(broker), 0)
    write_batch(bootstrap, log, codec)
    assert read_all(broker, log).values == [b"%d" % number * 100 for number in range(_BATCH)]


def test_a_damaged_batch_is_named_every_time_and_can_be_passed_over(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap)
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"before"])
    write_batch(mortal_broker.bootstrap, log, "none")
    write(broker, log, [b"behind"])
    damage(mortal_broker, log)
    reader = broker.reader()
    reader.assign([log])
    assert polled(reader, log, 0).values == [b"before"]
    for offset in (1, 1, 5):
        with pytest.raises(UnreadableError, match="cannot be decoded") as said:
            polled(reader, log, offset)
        assert not said.value.retryable
        assert str(said.value).startswith(f"{log}@{offset}: ")
        assert (said.value.offset, said.value.after) == (offset, 1 + _BATCH)
        assert nothing_more(reader), "nothing behind it passes for the next message"
    assert polled(reader, log, 1 + _BATCH).values == [b"behind"]


def test_damage_that_was_met_and_not_yet_said_is_not_said_behind_it(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap)
    log = Partition(make_topic(broker), 0)
    write_batch(mortal_broker.bootstrap, log, "none")
    write(broker, log, [b"behind"])
    damage(mortal_broker, log)
    reader = reader_at(broker, log)
    # It meets the damage in this call or the next one.
    with suppress(BrokerError):
        assert reader.poll(10.0, 100) == []
    assert polled(reader, log, _BATCH).values == [b"behind"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_too_much_is_named_and_can_be_passed_over(
    bootstrap: str, codec: str, connect: Connect
) -> None:
    broker = connect(bootstrap, max_unpacked_bytes="8MiB", message_bytes="1MiB")
    log = Partition(make_topic(broker, max_message_bytes=str(16 << 20)), 0)
    write(broker, log, [b"before"])
    large = 48 << 20
    produce(bootstrap, log.topic, bytes(large), compression_type=codec, message_max_bytes=2 * large)
    write(broker, log, [b"behind"])
    reader = broker.reader()
    reader.assign([log])
    assert polled(reader, log, 0).values[0] == b"before"
    for _ in range(2):
        with pytest.raises(UnreadableError, match="cannot be decoded") as said:
            polled(reader, log, 1)
        assert (said.value.offset, said.value.after) == (1, 2)
        assert "kafka.max_unpacked_bytes, 8388608" in str(said.value)
    assert polled(reader, log, 2).values == [b"behind"]


def test_a_damaged_batch_holds_what_is_behind_it_until_it_is_skipped(
    serving: Callable[..., Service], mortal_broker: Cluster
) -> None:
    service = serving(mortal_broker.bootstrap)
    source = Partition(service.settings.input.topics[0], 0)
    service.post(POSTS[0])
    write_batch(mortal_broker.bootstrap, source, "none")
    damage(mortal_broker, source)
    service.post(POSTS[1])
    service.start()
    wait_for(lambda: service.count("out") == 1, service)
    service.stop()
    assert service.error is None
    assert list(origins(service.read("out"))) == [0], "the message behind it waits"
    skips = service.settings.input.model_copy(update={"on_unreadable_batch": "skip"})
    service.settings = service.settings.model_copy(update={"input": skips})
    service.start()
    wait_for(lambda: service.count("out") == 2, service)
    assert list(origins(service.read("out"))) == [0, 1 + _BATCH]


class _Bytes(str):
    """A header name that kafka-python's producer sends as bytes which are no UTF-8; librdkafka's sends none."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return b"\xff\xfe" + super().encode(encoding)


def test_a_header_name_that_is_no_text_stops_nobody(service: Service, bootstrap: str) -> None:
    source = service.settings.input.topics[0]
    sends = KafkaProducer(bootstrap_servers=bootstrap)
    for text, name in zip(POSTS[:3], ("plain", _Bytes("odd"), "plain"), strict=True):
        headers = [(name, b"1"), ("other", b"2")]
        sends.send(source, value_of(text), partition=0, headers=headers).get(60)
    sends.close()
    service.start()
    wait_for(lambda: service.count("out", "dead") >= 3, service)
    out = service.read("out")
    assert list(origins(out)) == [0, 1, 2]
    name, value = out.headers[origins(out)[1]][0]
    assert (name.encode(errors="surrogateescape"), value) == (b"\xff\xfeodd", b"1"), "it goes out as it came"


def test_damage_that_a_poll_met_behind_its_records_is_not_reported_after_a_seek_back(
    mortal_broker: Cluster, connect: Connect
) -> None:
    broker = connect(mortal_broker.bootstrap)
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a", b"b", b"c"])
    write_batch(mortal_broker.bootstrap, log, "none")
    damage(mortal_broker, log)
    consumer = reading(broker, log)
    assert fetched(consumer, 3)[0] == [b"a", b"b", b"c"]
    consumer.seek(log, 1)
    assert until(lambda: consumer.poll(0.1, 100).records)[0].offsets == [1, 2]
    with pytest.raises(UnreadableError, match="cannot be decoded") as said:
        until(lambda: consumer.poll(0.1, 100).records)
    assert (said.value.offset, said.value.after) == (3, 3 + _BATCH)
