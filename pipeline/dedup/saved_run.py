"""The state of `dedup --state`: a folder with the progress of the runs and the sieve.

Files are written once (`pipeline/saved/`), so that a run writes what is new, and not a window of days again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict

from twinsieve.pipeline.dedup.leaders import book_files
from twinsieve.pipeline.dedup.progress import Progress
from twinsieve.pipeline.files.write import FileUse, Output
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.manifest import ManifestReader, StateFile, write_manifest
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.state_folder import StateFolder
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import NEW_STATE, StateError, UsageError
from twinsieve.stages.formats import RUN
from twinsieve.stages.judge.batch_sieve import BatchSieve, most_bytes


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
        cut = self._journal.cut(self.sieve.freeze(self._journal.parts))
        self._files = self._journal.write(cut)
        about = asdict(self.progress)
        write_manifest(output.stream(), RUN, about, self._files, cut.frozen.write, self.folder.storage)
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
    with folder.open() as stream:
        manifest = ManifestReader(stream, RUN, folder.manifest, folder.storage)
        try:
            progress = Progress(**manifest.about)
            progress.check()
        except (AttributeError, TypeError, ValueError) as error:
            raise manifest.damaged(error) from error
        for key, wanted in fresh.fields.items():
            if progress.fields.get(key) != wanted:
                raise StateError(
                    f"{folder.manifest}: was written with {key} {_listed(progress.fields.get(key, []))}, "
                    f"the configuration says {_listed(wanted)}; restore the setting, or {NEW_STATE}"
                )
        try:
            most, write = most_bytes(config), journal.write_segment
            with SavedFiles(folder.storage, manifest.files, config.scheme_id, most=most) as parts:
                _sweep(folder, progress, manifest.files)
                with parts.blamed(folder.manifest):
                    sieve = BatchSieve.load(manifest.body(), config, parts=parts, seal_into=write)
        except UnreadableError as error:
            raise StateError(f"{error}, or {NEW_STATE}") from error
        except StateError as error:
            raise StateError(f"{folder.manifest}: {error}") from error
        return progress, sieve, manifest.files


def _listed(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


@contextmanager
def run_state(name: str, fresh: Progress, config: SieveConfig) -> Iterator[RunState]:
    """Context manager: the state of a run, with the lock of its folder. raises: as `StateFolder.locked` and
    `RunState`"""
    folder = StateFolder(name, RUN)
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
