"""A stranger who may write to a state: changes one thing in a file, and makes every checksum right again.

`Forger(folder, seed)` knows the files by their names. What refers to a changed file (a snapshot, a manifest of
`dedup` or of `Sieve.save`) gets its new size and digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import zlib
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import mmh3
import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.saved import mapped_file
from twinsieve.pipeline.saved.kept_file import KeptFile, Record, messages_of, read_records, record_of
from twinsieve.pipeline.saved.signing import Hashes, Signing, plain
from twinsieve.stages.formats import ARRAYS, PIECE, RUN, SECTIONS, SIEVE, SNAPSHOT, StateHeader
from twinsieve.stages.judge import state_bytes
from twinsieve.stages.judge.kept_messages import KeptMessages

Array = NDArray[Any]

NUMBERS = (
    0, 1, -1, 2, 3, 7, 8, 24, 25, 26, 60, 61, 127, 128, 255, 256, 511, 512, 513, 4095, 4096, 65_535, 65_536, 0xFFFE,
    1 << 20, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, 1 << 56, 1 << 60, (1 << 62) + 1,
    (1 << 63) - 1, -(1 << 31), -(1 << 62), -(1 << 63), 1 << 63, (1 << 64) - 1,
)  # fmt: skip
OTHERS = (
    None,
    True,
    "",
    "x",
    "../../x",
    "\n\x1b[31m",
    1.5,
    1e300,
    [],
    {},
    [[]],
    "O",
    "|O",
    "<U0",
    "V0",
    "|V4096",
    "<i8",
    "<f8",
    "?",
)


class Forger:
    """folder: of the files; seed: of the changes; signing: with which the true files can be read"""

    def __init__(self, folder: Path, seed: int, signing: Signing | None = None) -> None:
        self.signing = signing
        self.folder = folder
        self.dice = random.Random(seed)
        self.did = ""

    def forge(self, kind: str) -> Path:
        """Change one file of this kind; returns it, `did` says how. The newest file, or any."""
        path = self._file_of(kind)
        how = {
            "segment": self._arrays,
            "texts": self._texts,
            "piece": self._kept,
            "part": self._sections,
            "ledger": self._ledger,
            "files": self._files,
            "header": self._header,
            "sieve": self._sieve,
            "manifest": self._manifest,
            "progress": self._progress,
            "entries": self._entries,
            "rows": self._rows,
        }[
            {
                "bloom": "part",
                "bits": "part",
                "keys": "part",
                "tier": "part",
                "head": "part",
                "ids": "part",
                "near": "part",
            }.get(kind, kind)
        ]
        how(path)
        return path

    def _file_of(self, kind: str) -> Path:
        pattern = {
            "piece": "kept-*.piece",
            "segment": "segment-*.segment",
            "texts": "segment-*.segment",
            "ledger": "*.snapshot",
            "files": "*.snapshot",
            "header": "*.snapshot",
            "sieve": "*.snapshot" if list(self.folder.glob("*.snapshot")) else "state",
            "manifest": "state",
            "progress": "state",
            "entries": "leaders-*.entries",
            "rows": "leaders-*.rows",
        }.get(kind, f"{kind}-*.part")
        found = sorted(self.folder.glob(pattern), key=lambda path: path.name)
        named = [
            path
            for path in found
            if pattern in ("*.snapshot", "state") or "leaders" in pattern or path.name in self._named()
        ]
        assert named, f"{self.folder} has no {pattern}: {sorted(each.name for each in self.folder.iterdir())}"
        return named[-1] if pattern == "*.snapshot" or self.dice.random() < 0.5 else self.dice.choice(named)

    def manifests(self) -> list[Path]:
        """The files that name others."""
        snapshots = sorted(self.folder.glob("*.snapshot"))
        return snapshots or [self.folder / "state"]

    def _named(self) -> set[str]:
        """Files that the newest manifest names."""
        return {entry[0] for entry in _manifest_parts(self.manifests()[-1])[1]["files"]}

    def _rename(self, path: Path, content: bytes, digest: str) -> None:
        """Write a file, and its size and digest into every manifest that names it."""
        path.write_bytes(content)
        for manifest in self.manifests():
            header, described, body = _manifest_parts(manifest)
            _told(described["files"], path.name, len(content), digest)
            manifest.write_bytes(_manifest(header, described, body))

    # What is changed

    def number(self) -> int:
        return self.dice.choice(NUMBERS)

    def json(self, tree: Any) -> Any:
        """The tree with one leaf, or one branch, changed."""
        places = list(_places(tree))
        if not places:
            return self.dice.choice(OTHERS)
        holder, key = self.dice.choice(places)
        before = holder[key]
        what = self.dice.random()
        if what < 0.1 and isinstance(holder, dict):
            del holder[key]
            self.did += f" without {key}"
        elif what < 0.2 and isinstance(holder, list):
            holder.append(before)
            self.did += " one more"
        elif isinstance(before, int) and what < 0.8:
            holder[key] = self.dice.choice([self.number(), before + 1, before - 1, before * 2, -before])
            self.did += f" {key}: {before} → {holder[key]}"
        else:
            holder[key] = self.dice.choice([*OTHERS, self.number()])
            self.did += f" {key} → {holder[key]!r}"
        return tree

    def array(self, name: str, array: Array) -> Array:
        """The array with one thing changed."""
        array = np.array(array, copy=True)
        if array.dtype.names and self.dice.random() < 0.85:
            field = self.dice.choice(array.dtype.names)
            array[field] = self._values(f"{name}.{field}", array[field])
            return array
        what = self.dice.random()
        if what < 0.12:
            self.did += f" {name}: another length"
            more = self.dice.choice([0, 1, len(array) // 2, len(array) - 1, len(array) + 1, 2 * len(array)])
            return (
                np.resize(array, (max(0, more), *array.shape[1:]))
                if array.size
                else np.zeros((3, *array.shape[1:]), array.dtype)
            )
        if what < 0.2 and not array.dtype.names:
            kind = self.dice.choice(["<i8", "<f8", "<u2", "|u1", "<i4", "?"])
            self.did += f" {name}: as {kind}"
            return (
                np.frombuffer(array.tobytes(), np.uint8) if array.dtype.kind in "SUV" else array.astype(kind)
            )
        if what < 0.24:
            self.did += f" {name}: another shape"
            return array.reshape(-1, 1) if self.dice.random() < 0.5 else array.reshape(1, -1)
        return self._values(name, array)

    def _values(self, name: str, array: Array) -> Array:
        array = np.array(array, copy=True)
        if not array.size:
            return array
        if array.dtype.names or self.dice.random() < 0.25:
            self.did += f" {name}: random bytes"
            noise = np.random.default_rng(self.dice.getrandbits(32)).bytes(array.nbytes)
            return (
                np.frombuffer(noise, array.dtype).reshape(array.shape).copy()
                if array.dtype != np.bool_
                else ~array
            )
        flat, info = array.reshape(-1), np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        value: Any = self.number()
        if info is not None:
            value = max(
                info.min,
                min(
                    info.max,
                    value if self.dice.random() < 0.8 else int(flat.max()) + self.dice.choice([1, -1, 3]),
                ),
            )
        which: Any = slice(None)
        if self.dice.random() < 0.6:
            which = [self.dice.randrange(len(flat)) for _ in range(self.dice.choice([1, 3, 20]))]
        elif self.dice.random() < 0.3:
            self.did += f" {name}: mixed"
            flat[:] = flat[np.random.default_rng(self.dice.getrandbits(32)).permutation(len(flat))]
            return array
        self.did += f" {name} = {value}"
        flat[which] = np.array(value).astype(array.dtype)
        return array

    # Files

    def _arrays(self, path: Path) -> None:
        raw = path.read_bytes()
        stream = io.BytesIO(raw)
        head = orjson.loads(ARRAYS.read(stream))
        if self.dice.random() < 0.35:
            self.json(head)
            content = _page_filled(head, raw)
        else:
            arrays = {entry["name"]: _array_of(raw, entry) for entry in head["arrays"]}
            if self.dice.random() < 0.9:
                name = "records" if self.dice.random() < 0.4 else self.dice.choice(sorted(arrays))
                arrays[name] = self.array(name, arrays[name])
            else:
                one, other = self.dice.sample(sorted(arrays), 2)
                self.did += f" {one} is {other}"
                arrays[one] = arrays[other]
            self._put_arrays(path, head, arrays)
            return
        stream = io.BytesIO(content)
        ARRAYS.read(stream)
        self._rename(path, content, mmh3.mmh3_x64_128_digest(content[: stream.tell()]).hex())

    def _texts(self, _: Path) -> None:
        """All texts of all segments lie far behind their ends."""
        for path in self.folder.glob("segment-*.segment"):
            raw = path.read_bytes()
            head = orjson.loads(ARRAYS.read(io.BytesIO(raw)))
            arrays = {entry["name"]: np.array(_array_of(raw, entry)) for entry in head["arrays"]}
            arrays["records"]["offset"] = 0x7FFFFFF0
            self._put_arrays(path, head, arrays)

    def _put_arrays(self, path: Path, head: dict[str, Any], arrays: dict[str, Array]) -> None:
        made = io.BytesIO()
        digest = mapped_file.write_arrays(made, head["scheme"], head["about"], arrays)
        self._rename(path, made.getvalue(), digest)

    def _kept(self, path: Path) -> None:
        stream = io.BytesIO(path.read_bytes())
        scheme = json.loads(PIECE.read(stream))["scheme"]
        stream.seek(0)
        digest = next(entry[3] for entry in self._listed() if entry[0] == path.name)
        records = list(read_records(stream, path.name, scheme, digest, self._hashes_of(digest)))
        place = self.dice.randrange(len(records))
        record, what = records[place], self.dice.random()
        if what < 0.6:
            records[place] = self._other_columns(record)
        elif what < 0.75:
            data = bytearray(record.data)
            at = self.dice.randrange(min(80, len(data)))
            data[at] = self.dice.randrange(256)
            self.did += f" byte {at}"
            records[place] = record._replace(data=bytes(data))
        elif what < 0.9:
            part = self.dice.choice(["first", "messages"])
            records[place] = record._replace(**{part: abs(self.number()) % (1 << 32)})
            self.did += f" {part} {records[place][:2]}"
        else:
            self.did += " records twice"
            records.insert(place, record)
        made = io.BytesIO()
        piece = KeptFile(made, scheme, records[0].first)
        for each in records:
            if each.messages == 0:
                each = each._replace(messages=1)
            piece.add(each)
        piece.finish()
        self._rename(path, made.getvalue(), piece.digest)

    def _other_columns(self, record: Record) -> Record:
        kept = messages_of(record, "")
        name = self.dice.choice([field.name for field in fields(KeptMessages)])
        if name == "starts":
            name = "lengths"
        array = getattr(kept, name)
        if name in ("band_keys", "part_hashes") and self.dice.random() < 0.5:
            self.did += f" {name}: fewer"
            changed = np.ascontiguousarray(array[:, : array.shape[1] // 2])
        else:
            changed = self._values(name, array)
        setattr(kept, name, changed)
        return record_of(record.first, kept)

    def _hashes_of(self, digest: str) -> Hashes:
        """Those with which the true file was written: it is only read here, and the forged one has plain ones."""
        return plain if self.signing is None else self.signing.hashes_of(digest, "")

    def _listed(self) -> list[Any]:
        return [entry for path in self.manifests() for entry in _manifest_parts(path)[1]["files"]]

    def _sections(self, path: Path) -> None:
        content = self._other_sections(path.read_bytes())
        self._rename(path, content, mmh3.mmh3_x64_128_digest(content).hex())

    def _other_sections(self, raw: bytes) -> bytes:
        """Another state of `stages/judge/state_bytes.py`."""
        stream = io.BytesIO(raw)
        described = json.loads(SECTIONS.read(stream))
        behind = raw[stream.tell() :]
        if self.dice.random() < 0.35:
            self.json(described)
            return _headed(SECTIONS, described) + behind
        sections = state_bytes.read_state(io.BytesIO(raw), described["scheme"], {})
        name = self.dice.choice(sorted(sections))
        sections[name] = self.array(name, sections[name])
        made = io.BytesIO()
        state_bytes.write_state(made, described["scheme"], described["parameters"], sections)
        return made.getvalue()

    def _ledger(self, path: Path) -> None:
        header, described, body = _manifest_parts(path)
        ledger, sieve = _ledger_and_sieve(described, body)
        (size,) = struct.unpack_from("<I", ledger)
        books = orjson.loads(ledger[4 : 4 + size])
        behind = bytearray(ledger[4 + size :])
        if self.dice.random() < 0.8 or len(behind) < 9:
            self.json(books)
        else:
            at = self.dice.randrange(len(behind))
            behind[at : at + 8] = self.dice.randbytes(len(behind[at : at + 8]))
            self.did += f" open rows at {at}"
        packed = json.dumps(books).encode()
        ledger = struct.pack("<I", len(packed)) + packed + bytes(behind)
        if self.dice.random() < 0.05:
            self.did += " size of the head"
            ledger = struct.pack("<I", abs(self.number()) % (1 << 32)) + ledger[4:]
        described["about"]["ledger"] = len(ledger)
        path.write_bytes(_manifest(header, described, ledger + sieve))

    def _files(self, path: Path) -> None:
        header, described, body = _manifest_parts(path)
        self.json(described["files"])
        path.write_bytes(_manifest(header, described, body))

    def _header(self, path: Path) -> None:
        header, described, body = _manifest_parts(path)
        self.json(described["about"])
        path.write_bytes(_manifest(header, described, body))

    def _sieve(self, path: Path) -> None:
        header, described, body = _manifest_parts(path)
        ledger, sieve = _ledger_and_sieve(described, body)
        path.write_bytes(_manifest(header, described, ledger + self._other_sections(sieve)))

    def _manifest(self, path: Path) -> None:
        header, described, body = _manifest_parts(path)
        path.write_bytes(_manifest(header, self.json(described), body))

    _progress = _manifest

    def _entries(self, path: Path) -> None:
        entries = np.frombuffer(
            path.read_bytes(), [("position", "<i8"), ("end", "<i8"), ("sum", "<u4")]
        ).copy()
        field = self.dice.choice(entries.dtype.names or ())
        entries[field] = self._values(field, entries[field])
        path.write_bytes(entries.tobytes())
        header, described, body = _manifest_parts(self.folder / "state")
        number = int(path.stem.partition("-")[2])
        for mark in described["about"]["leaders"]:
            if mark[0] == number:
                mark[2] = zlib.crc32(entries.tobytes())
        (self.folder / "state").write_bytes(_manifest(header, described, body))

    def _rows(self, path: Path) -> None:
        other = path.with_suffix(".entries")
        entries = np.frombuffer(
            other.read_bytes(), [("position", "<i8"), ("end", "<i8"), ("sum", "<u4")]
        ).copy()
        raw = path.read_bytes()
        starts = [0, *entries["end"].tolist()]
        rows = [raw[low:high] for low, high in pairwise(starts)]
        for at in range(len(rows)):
            if self.dice.random() < 0.5:
                rows[at] = orjson.dumps(self.json(orjson.loads(rows[at])))
        entries["end"] = np.cumsum([len(row) for row in rows])
        entries["sum"] = [zlib.crc32(row) for row in rows]
        path.write_bytes(b"".join(rows))
        other.write_bytes(entries.tobytes())
        header, described, body = _manifest_parts(self.folder / "state")
        for mark in described["about"]["leaders"]:
            if mark[0] == int(path.stem.partition("-")[2]):
                mark[2] = zlib.crc32(entries.tobytes())
        (self.folder / "state").write_bytes(_manifest(header, described, body))
        self.did = self.did[:200]


def _told(listed: list[Any], name: str, size: int, digest: str) -> None:
    for entry in listed:
        if entry[0] == name:
            entry[2], entry[3] = size, digest


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of everything in the tree."""
    keys: Any = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield tree, key
        yield from _places(tree[key])


def _array_of(raw: bytes, entry: dict[str, Any]) -> Array:
    kind = entry["dtype"]
    dtype = np.dtype(
        [(name, one, *map(tuple, shape)) for name, one, *shape in kind] if isinstance(kind, list) else kind
    )
    return np.frombuffer(raw[entry["offset"] : entry["offset"] + entry["bytes"]], dtype).reshape(
        entry["shape"]
    )


def _page_filled(head: dict[str, Any], raw: bytes) -> bytes:
    """The file with another head, which is given right checksums where it says where an array is."""
    entries = head.get("arrays")
    for entry in entries if isinstance(entries, list) else ():
        try:
            part = raw[entry["offset"] : entry["offset"] + entry["bytes"]]
            entry["checksum"] = mmh3.mmh3_x64_128_digest(part).hex()
        except (TypeError, KeyError, IndexError):
            continue
    written: list[bytes] = []
    ARRAYS.write(written.append, json.dumps(head).encode())
    made = b"".join(written)
    room = 4096 * (-(-len(made) // 4096))
    return made + raw[len(made) :] if len(made) <= room else made


def _manifest_parts(path: Path) -> tuple[StateHeader, dict[str, Any], bytes]:
    """(format, what its head says, body)"""
    stream = io.BytesIO(path.read_bytes())
    header = next(each for each in (SNAPSHOT, RUN, SIEVE) if stream.getvalue().startswith(each.magic))
    described = json.loads(header.read(stream))
    return header, described, stream.read()[:-32]


def _ledger_and_sieve(described: dict[str, Any], body: bytes) -> tuple[bytes, bytes]:
    size = described["about"].get("ledger", 0)
    return body[:size], body[size:]


def _manifest(header: StateHeader, described: Any, body: bytes) -> bytes:
    whole = _headed(header, described) + body
    return whole + hashlib.blake2b(whole, digest_size=32).digest()


def _headed(header: StateHeader, described: Any) -> bytes:
    written: list[bytes] = []
    header.write(written.append, json.dumps(described).encode())
    return b"".join(written)
