"""Reads and writes the state file of `dedup --state`: the progress of the runs, followed by the sieve."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from twinsieve.pipeline.files import FileError
from twinsieve.pipeline.files.write import FileUse, Output
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.errors import NEW_STATE, StateError, UsageError
from twinsieve.stages.header import StateHeader
from twinsieve.stages.judge.batch_sieve import BatchSieve

_HEADER = StateHeader(b"twinsieve files\n", (2, 3), "a state of `twinsieve dedup`", NEW_STATE)
"""Versions 2 and 3 of the file format can be read. In version 2 leaders have no source and line."""
_KEPT_DIGESTS = 10_000
"""Number of inputs that a state remembers; the oldest ones are forgotten first."""


@dataclass(slots=True)
class FileState:
    """The progress of all runs on one state, from which a later run continues.

    fields: the fields that are keys and scopes, by settings key. A run with other fields is refused, because
        old and new keys would never be equal, or messages of different scopes would be compared
    rows: number of rows read by all runs; the next row has position rows + 1
    leaders: marks of the leader book, empty if there is no book
    inputs: content digests of the inputs that were read to their end
    """

    fields: dict[str, list[str]]
    rows: int = 0
    leaders: list[list[int]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def remember(self, digests: list[str | None]) -> None:
        """Add the digests of inputs that were read to their end; None, for no digest, is skipped."""
        inputs = dict.fromkeys([*self.inputs, *filter(None, digests)])
        self.inputs = list(inputs)[-_KEPT_DIGESTS:]


def new_state(settings: Settings) -> FileState:
    """The progress before the first run."""
    return FileState({"exact.fields": list(settings.exact.fields), "scope": list(settings.scope)})


def load_state(name: str, fresh: FileState, config: SieveConfig) -> tuple[FileState, BatchSieve] | None:
    """The progress and the sieve that an earlier run saved, None if the file does not exist.

    fresh: the progress with which this run would begin; its fields must equal the saved ones
    raises: StateError if the file is damaged, is not a state, or was written with another configuration;
        FileError
    """
    try:
        with Path(name).open("rb") as stream:
            state = FileState(**orjson.loads(_HEADER.read(stream)))
            for key, wanted in fresh.fields.items():
                if state.fields[key] != wanted:
                    raise StateError(
                        f"{name}: was written with {key} {_listed(state.fields[key])}, "
                        f"the configuration says {_listed(wanted)}; "
                        f"restore the setting, or {NEW_STATE}"
                    )
            return state, BatchSieve.load(stream, config)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror}") from error
    except StateError as error:
        if str(error).startswith(name):
            raise
        raise StateError(f"{name}: {error}") from error


def _listed(names: list[str]) -> str:
    return f"[{', '.join(names)}]"


def state_output(name: str) -> Output:
    """The output for `write_state`: a file of mode 0600. raises: FileError"""
    return Output(name, mode=0o600, packed=False)


def write_state(output: Output, state: FileState, sieve: BatchSieve) -> None:
    """Write the state into the output; the file gets its name when the caller places it. raises: FileError"""
    _HEADER.write(output.write, orjson.dumps(asdict(state)))
    sieve.save(output.stream())


def state_places(name: str) -> list[FileUse]:
    """Every file that a run writes for this state. raises: UsageError if the name is not that of a file"""
    if name == "-" or (os.path.exists(name) and not os.path.isfile(name)):
        raise UsageError(f"--state {name}: is not a regular file; name one, or a new file")
    return [
        FileUse("--state", name),
        FileUse("the lock of --state", lock_path(name)),
        FileUse("the leaders of --state", str(leaders_folder(name)), folder=True),
    ]


def leaders_folder(name: str) -> Path:
    """The folder of the leader book of a state file, which is beside that file."""
    return Path(name + ".leaders")


def lock_path(name: str) -> str:
    """The path of the lock of a state file: beside that file, after symbolic links are followed."""
    return os.path.realpath(name) + ".lock"


@contextmanager
def state_lock(name: str) -> Iterator[None]:
    """Context manager: hold the lock of a state. The system releases it when the process ends for any reason.

    name: the state file; the lock is the file `lock_path(name)`, which is deleted at the end
    raises: FileError if another run holds the lock, or if it cannot be made
    """
    path = lock_path(name)
    try:
        while (descriptor := _locked(path)) is None:
            pass
    except BlockingIOError as error:
        raise FileError(f"{name}: another run is using it; let it end, or name another state") from error
    except FileNotFoundError as error:
        raise FileError(f"{name}: there is no folder {os.path.dirname(path)}; make it first") from error
    except OSError as error:
        raise FileError(f"{path}: cannot be locked: {error.strerror}") from error
    try:
        yield
    finally:
        os.unlink(path)
        os.close(descriptor)


def _locked(path: str) -> int | None:
    """The descriptor of the lock file; None if its last holder deleted the file meanwhile, so try again."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with ExitStack() as undo:
        undo.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(descriptor)
        if status.st_size or not stat.S_ISREG(status.st_mode):
            raise FileError(
                f"{path}: --state needs this name for its lock, but this is another file; move it away"
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(status, os.stat(path)):
                undo.pop_all()
                return descriptor
    return None
