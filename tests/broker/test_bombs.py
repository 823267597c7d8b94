"""Batches that unpack to more than `kafka.max_unpacked_bytes`: memory stays bounded, and the place is named."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from typing import Any

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import TopicPartition
from kafka.record.memory_records import MemoryRecords

from tests.broker.bombs import CODECS, bomb
from tests.examples import examples
from twinsieve.pipeline.broker.records import Records, UnreadableError
from twinsieve.pipeline.kafka.patches import read_in_columns
from twinsieve.pipeline.kafka.unpack_batches import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    TooLargeError,
    UnpackError,
    unpack,
)

_MIB = 1 << 20
_LIMIT = 64 * _MIB
_PIECES = 6 * _MIB
"""Pieces on the way, and the window of a frame that does not say its size."""
_PACK = {
    GZIP: gzip.compress,
    SNAPPY: snappy.compress,
    LZ4: lz4.frame.compress,
    ZSTD: zstandard.ZstdCompressor().compress,
}

_CHILD = """
import json, sys
from tests.broker.bombs import bomb
from tests.broker.test_bombs import decoded
from twinsieve.pipeline.broker.records import Records, UnreadableError

def peak():
    # Not getrusage, which counts what the parent held before.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))

codec, value_bytes, max_bytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
made = bomb(codec, value_bytes, base_offset=7)
decoded(bomb(codec, 1 << 20).batch, max_bytes)
before = peak()
try:
    said = sum(len(value) for records in decoded(made.batch, max_bytes) for value in records.values)
except UnreadableError as error:
    said = [str(error), error.after]
print(json.dumps([said, peak() - before]))
"""


class _Fetcher:
    PartitionRecords: Any = None


class _Consumer:
    def __init__(self) -> None:
        self._fetcher = _Fetcher()


def decoded(batch: bytes, max_bytes: int) -> list[Records]:
    """Records of a batch as a consumer takes them."""
    consumer: Any = _Consumer()
    read_in_columns(consumer, max_bytes)
    at = TopicPartition("posts", 3)
    records = consumer._fetcher.PartitionRecords(0, at, MemoryRecords(batch))
    taken: list[Records] = records.take(10)
    return taken


def _in_a_child(codec: str, value_bytes: int, max_bytes: int) -> tuple[Any, int]:
    ran = subprocess.run(
        [sys.executable, "-c", _CHILD, codec, str(value_bytes), str(max_bytes)],
        check=True,
        capture_output=True,
        text=True,
    )
    said, grown = json.loads(ran.stdout)
    return said, grown


@pytest.mark.heavy
@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_takes_at_most_twice_the_limit_and_its_place_is_named(codec: str) -> None:
    said, grown = _in_a_child(codec, 320 * _MIB, _LIMIT)
    assert isinstance(said, list)
    text, after = said
    assert text.startswith("posts[3]@7: cannot be decoded (it unpacks to more than kafka.max_unpacked_bytes")
    assert after == 8
    assert grown <= 2 * _LIMIT


@pytest.mark.heavy
@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_just_fits_is_read_within_twice_the_limit(codec: str) -> None:
    said, grown = _in_a_child(codec, _LIMIT - _MIB, _LIMIT)
    assert said == _LIMIT - _MIB
    assert grown <= 2 * _LIMIT + _PIECES, "the batch on the way and unpacked, then unpacked and its value"


def test_a_zstd_window_is_memory_and_is_bounded_too() -> None:
    wide = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=wide).compressobj()
    packed = packer.compress(bytes(1 << 20)) + packer.flush()
    with pytest.raises(UnpackError, match="too much memory"):
        unpack(ZSTD, packed, _LIMIT)


@pytest.mark.parametrize("codec", _PACK)
@given(content=st.binary(max_size=300), more=st.integers(-2, 2))
@settings(deadline=None, max_examples=examples(50))
def test_what_fits_is_unpacked_and_what_does_not_is_refused(codec: int, content: bytes, more: int) -> None:
    limit = max(0, len(content) + more)
    packed = _PACK[codec](content)
    if len(content) <= limit:
        assert unpack(codec, packed, limit) == content
    else:
        with pytest.raises(TooLargeError):
            unpack(codec, packed, limit)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
@given(content=st.binary(min_size=1, max_size=300), cut=st.integers(1, 20))
@settings(deadline=None, max_examples=examples(50))
def test_a_batch_that_is_cut_off_is_an_error_and_never_a_part(codec: int, content: bytes, cut: int) -> None:
    try:
        unpacked = unpack(codec, _PACK[codec](content)[:-cut], 1 << 20)
    except UnpackError:
        return
    assert unpacked == content


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_is_cut_off_behind_its_checksum_names_its_place(codec: str) -> None:
    with pytest.raises(UnreadableError, match=r"^posts\[3\]@0: cannot be decoded"):
        decoded(bomb(codec, _MIB, cut=9).batch, _LIMIT)


@pytest.mark.parametrize("length", [-8, 1 << 30])
def test_a_snappy_block_of_a_length_that_cannot_be_is_refused(length: int) -> None:
    packed = b"\x82SNAPPY\x00\0\0\0\x01\0\0\0\x01" + length.to_bytes(4, "big", signed=True) + b"rain"
    with pytest.raises(UnpackError, match="a snappy block of"):
        unpack(SNAPPY, packed, _LIMIT)
