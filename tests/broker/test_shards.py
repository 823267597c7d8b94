"""On a real broker: the index judges with the answers of shards, one of which leaves; each message comes out once,
in the place where one plain loop puts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.broker.services import Process, Service, origins, wait_for, written_settings
from tests.broker.stranger import delete_topics
from tests.service.test_shard_service import texts
from tests.shards.holding_shards import count_taken
from tests.twins import batch_of
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.operate.status import status_of
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.batch_sieve import BatchSieve

_POSTS, _MOST_ROUNDS, _ENOUGH = 60, 60, 4_000


def end(process: Process) -> None:
    """It ends well."""
    process.stop()
    assert process.error is None


def _settings(bootstrap: str, folder: Path) -> Settings:
    written = written_settings(bootstrap, folder)
    written["near"] = {"window": {"messages": 400}, "segment": 50, "answers": "shards", "grace": "2s"}
    written["exact"] = {"window": {"messages": 10_000}}
    written["state"] |= {"snapshot_every": "1s", "memory": "1GiB"}
    return Settings.model_validate(written)


def test_an_app_with_shards_keeps_what_one_plain_loop_keeps(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = count_taken(monkeypatch)
    settings = _settings(bootstrap, tmp_path)
    service = Service(settings)
    shards = [Process(settings, role="shard", member=name) for name in ("first", "second")]
    for each in (service, *shards):
        each.start()
    posts, posted = texts(_POSTS * _MOST_ROUNDS, seed=5), 0
    while taken[0] < _ENOUGH and posted < len(posts):
        service.post(*posts[posted : posted + _POSTS])
        posted += _POSTS
        wait_for(lambda all_posts=posted: service.count("out", "dup") == all_posts, service)  # type: ignore[misc]
        if shards[1:] and taken[0] > _ENOUGH // 2:
            # The other one takes its segments over.
            end(shards.pop())
    kept = set(origins(service.read("out")))
    shown = status_of(settings, service.broker, SystemClock()).shards
    assert shown is not None
    assert (shown.members, shown.others, shown.has_topic) == (["first-shard"], {}, True)
    for each in shards:
        end(each)
    service.end()
    assert taken[0] >= _ENOUGH, "no shard answered in time"
    scheme = judging_scheme_of(settings)
    verdicts = BatchSieve(sieve_config(settings, scheme.scheme_id)).judge(
        batch_of(*scheme.read(posts[:posted]))
    )
    assert kept == {row for row in range(posted) if verdicts.kinds[row] == Kind.UNIQUE}


def test_a_topic_of_the_answers_that_is_deleted_under_load_ends_nobody_and_is_used_again(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken = count_taken(monkeypatch)
    settings = _settings(bootstrap, tmp_path)
    answers = Names(settings.app).answers
    service = Service(settings)
    shard = Process(settings, role="shard", member="first")
    for each in (service, shard):
        each.start()
    posts = texts(_POSTS * _MOST_ROUNDS, seed=5)
    posted = 0

    def comes_out() -> None:
        nonlocal posted
        service.post(*posts[posted : posted + _POSTS])
        posted += _POSTS
        assert posted < len(posts)
        wait_for(lambda: service.count("out", "dup") == posted, service)
        assert shard.error is None

    while not taken[0]:
        comes_out()
    delete_topics(bootstrap, answers)
    comes_out()
    for role in ("index", "shard"):
        wait_for(
            lambda role=role: any(  # type: ignore[misc]
                line.startswith(f"{role}: ") and f"{answers}: does not exist" in line
                for line in caplog.messages
            ),
            service,
        )
    comes_out()
    assert create(settings, service.broker.admin()) == [answers]
    before = taken[0]
    while taken[0] == before:
        comes_out()
    end(shard)
    service.end()
    assert service.error is None
