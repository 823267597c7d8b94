"""`twinsieve why` and `audit` of a topic on a real broker."""

from __future__ import annotations

import time

import pytest

from tests.broker.services import POSTS, Service, wait_for
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.why import copies, log_search
from twinsieve.pipeline.why.duplicates_topic import TopicDrops
from twinsieve.pipeline.why.verdict import Account, Outcome, verdict_of


def test_what_became_of_messages_is_told(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    at = Partition(service.settings.input.topics[0], 0)

    def told(offset: int) -> Account:
        return verdict_of(service.settings, service.broker, SystemClock(), InputPosition(at, offset))

    # Timestamps of producers may be wrong by any time.
    stamps = [int(time.time() * 1000) + hours * 3_600_000 for hours in (0, -400, 1)]
    for text, stamp in zip(POSTS, stamps, strict=False):
        service.post(text, timestamp_ms=stamp)
    service.start()
    wait_for(lambda: service.count("out") == 3, service)
    near = POSTS[1].replace("分钟", "分钟了")
    service.post(POSTS[0], near)
    service.produce((b"k", b"no JSON", []))
    wait_for(lambda: service.count("dup") == 2 and service.count("dead") == 1, service)
    wait_for(lambda: told(5).came_out, service)
    for offset, outcome in enumerate(["kept"] * 3 + ["dropped"] * 2 + ["unreadable"]):
        assert told(offset).outcome == outcome, offset
    drops = [told(offset).drop for offset in (3, 4)]
    assert [str(drop.leader) for drop in drops if drop is not None] == [f"{at}@0", f"{at}@1"]
    assert [drop.message.text for drop in drops if drop is not None] == [POSTS[0], near]
    assert [drop.leader.text for drop in drops if drop is not None and drop.leader] == [POSTS[0], POSTS[1]]
    assert told(6).outcome is Outcome.UNKNOWN
    accounts = [told(offset) for offset in range(6)]
    for module, name in ((log_search, "_NEAR"), (log_search, "_HINTED"), (copies, "_NEAR")):
        # So short a log is read through; with these it is searched by halves.
        monkeypatch.setattr(module, name, 1)
    for offset, account in enumerate(accounts):
        halved = told(offset)
        assert (halved.outcome, halved.drop, halved.came_out) == (account.outcome, account.drop, True), offset
    drops = TopicDrops(service.settings, service.broker, SystemClock())
    for _ in range(2):
        assert [(drop.stage, drop.message.text) for drop in drops.read()] == [
            ("exact", POSTS[0]),
            ("near", near),
        ]
    led = drops.told(list(drops.read()))
    assert [drop.leader.text for drop in led if drop.leader is not None] == [POSTS[0], POSTS[1]]
    assert (drops.foreign, drops.left_out) == (0, 0)
    drops.close()
    service.broker.admin().delete_records({at: 6})
    gone = told(4)
    assert gone.drop is not None
    assert gone.drop.leader is not None
    assert (gone.drop.message.text, gone.drop.leader.text) == (near, POSTS[1])
    service.stop()
    service.post(POSTS[4])
    wait_for(lambda: "nobody judges" in " ".join(told(6).lines), service)
    assert told(6).outcome is Outcome.WAITS
