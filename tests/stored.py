"""The snapshots of an app in a folder or at an address, as a service makes them."""

from __future__ import annotations

from collections.abc import Callable

from tests.twins import HashSieve
from twinsieve.pipeline.index.snapshot_store import SnapshotStore
from twinsieve.pipeline.index.snapshot_writer import Sieves
from twinsieve.pipeline.saved.journal import Journal
from twinsieve.pipeline.saved.storage import Storage
from twinsieve.pipeline.settings.named_files import file_system, store_error


def storage_at(place: str, app: str = "app") -> Storage:
    """The folder of an app."""
    files, folder = file_system(place)
    return Storage((files, f"{folder.rstrip('/')}/{app}"), store_error)


def snapshots_at(place: str, app: str = "app", keep: int = 2) -> SnapshotStore:
    """The snapshots of an app."""
    return SnapshotStore(storage_at(place, app), keep)


def journal_at(storage: Storage) -> Journal:
    """The journal of a sieve that has kept nothing."""
    return Journal(storage, "tiny", 1_000)


def hash_sieves(made: Callable[[], HashSieve] = HashSieve) -> Sieves:
    """Functions that make sieves of this kind."""
    return Sieves(
        made,
        lambda stream, files, _write: made().load(stream, files),
        lambda stream, files, _write: made().load(stream, files),
        "tiny",
        1_000,
    )
