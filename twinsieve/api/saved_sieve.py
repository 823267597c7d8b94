"""The folder of `Sieve.save`: the settings, the number of texts judged, the ids, and the engine's state.

The files have checksums and are written once (`pipeline/saved/`): kept texts, full generations of the exact
stage, and blocks of leaders' ids. The first save, and one after very many texts, has the memory of the near
stage in place of the texts kept before. A save gets its name with the manifest, when all files are on disk.
Only the owner can read them, because they hold texts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from twinsieve.api.leader_ids import LeaderIds
from twinsieve.api.sieve_options import engine_config
from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.journal import RECORD_MESSAGES, Journal
from twinsieve.pipeline.saved.manifest import ManifestReader, StateFile, write_manifest
from twinsieve.pipeline.saved.saved_files import SavedFiles
from twinsieve.pipeline.saved.segment_files import ScratchSegments
from twinsieve.pipeline.saved.state_folder import StateFolder
from twinsieve.pipeline.saved.stored_texts import stored_texts
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.named_files import read_referenced
from twinsieve.pipeline.settings.stage_config import judging_scheme_of
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import StateError, UsageError
from twinsieve.stages.formats import SIEVE
from twinsieve.stages.judge.batch_sieve import BatchSieve, memory_in, most_bytes
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.scheme import Scheme

_LOOSE = 256
"""This many runs are joined into one. A run of one message takes as much memory as one of ten."""


class HeldMessages:
    """What a sieve has kept since its last save, up to a number of messages; beyond it, nothing is held.

    kept: number of the next message that the sieve keeps; limit: messages held at most
    """

    def __init__(self, kept: int, limit: int) -> None:
        self.since = kept
        """A save before this message was kept is complete together with `runs`."""
        self._limit = limit
        self._next = kept
        self._count = 0
        self._joined: list[tuple[int, KeptMessages]] = []
        self._loose: list[tuple[int, KeptMessages]] = []
        self.is_complete = True
        """False after more messages were kept than may be held: the next save has to be whole."""

    def take(self, first: int, messages: KeptMessages) -> None:
        """Hold kept messages; `BatchSieve.on_kept`. first: number of the first one"""
        # With a gap the window has passed all earlier messages too, so that a save needs none of them.
        if first != self._next:
            self._forget()
        self._next = first + len(messages)
        if not self.is_complete:
            return
        self._count += len(messages)
        if self._count > self._limit:
            self.is_complete = False
            self._forget()
            return
        self._loose.append((first, stored_texts(messages)))
        if len(self._loose) >= _LOOSE:
            self._joined.append((self._loose[0][0], KeptMessages.concat([part for _, part in self._loose])))
            self._loose.clear()

    def _forget(self) -> None:
        self._joined.clear()
        self._loose.clear()
        self._count = 0

    @property
    def runs(self) -> list[tuple[int, KeptMessages]]:
        """Runs of messages in the order of keeping, each with the number of its first one."""
        return [*self._joined, *self._loose]


_log = logging.getLogger("twinsieve")

_SECTIONS = ("profile", "text", "features", "digest", "exact", "near", "time")
"""Sections of the settings that change verdicts on a column of texts."""


_HELD = 1 << 17
"""Most kept texts that wait in memory for the next save; with more, that save writes the near stage."""


class LastSave:
    """The files with which a sieve was last saved, or from which it was loaded, and what it has kept since.

    engine: hands over what it keeps from now on
    """

    def __init__(self, files: list[StateFile], engine: BatchSieve) -> None:
        self.files = files
        window = engine.config.near.window.messages
        self.held = HeldMessages(engine.stats().kept, min(max(RECORD_MESSAGES, window // 16), _HELD))
        engine.on_kept = self.held.take

    def goes_on_in(self, folder: StateFolder) -> bool:
        """Whether a save in this folder can use the files of the last one. They have random names and never
        change, so files of these names are these files."""
        names = {file.name for file in self.files}
        return self.held.is_complete and names <= set(folder.storage.names())


@dataclass(frozen=True, slots=True)
class Saved:
    """The content of a saved folder. rows: number of texts judged, and so the position of the next text"""

    settings: Settings
    scheme: Scheme
    rows: int
    ids: LeaderIds
    engine: BatchSieve
    last: LastSave


def write(
    name: str, settings: Settings, rows: int, ids: LeaderIds, engine: BatchSieve, last: LastSave | None
) -> LastSave:
    """Save a sieve in the folder `name`; only what is new if `last` was there.

    raises: FileError, then what was saved there is unchanged; StateError if the folder holds something else
    """
    folder = StateFolder(name, SIEVE)
    with folder.locked():
        memory_at: int | None = engine.stats().kept
        held, files, since = [], [], engine.stats().kept
        if last is not None and last.goes_on_in(folder):
            held, files, since = last.held.runs, last.files, last.held.since
            memory_at = memory_in(file.part for file in files)
        scheme_id, window = engine.config.scheme_id, engine.config.near.window.messages
        with closing(Journal(folder.storage, scheme_id, window, since, files, "the sieve")) as journal:
            for first, messages in held:
                journal.take(first, messages)
            try:
                return _write(folder, journal, settings, rows, ids, engine, memory_at)
            except StateError as error:
                raise FileError(str(error)) from error


def _write(
    folder: StateFolder,
    journal: Journal,
    settings: Settings,
    rows: int,
    ids: LeaderIds,
    engine: BatchSieve,
    memory_at: int | None,
) -> LastSave:
    blocks = ids.blocks()
    frozen = engine.freeze(journal.parts, memory_at)
    frozen = replace(frozen, parts={**frozen.parts, **blocks[0], **blocks[1]})
    files = journal.write(journal.cut(frozen))
    about = {
        "settings": _plain(settings),
        "rows": rows,
        "seeded": settings.digest.seed != 0,
        "version": program_version(),
        "ids": [list(generation) for generation in blocks],
    }
    with folder.output() as output:
        write_manifest(output.stream(), SIEVE, about, files, frozen.write, folder.storage)
        output.sync()
        folder.placing()
        output.place()
    # Files that cannot be deleted now are tried again at the next save.
    with suppress(StateError, OSError):
        journal.announced(files, {file.name for file in files})
    return LastSave(files, engine)


def read(name: str, seed: int | None) -> Saved:
    """The sieve that was saved in the folder `name`.

    seed: the secret seed that the sieve was made with, because the folder does not hold it
    raises: StateError if a file is damaged or missing, has another format or was saved under another
        fingerprint scheme; UsageError if the seed is missing; FileError if the folder cannot be read
    """
    folder = StateFolder(name, SIEVE)
    while True:
        folder.check()
        with folder.open() as stream:
            opened = os.fstat(stream.fileno())
            manifest = ManifestReader(stream, SIEVE, folder.manifest, folder.storage)
            try:
                return _read(folder, manifest, seed)
            except UnreadableError as error:
                # A save that ended meanwhile may have deleted files of the save before.
                with suppress(OSError):
                    if not os.path.samestat(opened, os.stat(folder.manifest)):
                        continue
                raise StateError(f"{error}, or start with a new Sieve") from error
            except StateError as error:
                raise StateError(f"{folder.manifest}: {error}") from error
            except UsageError as error:
                raise UsageError(f"{name}: {error}") from error
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise manifest.damaged(type(error).__name__) from error


def leader_window(config: SieveConfig) -> int:
    """How many kept texts ago a leader can be: the near window, or the window of a trie if that is larger."""
    exact = config.exact.window.messages if config.exact.method == "trie" else 0
    return max(config.near.window.messages, exact)


def _read(folder: StateFolder, manifest: ManifestReader, seed: int | None) -> Saved:
    header, files = manifest.about, manifest.files
    if header["seeded"] and seed is None and header["settings"]["digest"].get("seed_file") is None:
        raise UsageError("was saved with a secret seed; give it, as in Sieve.load(path, seed=…)")
    settings = _settings_of(header, seed)
    scheme = judging_scheme_of(settings)
    config = engine_config(settings, scheme.scheme_id)
    most = most_bytes(config)
    with SavedFiles(folder.storage, files, scheme.scheme_id, most=most) as saved, ExitStack() as undo:
        undo.enter_context(saved.blamed(folder.manifest))
        scratch = scratch_segments(settings, scheme)
        undo.callback(scratch.close)
        engine = BatchSieve.load(manifest.body(), config, parts=saved, seal_into=scratch.write)
        ids = LeaderIds.from_blocks(
            [[saved.sections(block) for block in generation] for generation in header["ids"]],
            leader_window(config),
        )
        undo.pop_all()
    if engine.other_rules:
        _log.warning(
            "%s: twinsieve %s judged by other rules; later texts are judged by those of this version",
            *(folder.manifest, printable(str(header["version"]))),
        )
    return Saved(settings, scheme, int(header["rows"]), ids, engine, LastSave(files, engine))


def scratch_segments(settings: Settings, scheme: Scheme) -> ScratchSegments:
    """Files for the sealed segments of a sieve. One that cannot be written is a warning in the log."""
    return ScratchSegments(scheme.scheme_id, settings.state.scratch, _log.warning)


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings that verdicts depend on, without the secret seed."""
    plain = settings.model_dump(by_alias=True, include=set(_SECTIONS))
    del plain["digest"]["seed"]
    if settings.near.distances_by_field or len(settings.input.text_field) > 1:
        plain["input"] = {"text_field": settings.input.text_field}
    return plain


def _settings_of(header: Mapping[str, Any], seed: int | None) -> Settings:
    plain = dict(header["settings"])
    if seed is not None:
        plain["digest"] = {**plain["digest"], "seed": seed}
    try:
        settings = Settings.model_validate(plain)
    except ValidationError as error:
        if seed is not None and any(detail["loc"][-1] == "seed" for detail in error.errors()):
            raise UsageError("seed cannot be read; it is a whole number below 2^64") from error
        raise StateError(
            f"was saved by twinsieve {header['version']} with settings that this version does not know; "
            "load it with that version, or start with a new Sieve"
        ) from error
    settings, problems = read_referenced(settings, Path(), set())
    if problems:
        raise StateError(f"was saved with {'; '.join(f'{key}, which {text}' for key, text in problems)}")
    return settings
