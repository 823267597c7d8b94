"""Reads the inputs of a run chunk by chunk, and recognises inputs that an earlier run has read.

The same run may be started twice on one state, for instance because a script was restarted. The second run
would drop every row as a duplicate of itself, and replace a good output by an empty one. Inputs are
recognised by their content, because a copied or touched file has another path or modification time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from time import perf_counter, thread_time
from typing import NamedTuple

from twinsieve.pipeline.dedup.ahead import Ahead
from twinsieve.pipeline.dedup.saves import Saves
from twinsieve.pipeline.files.format import RowChunk
from twinsieve.pipeline.files.input_reader import InputReader
from twinsieve.pipeline.files.source import InputSource, StoppedError, is_stream
from twinsieve.pipeline.files.write import descriptor_of
from twinsieve.pipeline.messages.unseen import ENOUGH_ROWS, STOPPING, TEXT
from twinsieve.stages.contract import Bodies, Fingerprints
from twinsieve.stages.errors import SieveError, UsageError
from twinsieve.stages.judge.scheme import Scheme

_BLOCK_BYTES = 1 << 20
_BLOCKS = 64
_BYTES_A_ROW = 1 << 9
"""Most rows have fewer bytes."""
_PREPARING = ("read", "text", "fingerprints")
"""The steps whose times `Prepared` has."""


class Prepared(NamedTuple):
    """A chunk that can be judged, with the bodies and fingerprints of its messages.

    seconds: processor time that it took to decode it, to make the bodies, and to make the fingerprints
    """

    chunk: RowChunk
    bodies: Bodies
    fingerprints: Fingerprints
    seconds: tuple[float, float, float]


class Inputs:
    """Reads inputs one after the other; only one is open at a time.

    scheme: makes bodies and fingerprints
    seconds: seconds of the run by step; those of `read`, `text`, `fingerprints` and `wait` are added here
    done: number of inputs that were read to their end
    stopped: the stop request that ended reading before the end of the inputs; None if there was none
    saves: set by the run if it saves its state during the run, and may be stopped by request; else None
    ended: called after all rows of an input were processed
    """

    def __init__(
        self,
        names: list[str],
        reader: InputReader,
        scheme: Scheme,
        seconds: dict[str, float],
    ) -> None:
        self._names = names
        self._reader = reader
        self._scheme = scheme
        self._seconds = seconds
        self.done = 0
        self.stopped: StoppedError | None = None
        self.saves: Saves | None = None
        self.ended: Callable[[], None] = lambda: None

    def chunks(
        self, sizes: list[int | None], warn: Callable[[str], None]
    ) -> Generator[tuple[Prepared, float | None]]:
        """Every chunk, with the share of all input bytes read so far; the share is None if a size is unknown.

        sizes: size of each input in bytes, None for streams
        warn: called with a line about each field that no row of the first chunk has
        raises: UsageError if rows would be lost because no row has a field of the settings; FileError
        """
        total = None if None in sizes else sum(size or 0 for size in sizes)
        before = 0
        is_checked = False
        with ExitStack() as threads:
            decoding, preparing = own_thread(threads), own_thread(threads)
            both = None if decoding is None or preparing is None else (decoding, preparing)
            for number, (name, size) in enumerate(zip(self._names, sizes, strict=True), start=1):
                with ExitStack() as opened:
                    source = self._open(name, opened)
                    if source is None:
                        return
                    rows = self._read(source)
                    items = Ahead(rows, self._decode, self._prepare, both, source.is_ready)
                    following: Prepared | None = None
                    while (item := following or self._next(items)) is not None:
                        following, unseen = None, item.chunk.columns.unseen
                        if unseen and not is_checked:
                            is_checked = True
                            is_sample = size is None
                            if size is not None and unseen[0].count < ENOUGH_ROWS:
                                following = self._next(items)
                                is_sample = following is not None or number < len(sizes)
                            _warn_of_unseen(item.chunk, warn, is_sample=is_sample)
                        for step, taken_s in zip(_PREPARING, item.seconds, strict=True):
                            self._seconds[step] += taken_s
                        yield item, (before + source.consumed) / total if total else None
                    if self.stopped is not None:
                        return
                before += size or 0
                self.ended()
                self.done = number

    def _read(self, source: InputSource) -> Iterator[RowChunk]:
        """The rows of an input, not decoded, and the time that reading them takes."""
        rows = self._reader.rows_alone(source)
        while True:
            started, waited_s = perf_counter(), source.waited_s
            try:
                chunk = next(rows, None)
            finally:
                waited_s = source.waited_s - waited_s
                self._seconds["wait"] += waited_s
                self._seconds["read"] += perf_counter() - started - waited_s
            if chunk is None:
                return
            yield chunk

    def _decode(self, rows: RowChunk) -> tuple[RowChunk, float]:
        """Rows with their messages, and the processor time that decoding took."""
        started = thread_time()
        return self._reader.decoded(rows), thread_time() - started

    def _prepare(self, decoded: tuple[RowChunk, float]) -> Prepared:
        """Make the bodies and fingerprints of messages."""
        chunk, decoding_s = decoded
        columns = chunk.columns
        times = [thread_time()]
        bodies = self._scheme.bodies(columns.texts, columns.keys)
        times.append(thread_time())
        fingerprints = self._scheme.fingerprints(bodies, columns.keys, columns.texts)
        times.append(thread_time())
        text_s, prints_s = (end - start for start, end in pairwise(times))
        return Prepared(chunk, bodies, fingerprints, (decoding_s, text_s, prints_s))

    def _open(self, name: str, opened: ExitStack) -> InputSource | None:
        """The opened input, or None if the run was stopped, also while opening a pipe that has no writer."""
        saves = self.saves
        if saves is None:
            return opened.enter_context(InputSource(name))
        if not saves.stop.requested:
            saves.stop.taken = False
            try:
                return opened.enter_context(InputSource(name, saves.wait if is_stream(name) else None))
            except KeyboardInterrupt:
                saves.stop.ask()
            finally:
                saves.stop.taken = True
        self.stopped = StoppedError()
        return None

    def _next(self, items: Ahead[RowChunk, tuple[RowChunk, float], Prepared]) -> Prepared | None:
        """The next chunk; None at the end of the input, or if the run was stopped."""
        saves = self.saves
        try:
            if saves is not None:
                saves.save_if_due()
                if saves.stop.requested:
                    items.stop()
            item = next(items, None)
            if item is None and saves is not None and saves.stop.requested:
                raise StoppedError
            return item
        except StoppedError as stopped:
            self.stopped = stopped
            return None
        except SieveError:
            # The rows before the error are written already. Save the state, so that the next run does not
            # write them again.
            if saves is not None:
                saves.save()
            raise


def own_thread(threads: ExitStack) -> Executor | None:
    """A thread that ends with `threads`; None where only one processor may be used."""
    if cores() == 1:
        return None
    thread = ThreadPoolExecutor(1, "twinsieve-ahead")
    threads.callback(thread.shutdown, wait=True, cancel_futures=True)
    return thread


def least_rows(names: list[str]) -> int:
    """How many rows the inputs that are local files have at least, most likely: by their size."""
    return sum(os.path.getsize(name) for name in names if os.path.isfile(name)) // _BYTES_A_ROW


def _warn_of_unseen(chunk: RowChunk, warn: Callable[[str], None], *, is_sample: bool) -> None:
    """Warn about fields that no row of the first chunk has.

    is_sample: more rows will follow, which may have the fields; so do not raise
    raises: UsageError if no row at all has a field without which rows would be lost
    """
    unseen = chunk.columns.unseen
    if not is_sample and not len(chunk.columns):
        # If no row has a text, the run ends with an error that names the field, so do not warn about it too.
        unseen = [field for field in unseen if field.setting != TEXT]
    lines = [(field.setting in STOPPING, f"{chunk.source}: {field.line('rows')}") for field in unseen]
    stopping = [line for stops, line in lines if stops]
    if stopping and not is_sample:
        raise UsageError("; ".join(stopping))
    for _, line in lines:
        warn(line)


def content_digest(name: str) -> str | None:
    """A digest of a file's content; None for streams, empty files and files that cannot be read.

    Of a file larger than 64 MiB only 64 blocks of 1 MiB are read: the first, the last, and others evenly
    spaced between them.
    """
    if is_stream(name):
        return None
    try:
        with open(name, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if not size:
                return None
            digest = blake2b(size.to_bytes(8, "little"), digest_size=16)
            last = max(size - _BLOCK_BYTES, 0)
            blocks = min(_BLOCKS, -(-size // _BLOCK_BYTES))
            whole = size <= _BLOCKS * _BLOCK_BYTES
            for block in range(blocks):
                stream.seek(block * _BLOCK_BYTES if whole else block * last // (_BLOCKS - 1))
                digest.update(stream.read(_BLOCK_BYTES))
            return digest.hexdigest()
    except (OSError, ValueError):
        return None


def refuse_empty_replacement(repeated: str, state: str, outputs: Mapping[str, str | None]) -> None:
    """Refuse a repeated run if it would replace an output file that has content.

    repeated: name of an input that an earlier run on this state has read
    state: name of the state file; outputs: name of the output for each flag, or None
    raises: UsageError
    """
    for flag, name in outputs.items():
        if name is None or descriptor_of(name, writes=True) is not None:
            continue
        if os.path.isfile(name) and os.path.getsize(name) > 0:
            raise UsageError(
                f"{repeated}: an earlier run on {state} read this content to its end, so all its rows would "
                f"be dropped, and what is left would overwrite {flag} {name}; name another output, input or "
                "state"
            )


_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def cores() -> int:
    """Number of cores that this process may use, by its CPU affinity and the limit of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, _, period = _QUOTA.read_text().partition(" ")
        limit = -(-int(quota) // int(period))
    except (OSError, ValueError):
        return allowed
    return max(1, min(allowed, limit))
