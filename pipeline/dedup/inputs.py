"""Reads the inputs of a run chunk by chunk, and recognises inputs that an earlier run has read.

The same run may be started twice on one state, for instance because a script was restarted. The second run
would drop every row as a duplicate of itself, and replace a good output by an empty one. Inputs are
recognised by their content, because a copied or touched file has another path or modification time.
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
    """Reads inputs one after the other; only one is open at a time.

    seconds: seconds of the run by step; the time of reading is added to `read`, the time of waiting to `wait`
    done: number of inputs that were read to their end
    stopped: the stop request that ended reading before the end of the inputs; None if there was none
    saves: set by the run if it saves its state during the run, and may be stopped by request; else None
    ended: called after all rows of an input were processed
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
        """Every chunk, with the share of all input bytes read so far; the share is None if a size is unknown.

        sizes: size of each input in bytes, None for streams
        warn: called with a line about each field that no row of the first chunk has
        raises: UsageError if rows would be lost because no row has a field of the settings; FileError
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

    def _next(self, source: InputSource, chunks: Iterator[RowChunk]) -> RowChunk | None:
        """The next chunk; None at the end of the input, or if the run was stopped."""
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
            # The rows before the error are written already. Save the state, so that the next run does not
            # write them again.
            if saves is not None:
                saves.save()
            raise
        finally:
            waited_s = source.waited_s - waited_s
            self._seconds["wait"] += waited_s
            self._seconds["read"] += perf_counter() - started - waited_s


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
