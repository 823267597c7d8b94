"""The one place that decides whether a command may write where it is told to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from twinsieve.pipeline.files_address import is_address, shown
from twinsieve.pipeline.files_descriptor import descriptor_of
from twinsieve.pipeline.settings import Settings
from twinsieve.pipeline.settings_files import named_files
from twinsieve.stages.errors import UsageError

_SHARED_BY_NOBODY = (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO)
"""Kinds of files that hold one thing: rows of two outputs in one pipe could not be told apart."""


@dataclass(frozen=True, slots=True)
class Place:
    """A file that a command reads or writes.

    use: how an error calls it: `an input`, a flag, or a settings key
    name: a path, or `-` for stdin or stdout
    folder: the name stands for everything below it too
    """

    use: str
    name: str
    folder: bool = False


def inputs_of(names: Iterable[str]) -> list[Place]:
    """The places of inputs."""
    return [Place("an input", name) for name in names]


def settings_of(config: str | None, settings: Settings) -> list[Place]:
    """The places of the settings file and of every file that the settings name."""
    own = [Place("the settings file", config)] if config is not None else []
    return own + [Place(key, name) for key, name in named_files(settings)]


def outputs_of(names: dict[str, str | None]) -> list[Place]:
    """The places of outputs; names: flag → name, None where not asked for."""
    return [Place(flag, name) for flag, name in names.items() if name is not None]


def refuse_clashes(read: list[Place], written: list[Place]) -> None:
    """Do nothing if every written file is a file of its own and none is read.

    Links, hard links, descriptors and redirections are seen through. Devices may be shared.
    raises: UsageError naming both; also for an empty name and an address
    """
    taken = [(place, _Identity.of(place, writes=False)) for place in read]
    for place in written:
        if not place.name:
            raise UsageError(f"{place.use}: the name is empty; name a file, or `-` for stdout")
        if is_address(place.name):
            raise UsageError(
                f"{place.use} {shown(place.name)}: outputs are files here; write to one, and copy it there"
            )
        identity = _Identity.of(place, writes=True)
        for other, known in taken:
            if identity.is_same(known) or identity.holds(known) or known.holds(identity):
                raise UsageError(
                    f"{place.use} {place.name}: is also {other.use} ({shown(other.name)}); name another file"
                )
        taken.append((place, identity))


@dataclass(frozen=True, slots=True)
class _Identity:
    """Which file a name stands for.

    status: None where there is no such file yet; path: without links, None for a descriptor
    folder: what lies below the path belongs to it
    """

    descriptor: int | None
    status: os.stat_result | None
    path: str | None
    folder: bool

    @classmethod
    def of(cls, place: Place, *, writes: bool) -> _Identity:
        name = place.name
        descriptor = descriptor_of(name, writes=writes)
        try:
            status = os.stat(name) if descriptor is None else os.fstat(descriptor)
        except (OSError, ValueError):
            status = None
        path = os.path.realpath(name) if descriptor is None else None
        return cls(descriptor, status, path, place.folder)

    def holds(self, other: _Identity) -> bool:
        return self.folder and other.path is not None and other.path.startswith(f"{self.path}{os.sep}")

    def is_same(self, other: _Identity) -> bool:
        if self.descriptor is not None and self.descriptor == other.descriptor:
            return True
        if self.status is not None and other.status is not None:
            alone = stat.S_IFMT(self.status.st_mode) in _SHARED_BY_NOBODY
            return alone and os.path.samestat(self.status, other.status)
        return self.path is not None and self.path == other.path
