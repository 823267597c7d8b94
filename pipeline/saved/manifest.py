"""A manifest: says which state a folder holds, and names the files that the state consists of.

`dedup --state`, `Sieve.save` and the snapshots of an index have one each, of this format:

head: `stages/formats.py`, JSON {"about", "files"}: what the owner says of the state, and `StateFile` entries
body: what else the owner writes, and what is small of the sieve
end: 32 bytes, BLAKE2b of all before, keyed if the state is signed (`signing.py`)
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from hmac import compare_digest
from typing import Any, BinaryIO, NamedTuple, cast

import orjson

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.saved import Moved, UnreadableError, Watch, no_watch
from twinsieve.pipeline.saved.signing import SEAL_BYTES
from twinsieve.pipeline.saved.storage import Storage, advice_on
from twinsieve.pipeline.saved.watched_stream import WatchedStream
from twinsieve.stages.errors import StateError
from twinsieve.stages.exact.runs import covering
from twinsieve.stages.formats import StateHeader, VersionError
from twinsieve.stages.window.soundness import MOST_KEPT

_CHUNK_BYTES = 1 << 20

FILE_NAME = r"[a-z]{1,20}-[0-9-]{1,80}-[0-9a-f]{8}\.(piece|part|segment)"
"""Names that a journal gives to files. A stranger may have written a manifest, so it may name no others."""
_FILE_NAME = re.compile(FILE_NAME)


class Holds(StrEnum):
    """What a file holds."""

    KEPT = "kept"
    """a run of kept messages"""
    SEGMENT = "segment"
    """a sealed segment of the near window, which is mapped"""
    PART = "part"
    """a part of the sieve that never changes, such as a full Bloom generation"""


class StateFile(NamedTuple):
    """A file of a saved state.

    name: its name in the folder; holds: what it holds; size: its bytes
    digest: 128-bit MurmurHash3 of its content (of a piece, of its checksums), so that damage and another file
        of this name are noticed
    part: name of a part, as the sieve names it; else empty
    first, end: the kept messages from number `first` to number `end` (exclusive); 0 for a part
    """

    name: str
    holds: Holds
    size: int
    digest: str
    part: str = ""
    first: int = 0
    end: int = 0


def write_manifest(
    stream: BinaryIO,
    header: StateHeader,
    about: Mapping[str, object],
    files: Iterable[StateFile],
    body: Callable[[BinaryIO], object],
    storage: Storage,
    watch: Watch = no_watch,
) -> int:
    """Write a manifest; returns its size in bytes.

    about: JSON; body: writes the body to a stream; storage: the folder of the files
    """
    sealer = storage.signing.sealer()
    sealed = WatchedStream(stream, lambda _: watch(Moved("writing", sealed.count, 0)), sealer)
    described = {"about": about, "files": [list(file) for file in files]}
    header.write(sealed.write, orjson.dumps(described, option=orjson.OPT_NON_STR_KEYS))
    body(cast("BinaryIO", sealed))
    stream.write(sealer.digest())
    return sealed.count + SEAL_BYTES


class ManifestReader:
    """Reads a manifest, whose end is right. If it is signed, nothing is looked at before that is known.

    stream: the whole manifest; it must stay open while the body is read
    name: of the manifest, for errors; storage: the folder of the files
    about: what the owner said of the state; files: the files of the state
    raises: StateError, which names the manifest: VersionError for another format version, RefusedError if it
        or a file is signed with an unknown key, UnreadableError if the store fails
    """

    def __init__(self, stream: BinaryIO, header: StateHeader, name: str, storage: Storage) -> None:
        self._stream = stream
        self._header = header
        self._name = name
        self._storage = storage
        signing = storage.signing
        try:
            self._end = max(0, stream.seek(0, io.SEEK_END) - SEAL_BYTES)
            if signing.keys:
                self._check_end()
            stream.seek(0)
            described = header.read(stream)
            self._begin = stream.tell()
            self.about, self.files = self._parsed(described)
            for file in self.files:
                signing.hashes_of(file.digest, storage.shown(file.name))
            if not signing.keys:
                # Only now: whoever has no key refuses a signed manifest, and does not call it damaged.
                self._check_end()
        except UnreadableError:
            raise
        except VersionError as error:
            raise VersionError(f"{name}: {error}", is_newer=error.is_newer) from None
        except StateError as error:
            raise StateError(f"{name}: {error}") from None
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            raise self._failed(error) from None

    def _parsed(self, described: bytes) -> tuple[dict[str, Any], list[StateFile]]:
        try:
            found = orjson.loads(described)
            return dict(found["about"]), decode_files(found["files"])
        except (KeyError, TypeError, ValueError, StateError) as error:
            raise self._header.damaged(error) from error

    def _check_end(self) -> None:
        self._stream.seek(self._end)
        end = self._stream.read(SEAL_BYTES)
        self._stream.seek(0)
        whole = _Part(self._stream, self._end, self._failed)
        body = iter(lambda: whole.read(_CHUNK_BYTES), b"")
        signing = self._storage.signing
        if signing.keys:
            signing.check_seal(body, end, self._name)
            return
        sealer = signing.sealer()
        for data in body:
            sealer.update(data)
        if self._begin > self._end or not compare_digest(sealer.digest(), end):
            raise self._header.damaged()

    def body(self, begin: int = 0, end: int | None = None) -> BinaryIO:
        """A stream of the body from one byte to another, or to its end. It uses the stream of the manifest,
        so only the last one may be read. raises: UnreadableError if the store fails"""
        size = max(0, self._end - self._begin)
        begin, end = min(begin, size), size if end is None else min(end, size)
        self._stream.seek(self._begin + begin)
        return cast("BinaryIO", _Part(self._stream, end - begin, self._failed))

    def damaged(self, problem: object) -> StateError:
        """The error for a manifest that is not what twinsieve writes, although its end is right."""
        return StateError(f"{self._name}: {self._header.damaged(problem)}")

    def _failed(self, error: Exception) -> UnreadableError:
        kind, advice = self._storage.kind_of(error), advice_on(error, "fix permissions")
        return UnreadableError(f"{self._name}: cannot be read ({kind}); {advice}", lasting=False)


class _Part:
    """A stream of the next `left` bytes of another stream. failed: makes the error for any error of it"""

    def __init__(self, stream: BinaryIO, left: int, failed: Callable[[Exception], UnreadableError]) -> None:
        self._stream = stream
        self._left = left
        self._failed = failed

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        try:
            data = self._stream.read(wanted)
        except Exception as error:  # noqa: BLE001 (stores raise what they like beside OSError)
            raise self._failed(error) from None
        self._left -= len(data)
        return data


def decode_files(entries: Iterable[Any]) -> list[StateFile]:
    """The files of a manifest. raises: StateError if the entries are something else"""
    try:
        files = [_decoded(*entry) for entry in entries]
        if len({file.name for file in files}) < len(files):
            raise ValueError("a file is named twice")
    except (TypeError, ValueError) as error:
        raise StateError(f"its list of files is damaged ({printable(str(error))})") from error
    return files


def _decoded(name: str, holds: str, size: int, digest: str, part: str, first: int, end: int) -> StateFile:
    file = StateFile(name, Holds(holds), size, digest, part, first, end)
    texts, numbers = (name, digest, part), (size, first, end)
    # Not `isinstance`, for which True is a number.
    if {type(text) for text in texts} != {str} or {type(number) for number in numbers} != {int}:
        raise ValueError(f"an entry has other types: {file!r:.200}")
    if not _FILE_NAME.fullmatch(name):
        raise ValueError(f"{name!r:.200} is no name of such a file")
    # A run without messages would be followed by itself for ever (`covering`).
    is_run = file.holds is Holds.PART or 0 <= first < end < MOST_KEPT
    if not is_run or not 0 <= size < MOST_KEPT:
        raise ValueError(f"{name!r:.200} has kept messages {first} to {end} in {size} bytes")
    return file


def leading_segments(files: Sequence[StateFile], oldest: int, end: int) -> list[StateFile]:
    """The segments that follow each other from the kept message `oldest` on, up to `end` at most."""
    chosen: list[StateFile] = []
    at = oldest
    segments = [file for file in files if file.holds is Holds.SEGMENT and file.end <= end]
    while following := [
        file for file in segments if file.first == at or (not chosen and file.first <= at < file.end)
    ]:
        chosen.append(following[0])
        at = chosen[-1].end
    return chosen


def covering_files(files: Sequence[StateFile], oldest: int, end: int) -> list[StateFile] | None:
    """Files that hold the kept messages from `oldest` to `end`, in their order; None if some are missing.

    Segments come first as far as there are any, because they need no work at a restore; then the fewest
    pieces.
    """
    segments = leading_segments(files, oldest, end)
    at = segments[-1].end if segments else oldest
    pieces = covering([file for file in files if file.holds is Holds.KEPT], at, end)
    return [*segments, *pieces] if at >= end or (pieces and pieces[-1].end == end) else None
