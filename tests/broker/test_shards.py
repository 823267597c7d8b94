"""On a real broker: the index judges with the answers of shards, one of which leaves; each message comes out once,
in the place where one plain loop puts it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.broker.services import Service, origins, wait_for, written_settings
from tests.service.test_shard_service import texts
from tests.shards.holding_shards import count_taken
from tests.twins import batch_of
from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
from twinsieve.pipeline.operate.status import status_of
from twinsieve.pipeline.service.run import SystemClock, run_service
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.batch_sieve import BatchSieve

_POSTS, _MOST_ROUNDS, _ENOUGH = 60, 60, 4_000


class _Shard:
    """A process of the role shard, in a thread."""

    def __init__(self, settings: Settings, member: str) -> None:
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(settings, member), daemon=True)
        self._thread.start()

    def _run(self, settings: Settings, member: str) -> None:
        try:
            run_service(settings, connect_by_settings, role="shard", member=member, stop=self._stop)
        except Exception as error:  # noqa: BLE001 - the test in the other thread fails with it
            self.error = error

    def end(self) -> None:
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the shard does not stop"
        assert self.error is None


def test_an_app_with_shards_keeps_what_one_plain_loop_keeps(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    written = written_settings(bootstrap, tmp_path)
    written["near"] = {"window": {"messages": 400}, "segment": 50, "answers": "shards", "grace": "2s"}
    written["exact"] = {"window": {"messages": 10_000}}
    written["state"] |= {"snapshot_every": "1s", "memory": "1GiB"}
    settings = Settings.model_validate(written)
    service = Service(settings)
    service.start()
    shards = [_Shard(settings, "first"), _Shard(settings, "second")]
    posts, posted = texts(_POSTS * _MOST_ROUNDS, seed=5), 0
    while taken[0] < _ENOUGH and posted < len(posts):
        service.post(*posts[posted : posted + _POSTS])
        posted += _POSTS
        wait_for(lambda all_posts=posted: service.count("out", "dup") == all_posts, service)  # type: ignore[misc]
        if shards[1:] and taken[0] > _ENOUGH // 2:
            # The other one takes its segments over.
            shards.pop().end()
    kept = set(origins(service.read("out")))
    shown = status_of(settings, service.broker, SystemClock()).shards
    assert shown is not None
    assert (shown.members, shown.others, shown.has_topic) == (["first-shard"], {}, True)
    for each in shards:
        each.end()
    service.end()
    assert taken[0] >= _ENOUGH, "no shard answered in time"
    scheme = judging_scheme_of(settings)
    verdicts = BatchSieve(sieve_config(settings, scheme.scheme_id)).judge(
        batch_of(*scheme.read(posts[:posted]))
    )
    assert kept == {row for row in range(posted) if verdicts.kinds[row] == Kind.UNIQUE}
