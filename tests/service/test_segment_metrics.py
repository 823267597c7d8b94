"""Metrics of an index whose near window has several segments."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.crash.members import Member, run, settings_at
from tests.service.conftest import scheme as scheme
from tests.service.test_changed_settings import deployment, posts
from twinsieve.pipeline.index.snapshot_store import SnapshotReader
from twinsieve.pipeline.pieces.storage import Storage
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.stages.judge.scheme import Scheme

_NAMES = {
    "segments": "twinsieve_window_segments",
    "waiting": "twinsieve_window_waiting_segments",
    "failures": "twinsieve_segment_failures_total",
    "mapped": "twinsieve_sieve_mapped_bytes",
    "stored": "twinsieve_snapshot_stored_bytes",
}


def _read(metrics: Metrics, member: Member) -> dict[str, float | None]:
    metrics.set_judging(member.index)
    metrics.set_index_state(member.index)
    metrics.count_index(member.index)
    return {key: metrics.registry.get_sample_value(name) for key, name in _NAMES.items()}


@pytest.mark.parametrize("fault", ["none", "refused", "hangs"])
def test_segments_are_counted(
    fault: str, scheme: Scheme, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_at(str(tmp_path), segment=25)
    world = deployment(settings, scheme)
    world.produce(posts(1, 260))
    flows, create = Event(), Storage.create
    refused: list[str] = []

    def created(storage: Storage, name: str) -> Any:
        if name.startswith("segment-"):
            if fault == "refused":
                refused.append(name)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if fault == "hangs":
                flows.wait()
        return create(storage, name)

    monkeypatch.setattr(Storage, "create", created)
    member = Member(world, settings, "one")
    metrics = Metrics(world.clock)
    assert _read(metrics, member) == {"segments": 1, "waiting": 0, "failures": 0, "mapped": 0, "stored": None}
    run(world, member)
    journal = member.index._journal
    assert journal is not None
    if fault != "hangs":
        journal.segments.thread.submit(int).result()
    world.produce(posts(2, 1))
    run(world, member)
    member.index.snapshots.finished(wait=True)
    found = _read(metrics, member)
    sieve = member.index.state.sieve
    # A window of 60 messages in segments of 25: the oldest one may be in it in part.
    assert found["segments"] in (3, 4)
    if fault == "none":
        assert found["mapped"] == sieve.stats().bytes_mapped > 0
        assert (found["waiting"], found["failures"]) == (0, 0)
        assert member.index._store is not None
        newest = next(member.index._store.read(member.index._ids[0]))
        assert isinstance(newest, SnapshotReader)
        size = Path(newest.name).stat().st_size + sum(
            path.stat().st_size for path in _named(tmp_path / "t", newest)
        )
        assert found["stored"] == size
    elif fault == "refused":
        assert found["failures"] == len(refused) > 1
        assert (found["waiting"], found["mapped"]) == (0, 0)
        assert _read(metrics, member)["failures"] == len(refused), "each is counted once"
    else:
        assert found["waiting"] is not None
        assert found["waiting"] > 1
        assert (found["failures"], found["mapped"]) == (0, 0)
    flows.set()
    member.index.notices.clear()
    member.end()


def _named(folder: Path, snapshot: SnapshotReader) -> list[Path]:
    return [folder / file.name for file in snapshot.files]
