"""What comes out is compressed as the setting says; what roles write to each other is compressed once, by them."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.broker.cluster import Cluster
from tests.broker.services import Service, settings_for, wait_for
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


def test_each_message_is_compressed_once(client: str, mortal_broker: Cluster, tmp_path: Path) -> None:
    settings = settings_for(client, mortal_broker.bootstrap, tmp_path)
    service = Service(settings)
    text = "今天武汉下雨了，大家出门记得带伞"
    service.produce(*((None, f'{{"text": "{text} {number * 7919}"}}'.encode(), []) for number in range(300)))
    service.start()
    wait_for(lambda: len(service.read("out")) + len(service.read("dup")) == 300, service)
    service.end()
    names = Names(settings.app)
    for topic in (names.fingerprints, names.decisions, names.verdicts):
        assert codecs(mortal_broker, topic) == {"none"}, topic
    assert settings.output.topic is not None
    assert codecs(mortal_broker, settings.output.topic) == {"lz4"}
