"""The state file of `dedup --state`: where the run stands, and after that the sieve."""

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
"""Format 2: leaders have no places."""
_KEPT_DIGESTS = 10_000
"""How many inputs a state remembers, the newest ones."""


@dataclass(slots=True)
class FileState:
    """Where a later run continues.

    fields: which fields of a message were keys and scopes, by setting: with others, old and new keys
        would never be equal, or messages would meet that never should
    rows: rows read since the state began; the next one has position rows + 1
    leaders: marks of the leader book, empty when there is none
    inputs: digests of what earlier runs read to its end
    """

    fields: dict[str, list[str]]
    rows: int = 0
    leaders: list[list[int]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def remember(self, digests: list[str | None]) -> None:
        """Add inputs that were read to their end; None has no digest."""
        inputs = dict.fromkeys([*self.inputs, *filter(None, digests)])
        self.inputs = list(inputs)[-_KEPT_DIGESTS:]


def new_state(settings: Settings) -> FileState:
    """Where the first run begins."""
    return FileState({"exact.fields": list(settings.exact.fields), "scope": list(settings.scope)})


def load_state(name: str, fresh: FileState, config: SieveConfig) -> tuple[FileState, BatchSieve] | None:
    """What an earlier run saved, None when there is no such file yet.

    fresh: the state this run would begin with
    raises: StateError for a damaged or foreign file, or one of another configuration; FileError
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
    """Where `write_state` writes: a file of mode 0600. raises: FileError"""
    return Output(name, mode=0o600, packed=False)


def write_state(output: Output, state: FileState, sieve: BatchSieve) -> None:
    """Write the state; it gets its name when the output is placed. raises: FileError"""
    _HEADER.write(output.write, orjson.dumps(asdict(state)))
    sieve.save(output.stream())


def state_places(name: str) -> list[FileUse]:
    """Every file that a run with this state writes. raises: UsageError where a state cannot be"""
    if name == "-" or (os.path.exists(name) and not os.path.isfile(name)):
        raise UsageError(f"--state {name}: a state is a file of its own; name one")
    return [
        FileUse("--state", name),
        FileUse("the lock of --state", lock_path(name)),
        FileUse("the leaders of --state", str(leaders_folder(name)), folder=True),
    ]


def leaders_folder(name: str) -> Path:
    """Where the leader book of a state file lives: beside it."""
    return Path(name + ".leaders")


def lock_path(name: str) -> str:
    """Where the lock of a state file is: beside what the name points to."""
    return os.path.realpath(name) + ".lock"


@contextmanager
def state_lock(name: str) -> Iterator[None]:
    """Hold the lock of a state; the system lets go of it too when the process ends, however it ends.

    name: the state file; the lock is a file `.lock` beside what it points to, gone afterwards
    raises: FileError when another run holds it, or where no lock can be made
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
    """The lock's descriptor, or None if its last holder removed the file in this very moment."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with ExitStack() as undo:
        undo.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = os.fstat(descriptor)
        if status.st_size or not stat.S_ISREG(status.st_mode):
            raise FileError(f"{path}: is not the lock of a state, which must have this name; move it away")
        with suppress(FileNotFoundError):
            if os.path.samestat(status, os.stat(path)):
                undo.pop_all()
                return descriptor
    return None
