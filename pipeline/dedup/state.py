"""The state of `dedup --state`: a folder with the progress of the runs and the sieve.

The manifest holds the progress, the names of the files, and what is small of the sieve. The files are written
once (`pipeline/pieces/`), so that a run writes what is new, and not a window of days again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import orjson

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.dedup.leaders import book_files
from twinsieve.pipeline.dedup.progress import Progress
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.write import FileUse, Output
from twinsieve.pipeline.pieces import UnreadableError
from twinsieve.pipeline.pieces.journal import Journal
from twinsieve.pipeline.pieces.manifest import StateFile, decode_files, encode_files
from twinsieve.pipeline.pieces.saved_files import SavedFiles
from twinsieve.pipeline.pieces.state_folder import StateFolder
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import NEW_STATE, StateError, UsageError
from twinsieve.stages.header import StateHeader
from twinsieve.stages.judge.batch_sieve import BatchSieve, most_bytes

_HEADER = StateHeader(b"twinsieve files\n", (4,), "a state of `twinsieve dedup`", NEW_STATE)
"""Versions 2 and 3 were single files."""


class RunState:
    """The progress and the sieve with which a run begins, and how they are saved.

    folder: its lock must be held until `close` was called
    fresh: the progress with which a first run begins; the fields in it must equal the saved ones
    progress: the caller keeps it up to date; sieve: judges the rows
    raises: StateError if the state is damaged, is not a state, or was written with another configuration;
        FileError
    """

    def __init__(self, folder: StateFolder, fresh: Progress, config: SieveConfig) -> None:
        self.folder = folder
        with ExitStack() as undo:
            self._journal = Journal(folder.storage, config.scheme_id, config.near.window.messages)
            undo.callback(self._journal.close)
            self.progress, self.sieve = fresh, BatchSieve(config)
            self._files: list[StateFile] = []
            if folder.check():
                self.progress, self.sieve, self._files = _loaded(folder, fresh, config, self._journal)
            else:
                _sweep(folder, fresh, [])
            undo.pop_all()
        self._journal.resume(self.sieve.stats().kept, self._files)
        self.sieve.on_kept = self._journal.take

    def seal_segments(self, report: Callable[[str], None]) -> None:
        """Let sealed segments of the near window lie in the state. report: as for `Journal`"""
        self._journal.segments.report = report
        self.sieve.seal_into(self._journal.write_segment)

    def output(self) -> Output:
        """An output for `write`. raises: FileError"""
        return self.folder.output()

    def write(self, output: Output) -> None:
        """Put all new files and the manifest on disk; the latter gets its name when the caller places it.
        Then call `written`. raises: StateError, FileError
        """
        cut = self._journal.cut(self.sieve.freeze(self._journal.parts), self.sieve.image)
        self._files = self._journal.write(cut)
        header = {name: getattr(self.progress, name) for name in Progress.__slots__}
        header["files"] = orjson.Fragment(encode_files(self._files))
        _HEADER.write(output.write, orjson.dumps(header))
        cut.frozen.write(output.stream())
        output.sync()
        self.folder.placing()

    def written(self) -> None:
        """Delete the files that the new manifest does not name; call it after the manifest has its name."""
        # Files that cannot be deleted now are swept by the next run.
        with suppress(StateError, OSError):
            self._journal.announced(self._files, {file.name for file in self._files})
        self.folder.placed()

    def close(self) -> None:
        """Delete the files that no manifest names, and end the thread that writes them."""
        self._journal.close()


def _sweep(folder: StateFolder, progress: Progress, files: list[StateFile]) -> None:
    """Delete what a run that was killed has left: files, and rows of a leader book that this run may not
    have. Call it before the first file is written."""
    folder.sweep({file.name for file in files} | book_files(progress.leaders))


def _loaded(
    folder: StateFolder, fresh: Progress, config: SieveConfig, journal: Journal
) -> tuple[Progress, BatchSieve, list[StateFile]]:
    """The saved progress, the sieve and its files. journal: writes segments that become full meanwhile"""
    try:
        with folder.open() as stream:
            header: dict[str, Any] = orjson.loads(_HEADER.read(stream))
            files = decode_files(orjson.dumps(header.pop("files")))
            progress = Progress(**header)
            progress.check()
            for key, wanted in fresh.fields.items():
                if progress.fields[key] != wanted:
                    raise StateError(
                        f"was written with {key} {_listed(progress.fields[key])}, "
                        f"the configuration says {_listed(wanted)}; "
                        f"restore the setting, or {NEW_STATE}"
                    )
            with SavedFiles(folder.storage, files, config.scheme_id, most=most_bytes(config)) as parts:
                _sweep(folder, progress, files)
                with parts.blamed(folder.manifest):
                    sieve = BatchSieve.load(stream, config, parts=parts, seal_into=journal.write_segment)
                return progress, sieve, files
    except OSError as error:
        raise FileError(f"{folder.manifest}: cannot be read: {error.strerror}") from error
    except UnreadableError as error:
        raise StateError(f"{error}, or {NEW_STATE}") from error
    except StateError as error:
        raise StateError(f"{folder.manifest}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            f"{folder.manifest}: is damaged ({printable(str(error))}); restore it from a copy, or {NEW_STATE}"
        ) from error


def _listed(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


@contextmanager
def run_state(name: str, fresh: Progress, config: SieveConfig) -> Iterator[RunState]:
    """Context manager: the state of a run, with the lock of its folder. raises: as `StateFolder.locked` and
    `RunState`"""
    folder = StateFolder(name, _HEADER)
    with folder.locked():
        state = RunState(folder, fresh, config)
        try:
            yield state
        finally:
            state.close()


def state_place(name: str) -> FileUse:
    """The folder in which a run writes this state. raises: UsageError for the name of a stream or device"""
    if name == "-" or (os.path.exists(name) and not os.path.isdir(name) and not os.path.isfile(name)):
        raise UsageError(f"--state {name}: is not a folder; name one, or a new one")
    return FileUse("--state", name, folder=True)
