"""Packed inputs and outputs: what is read, what is bounded, and what is said of packings that are not read."""

from __future__ import annotations

import bz2
import fcntl
import gzip
import io
import json
import lzma
import os
import struct
import sys
import tarfile
import termios
import time
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from tests.calling import SMALL, Run
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.source import InputSource

_ROWS = b"".join(json.dumps({"id": n, "text": f"{n} " * 9}).encode() + b"\n" for n in range(3))


def _long_zstd(content: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True, compression_level=1)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(content) + packer.flush()


def _pzstd(content: bytes) -> bytes:
    half = len(content) // 2
    pack = zstandard.ZstdCompressor(write_checksum=True).compress
    frames = [pack(content[:half]), pack(content[half:])]
    return b"".join(struct.pack("<III", 0x184D2A50, 4, len(frame)) + frame for frame in frames)


_PACKINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": (".gz", gzip.compress),
    "gzip of two members": (
        ".gz",
        lambda rows: gzip.compress(rows[:40]) + gzip.compress(rows[40:]) + bytes(8),
    ),
    "bz2": (".bz2", bz2.compress),
    "bz2 of two streams": (".bz2", lambda rows: bz2.compress(rows[:40]) + bz2.compress(rows[40:])),
    "xz": (".xz", lzma.compress),
    "xz of two streams": (".xz", lambda rows: lzma.compress(rows[:40]) + bytes(8) + lzma.compress(rows[40:])),
    "zstd of a long window": (".zst", _long_zstd),
    "zstd as pzstd writes it": (".zst", _pzstd),
}


_PACKERS = pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        zstandard.ZstdCompressor(write_checksum=True).compress,
        bz2.compress,
        lzma.compress,
        _pzstd,
    ],
    ids=["gzip", "zstd", "bz2", "xz", "pzstd"],
)


def _content(path: Path) -> bytes:
    with InputSource(str(path)) as source:
        return b"".join(source.blocks())


@pytest.mark.parametrize("kind", _PACKINGS)
def test_packed_rows_are_read_whatever_their_name(tmp_path: Path, run: Run, kind: str) -> None:
    ending, pack = _PACKINGS[kind]
    for name in (f"posts.jsonl{ending}", "posts.jsonl"):
        (tmp_path / name).write_bytes(pack(_ROWS))
        ran = run("dedup", "-q", tmp_path / name, "-o", tmp_path / "out.jsonl", *SMALL)
        assert (ran.code, ran.err) == (0, "")
        assert (tmp_path / "out.jsonl").read_bytes() == _ROWS


@pytest.mark.parametrize(
    ("ending", "unpack"),
    [
        (".gz", gzip.decompress),
        (".zst", lambda packed: zstandard.ZstdDecompressor().decompressobj().decompress(packed)),
        (".bz2", bz2.decompress),
        (".xz", lzma.decompress),
    ],
    ids=["gzip", "zstd", "bz2", "xz"],
)
def test_outputs_are_packed_by_name(
    tmp_path: Path, run: Run, ending: str, unpack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "in.jsonl").write_bytes(_ROWS * 2)
    out, dropped = tmp_path / f"out.jsonl{ending}", tmp_path / f"d.jsonl{ending}"
    assert run("dedup", "-q", tmp_path / "in.jsonl", "-o", out, "--duplicates", dropped, *SMALL).code == 0
    assert unpack(out.read_bytes()) == _ROWS
    assert unpack(dropped.read_bytes()).count(b"\n") == 3


@_PACKERS
def test_cut_off_or_damaged_data_is_an_error(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(bytes(range(256)) * 1000)
    path = tmp_path / "f"
    for at in (len(packed) - 1, len(packed) // 3, 14):
        path.write_bytes(packed[:at])
        with pytest.raises(FileError, match="ends in the middle of its compressed data"):
            _content(path)
    path.write_bytes(packed[:40] + b"\xff" * 40 + packed[80:])
    with pytest.raises(FileError, match=r"f: compressed data is damaged|ends in the middle"):
        _content(path)
    path.write_bytes(packed + b"more")
    with pytest.raises(FileError, match=r"f: compressed data is damaged|ends in the middle"):
        _content(path)


@pytest.mark.parametrize(
    ("name", "magic"),
    [
        ("f.gz", b"\x1f\x8b"),
        ("f.zst", b"\x28\xb5\x2f\xfd"),
        ("f.bz2", b"BZh"),
        ("f.xz", b"\xfd7zXZ\x00"),
    ],
)
def test_a_file_cut_off_in_its_first_bytes_is_an_error(tmp_path: Path, name: str, magic: bytes) -> None:
    for kept in range(len(magic) + 1):
        (tmp_path / name).write_bytes(magic[:kept])
        with pytest.raises(FileError, match="ends in the middle of its compressed data"):
            _content(tmp_path / name)
    (tmp_path / name).write_bytes(_ROWS)
    assert _content(tmp_path / name) == _ROWS


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_is_no_content(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    for content, read in ((b"\xef\xbb\xbfa\n", b"a\n"), (b"", b"")):
        (tmp_path / "f").write_bytes(pack(content))
        assert _content(tmp_path / "f") == read


@_PACKERS
def test_a_packed_bomb_does_not_come_out_at_once(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "f").write_bytes(pack(b"\0" * (64 << 20)))
    with InputSource(str(tmp_path / "f")) as source:
        sizes = [len(block) for block in source.blocks()]
    assert sum(sizes) == 64 << 20
    assert max(sizes) <= 33 << 20


def test_xz_that_asks_for_a_gigabyte_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    packed = bytearray(lzma.compress(b"a\n", filters=filters))
    # The block header (from byte 12) says the dictionary's size in byte 16; its sum is in bytes 20 to 23.
    packed[16] = 38
    packed[20:24] = struct.pack("<I", zlib.crc32(packed[12:20]))
    (tmp_path / "f").write_bytes(packed)
    with pytest.raises(
        FileError, match="f: needs more memory to decompress than is allowed; decompress it first"
    ):
        _content(tmp_path / "f")


def _zipped(stored: bool) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("posts.jsonl", _ROWS)
    return made.getvalue()


def _tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        entry = tarfile.TarInfo("posts.jsonl")
        entry.size = len(_ROWS)
        archive.addfile(entry, io.BytesIO(_ROWS))
    return made.getvalue()


_FOREIGN = {
    "zip": (
        _zipped(False),
        "is a zip archive, which is not read; unpack it first, as with `unzip -p FILE | twinsieve dedup -`",
    ),
    "stored zip": (_zipped(True), "is a zip archive, which is not read"),
    "tar": (_tar(), "is a tar archive, which is not read; unpack it first and name the folder"),
    "tar.gz": (gzip.compress(_tar()), "is a tar archive, which is not read"),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\4", "is a 7z archive, which is not read"),
    "lz4": (b"\x04\x22\x4d\x18\x64\x40", "is packed by lz4, which is not read; unpack it first"),
    "Parquet": (b"PAR1\x15\x04\x15\x10", "holds Parquet; add --format parquet"),
    "Arrow": (b"ARROW1\0\0\xff\xff\xff\xff", "holds Arrow; add --format arrow"),
    "Arrow stream": (b"\xff\xff\xff\xff\x10\1\0\0\x10\0\0\0", "holds Arrow; add --format arrow"),
    "Avro": (b"Obj\1\4\x16avro.schema", "is an Avro file, which is not read"),
    "SQLite": (b"SQLite format 3\0", "is an SQLite database, which is not read"),
}


@pytest.mark.parametrize("kind", _FOREIGN)
def test_what_is_no_text_is_named_and_nothing_is_read(tmp_path: Path, run: Run, kind: str) -> None:
    content, said = _FOREIGN[kind]
    source = tmp_path / "posts.jsonl"
    source.write_bytes(content)
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *SMALL)
    assert ran.code == 1
    assert f"twinsieve: {source}: {said}" in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not (tmp_path / "out.jsonl").exists()


def test_an_input_that_is_missing_is_said_before_any_row_is_written(tmp_path: Path, run: Run) -> None:
    (tmp_path / "in.jsonl").write_bytes(_ROWS)
    ran = run("dedup", "-q", tmp_path / "in.jsonl", tmp_path / "gone.jsonl", *SMALL)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"twinsieve: {tmp_path / 'gone.jsonl'}: cannot be read: No such file or directory\n"


@pytest.mark.parametrize("kind", ["plain", *_PACKINGS])
def test_packed_rows_that_come_byte_by_byte_are_the_same(tmp_path: Path, kind: str) -> None:
    """A pipe may give as little as one byte, which does not tell how the rest is packed."""
    packed = _PACKINGS[kind][1](_ROWS) if kind != "plain" else _ROWS
    os.mkfifo(tmp_path / "pipe")

    def write() -> None:
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe:
            for at in range(len(packed)):
                pipe.write(packed[at : at + 1])
                while at < 32 and _waits(pipe.fileno()):
                    time.sleep(0)

    with ThreadPoolExecutor() as threads:
        written = threads.submit(write)
        assert _content(tmp_path / "pipe") == _ROWS
        written.result()


def _waits(pipe: int) -> bool:
    """Whether a pipe holds bytes that nobody has read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder) > 0
