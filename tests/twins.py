"""Small stand-ins for the two stages, in plain Python: a scheme, and a sieve that knows equal texts only."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import orjson
from numpy.typing import NDArray

from twinsieve.pipeline.index.snapshot_writer import look_at
from twinsieve.pipeline.index.state import Asked, IndexState
from twinsieve.pipeline.wire.block import Block
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.stages.contract import (
    NO_LEADER,
    NO_TIME,
    Batch,
    Bodies,
    Fingerprints,
    Kind,
    SieveStats,
    Verdicts,
)
from twinsieve.stages.judge.frozen import Frozen, SavedParts
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.scheme import SchemeConfig
from twinsieve.stages.near.answers import NO_ANSWERS, Answer
from twinsieve.stages.window.segments import InMemory, IntoFile, SegmentId


def hash64(text: str) -> int:
    """64 bits of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class TinyScheme:
    """Digest of the text; the SimHash column holds a digest of the text without case, for another rule."""

    scheme_id = "tiny"
    config = SchemeConfig()

    def read(self, texts: list[str], keys: list[bytes] | None = None) -> tuple[Bodies, Fingerprints]:
        n = len(texts)
        chars = [np.array([ord(char) for char in text], np.uint32) for text in texts]
        starts = np.zeros(n + 1, np.int64)
        starts[1:] = np.cumsum([len(each) for each in chars])
        lengths = np.diff(starts).astype(np.int32)
        packed = np.concatenate([*chars, np.empty(0, np.uint32)]).astype(np.uint32)
        bodies = Bodies(
            packed, starts, np.zeros(len(packed), np.uint8), lengths, lengths.copy(), np.zeros(n, np.bool_),
            np.zeros(n, np.uint32),
        )  # fmt: skip
        digests = np.array([[hash64(text), 0] for text in texts], np.uint64).reshape(n, 2)
        simhashes = np.array([[hash64(text.lower()), 0] for text in texts], np.uint64).reshape(n, 2)
        prints = Fingerprints(
            digests, simhashes, np.ones(n, np.bool_), np.zeros((n, 1, 1), np.uint8),
            # A real near stage finds what is equal without case.
            simhashes[:, :1].astype(np.uint32),
            np.zeros((n, 32), np.uint8), np.zeros(n, np.uint32), np.zeros((0, 64), np.uint8),
            np.full(n, -1, np.int32), np.zeros((n, 0), np.uint64), np.zeros(n, np.uint64),
        )  # fmt: skip
        return bodies, prints


def batch_of(
    bodies: Bodies, prints: Fingerprints, *, times: object = NO_TIME, ids: object = 0, scopes: object = 0
) -> Batch:
    """The rows as a batch: positions count from 0, nobody knows when they arrived.

    times, ids, scopes: of each row, or one for all
    """
    batch = Batch.blank(len(bodies))
    batch.positions[:] = range(len(batch))
    batch.times_ms[:], batch.ids[:], batch.scopes[:] = times, ids, scopes
    batch.bodies, batch.fingerprints = bodies, prints
    return batch


class HashSieve:
    """Unique is what equals none of the last `window` kept messages. A message is kept once.

    caseless: compare without case, as a changed configuration would
    """

    def __init__(self, window: int = 1_000, *, caseless: bool = False) -> None:
        self.window = window
        self.caseless = caseless
        self.kept: list[tuple[int, int, int]] = []
        """Position, digest, digest without case; -1 instead of both where it leads nobody any more."""
        # What is new is most of what comes: it is known by one look-up each, and not by a walk over all that is kept.
        self._digests: Counter[int] = Counter()
        self._leading: Counter[int] = Counter()
        self.judged = 0
        self.judged_by = ""
        self.on_kept: Callable[[int, KeptMessages], None] | None = None

    @property
    def rules(self) -> str:
        """Another one for each of its two rules."""
        return f"{int(self.caseless):016x}"

    def judge(self, batch: Batch, *, answers: Mapping[SegmentId, Answer] = NO_ANSWERS) -> Verdicts:
        self.judged += len(batch)
        n = len(batch)
        kinds = np.zeros(n, np.uint8)
        leaders = np.full(n, NO_LEADER, np.int64)
        for row in range(n):
            prints = batch.fingerprints
            exact, caseless = int(prints.digests[row, 0]), int(prints.simhashes[row, 0])
            position = int(batch.positions[row])
            wanted = caseless if self.caseless else exact
            leader = None
            if self._digests[wanted]:
                leader = next((at for at, *both in self.kept if wanted in both), None)
            if leader is None:
                self._keep(position, exact, caseless)
            else:
                kinds[row] = Kind.EXACT
                leaders[row] = leader
        verdicts = Verdicts.blank(n)
        verdicts.kinds, verdicts.leaders = kinds, leaders
        return verdicts

    def positions(self) -> tuple[int, int]:
        at = [position for position, _, _ in self.kept]
        return min(at, default=0), max(at, default=-1)

    def apply(self, batch: Batch, verdicts: Verdicts) -> None:
        for row in np.flatnonzero(verdicts.kinds == Kind.UNIQUE):
            prints = batch.fingerprints
            self._keep(int(batch.positions[row]), int(prints.digests[row, 0]), int(prints.simhashes[row, 0]))

    def _keep(self, position: int, exact: int, caseless: int) -> None:
        assert not self._leading[position], f"{position} is kept already"
        self.kept.append((position, exact, caseless))
        self._count(self.kept[-1:], 1)
        surplus = max(0, len(self.kept) - self.window)
        self._count(self.kept[:surplus], -1)
        del self.kept[:surplus]

    def _count(self, kept: list[tuple[int, int, int]], by: int) -> None:
        for at, exact, caseless in kept:
            self._digests[exact] += by
            self._digests[caseless] += by
            if exact >= 0:
                self._leading[at] += by

    def _count_anew(self) -> None:
        self._digests.clear()
        self._leading.clear()
        self._count(self.kept, 1)

    def forget(self, positions: NDArray[np.int64], tags: NDArray[np.uint64]) -> None:
        gone = set(zip(positions.tolist(), tags.tolist(), strict=True))
        self.kept = [
            (at, -1, -1) if (at, exact) in gone else (at, exact, caseless)
            for at, exact, caseless in self.kept
        ]
        self._count_anew()

    def stats(self) -> SieveStats:
        """How many messages lead; nothing else is known."""
        return SieveStats(len(self.kept), len(self.kept), self.window, None, None, 0)

    def pushed_out(self, bands: int) -> int:
        """None, since each message is compared with all."""
        return 0

    def freeze(self, _have: Collection[str] = ()) -> FrozenHashes:
        return FrozenHashes("", {}, {}, {}, 0, 0, orjson.dumps([self.judged_by, self.kept]))

    def seal_into(self, write: IntoFile | None) -> None:
        """It has no segments."""

    def in_memory(self) -> InMemory:
        """It has no segments, so there is no next one."""
        return InMemory(0, 0, 0, 0)

    def load(self, stream: BinaryIO, _files: SavedParts | None = None) -> HashSieve:
        self.judged_by, kept = orjson.loads(stream.read())
        self.kept = [tuple(each) for each in kept]
        self._count_anew()
        return self


@dataclass(frozen=True, slots=True)
class FrozenHashes(Frozen):
    """The state of a `HashSieve`, all of which stands in the manifest."""

    content: bytes = b""

    def write(self, stream: BinaryIO) -> None:
        stream.write(self.content)


def ruled(
    state: IndexState, block: Block, log_offset: int, arrival_ms: int, given_up: Collection[bytes] = ()
) -> Ruling:
    """The ruling on one block alone."""
    (ruling,) = state.rule([Asked(block, log_offset, arrival_ms, tuple(sorted(given_up)))])
    return ruling


class Later(Executor):
    """A background without threads: what it is given is done when it was asked for `asked` times, or is
    waited for; a process that dies before never does it. It looks at a folder at once."""

    def __init__(self, asked: int = 3) -> None:
        self._asked = asked

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if call is look_at:
            return AtOnce().submit(call, *args, **kwargs)
        return _Awaited(self._asked, lambda: call(*args, **kwargs))


class AtOnce(Executor):
    """A background that is done before the foreground goes on."""

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(call(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - handed to whoever asks
            done.set_exception(error)
        return done


class _Awaited(Future[Any]):
    def __init__(self, asked: int, call: Callable[[], Any]) -> None:
        super().__init__()
        self._left = asked
        self._call = call

    def done(self) -> bool:
        self._left -= 1
        return self._left <= 0

    def result(self, timeout: float | None = None) -> Any:
        return self._call()
