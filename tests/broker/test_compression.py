"""What comes out is compressed as the setting says; what roles write to each other is compressed once, by them."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.broker.cluster import Cluster
from tests.broker.services import POSTS, Service, wait_for
from twinsieve.pipeline.broker.names import Names

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_BATCH_HEAD = struct.Struct(">qiiBIh")
"""Base offset, bytes that follow those two fields, leader epoch, magic, checksum, attributes."""
_CONTROL = 0x20


def codecs(cluster: Cluster, topic: str) -> set[str]:
    """Of all batches of a topic, as they stand on disk; markers of transactions apart."""
    found = set()
    for segment in (cluster.folder / "node1" / "data").glob(f"{topic}-[0-9]*/*.log"):
        data, at = segment.read_bytes(), 0
        while at + _BATCH_HEAD.size <= len(data):
            _, size, *_, attributes = _BATCH_HEAD.unpack_from(data, at)
            if not size:
                break
            if not attributes & _CONTROL:
                found.add(_CODECS[attributes & 7])
            at += 12 + size
    return found


def test_each_message_is_compressed_once(serving: Callable[..., Service], mortal_broker: Cluster) -> None:
    service = serving(mortal_broker.bootstrap)
    settings = service.settings
    service.post(*(f"{POSTS[0]} {number * 7919}" for number in range(300)))
    service.start()
    wait_for(lambda: service.count("out", "dup") == 300, service)
    service.stop()
    names = Names(settings.app)
    for topic in (names.fingerprints, names.decisions, names.verdicts):
        assert codecs(mortal_broker, topic) == {"none"}, topic
    assert settings.output.topic is not None
    assert codecs(mortal_broker, settings.output.topic) == {"lz4"}
