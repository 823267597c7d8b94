"""The inputs of a run: read chunk by chunk, and recognised by a later run on the same state.

A run may be repeated, because it was killed after its end or a script started again. It then drops every row
as a copy of itself, and would replace a good output by an empty one. Inputs are recognised by their content:
a copy of an input, or one that was touched, has another path or time of change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import blake2b
from itertools import chain, islice
from time import perf_counter

from twinsieve.pipeline.dedup.saves import Saves
from twinsieve.pipeline.files.messages import InputReader, RowChunk
from twinsieve.pipeline.files.source import InputSource, StoppedError, is_stream
from twinsieve.pipeline.files.write import descriptor_of
from twinsieve.pipeline.messages.unseen import ENOUGH_ROWS, STOPPING, TEXT
from twinsieve.stages.errors import SieveError, UsageError

_BLOCK_BYTES = 1 << 20
_BLOCKS = 64


class Inputs:
    """Reads inputs one after the other; one is open at a time.

    seconds: of the run by step; the time of reading is added to `read`, of waiting for it to `wait`
    done: how many inputs were read to their end
    stopped: why reading ended before that, None while it did not
    saves: of a run that saves and can stop in good order
    ended: called when all rows of an input were handled
    """

    def __init__(self, names: list[str], reader: InputReader, seconds: dict[str, float]) -> None:
        self._names = names
        self._reader = reader
        self._seconds = seconds
        self.done = 0
        self.stopped: StoppedError | None = None
        self.saves: Saves | None = None
        self.ended: Callable[[], None] = lambda: None

    def chunks(
        self, sizes: list[int | None], warn: Callable[[str], None]
    ) -> Iterator[tuple[RowChunk, float | None]]:
        """Every chunk, with the share of all input bytes taken so far, None where a size is unknown.

        sizes: of the inputs in bytes, None for streams; warn: gets a line about each field that no row has
        raises: UsageError where rows without a field would be lost; FileError
        """
        total = None if None in sizes else sum(size or 0 for size in sizes)
        before = 0
        is_checked = False
        for number, (name, size) in enumerate(zip(self._names, sizes, strict=True), start=1):
            with ExitStack() as opened:
                source = self._open(name, opened)
                if source is None:
                    return
                chunks = self._reader.chunks(source)
                while (chunk := self._next(source, chunks)) is not None:
                    if chunk.columns.unseen and not is_checked:
                        is_checked = True
                        is_sample = size is None
                        if size is not None and chunk.columns.unseen[0].count < ENOUGH_ROWS:
                            following = list(islice(chunks, 1))
                            is_sample = bool(following) or number < len(sizes)
                            chunks = chain(following, chunks)
                        _warn_of_unseen(chunk, warn, is_sample=is_sample)
                    yield chunk, (before + source.consumed) / total if total else None
                if self.stopped is not None:
                    return
            before += size or 0
            self.ended()
            self.done = number

    def _open(self, name: str, opened: ExitStack) -> InputSource | None:
        """The input, or None when the run was stopped while a pipe had no writer."""
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

    def _next(self, source: InputSource, chunks: Iterator[RowChunk]) -> RowChunk | None:
        """The next chunk; None at the end of the input, and when the run was stopped."""
        started, waited_s, saves = perf_counter(), source.waited_s, self.saves
        try:
            if saves is not None:
                saves.save_if_due()
                if saves.stop.requested:
                    raise StoppedError
            return next(chunks, None)
        except StoppedError as stopped:
            self.stopped = stopped
            return None
        except SieveError:
            # The rows before are written; without a save the next run would write them again.
            if saves is not None:
                saves.save()
            raise
        finally:
            waited_s = source.waited_s - waited_s
            self._seconds["wait"] += waited_s
            self._seconds["read"] += perf_counter() - started - waited_s


def _warn_of_unseen(chunk: RowChunk, warn: Callable[[str], None], *, is_sample: bool) -> None:
    """Warn of fields that no row of the first chunk has.

    is_sample: rows that are still to come may have them
    raises: UsageError where rows would be lost
    """
    unseen = chunk.columns.unseen
    if not is_sample and not len(chunk.columns):
        # Where no row has a text the run ends, and its error names the field.
        unseen = [field for field in unseen if field.setting != TEXT]
    lines = [(field.setting in STOPPING, f"{chunk.source}: {field.line('rows')}") for field in unseen]
    stopping = [line for stops, line in lines if stops]
    if stopping and not is_sample:
        raise UsageError("; ".join(stopping))
    for _, line in lines:
        warn(line)


def content_digest(name: str) -> str | None:
    """A digest of what a file holds; None for streams, empty files and what cannot be read.

    Files of more than 64 MiB are read in 64 blocks of 1 MiB, the first, the last and others evenly between.
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
    """Refuse a repeated run where one of these outputs has content that would be replaced.

    repeated: an input that an earlier run on this state has read
    raises: UsageError
    """
    for flag, name in outputs.items():
        if name is None or descriptor_of(name, writes=True) is not None:
            continue
        if os.path.isfile(name) and os.path.getsize(name) > 0:
            raise UsageError(
                f"{repeated}: an earlier run on {state} read this content to its end; all its rows would be "
                f"dropped, and {flag} {name} be replaced by the rest; name another output, input or state"
            )
