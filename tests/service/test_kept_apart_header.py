"""`output.kept_apart_header`: a kept message that is similar to another says what differs, also after a crash."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from tests.configs import emit_config
from tests.memory.received import listed
from tests.room_for import RoomFor
from tests.service.test_changed_settings import IN, base, deployment, posts, with_section
from twinsieve.pipeline.broker.ports import TransactionalProducer
from twinsieve.pipeline.broker.records import Records
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.headers import KEPT_APART
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.pipeline.worker.emit import Emission, Emitter, unsendable
from twinsieve.pipeline.worker.session import PendingBlock
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.pipeline.worker.verdict_headers import add_apart
from twinsieve.stages.contract import DETAIL_LENGTH, Verdicts
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.scheme import Scheme

STORY = "今天上午武汉发布会通报了最新的情况请大家注意防护"
TEXTS = [
    f"{STORY}新增确诊9例",
    f"{STORY}新增确诊11例",
    "this morning the council of the city said that the old bridge is safe",
    "this morning the council of the city said that the old bridge is unsafe",
    "本周六晚上八点整在中心广场举办露天音乐会欢迎大家前来",
    "本周日晚上八点整在中心广场举办露天音乐会欢迎大家前来",
    "一条和别的都不一样的消息没有任何人跟它相似",
]
SAID = [None, b"number 9/11", None, b"opposite safe/unsafe", None, "calendar 六/日".encode(), None]


def with_header(state: Path) -> Settings:
    return with_section(base(str(state)), "output", kept_apart_header=True)


@pytest.mark.parametrize("crash_at", [None, "index.committed", "worker.sent", "worker.committed"])
def test_a_message_says_what_keeps_it_apart(crash_at: str | None, scheme: Scheme, tmp_path: Path) -> None:
    settings = with_header(tmp_path)
    world = deployment(settings, scheme)
    world.produce(_with_others())
    if crash_at is not None:
        world.crash_at, world.left = crash_at, 2
        assert not world.run(settings, 200), "it was to crash"
    assert world.run(settings, 1_000)
    said = {}
    for entry, at in zip(world.entries("posts.unique"), world.origins("posts.unique"), strict=True):
        said[at] = dict(entry.headers).get(KEPT_APART)
    assert [said[at * 7] for at in range(len(TEXTS))] == SAID


def _with_others() -> Iterator[str]:
    """Each of the texts in front of six others, so that they lie in several blocks."""
    others = posts(5, 6 * len(TEXTS))
    for text in TEXTS:
        yield text
        for _ in range(6):
            yield next(others)


def test_without_the_setting_there_is_no_header(scheme: Scheme, tmp_path: Path) -> None:
    world = deployment(base(str(tmp_path)), scheme)
    world.produce(iter(TEXTS))
    assert world.run(base(str(tmp_path)), 1_000)
    assert len(world.entries("posts.unique")) == len(TEXTS)
    assert not any(KEPT_APART in dict(entry.headers) for entry in world.entries("posts.unique"))


@pytest.mark.parametrize("character", ["\n", "\x1b", "\u202e", "\ud800", "\U0010ffff", "字", "😀"])
def test_a_header_holds_no_controls_and_200_bytes_at_most(character: str) -> None:
    verdicts = Verdicts.blank(1, fill={"reasons": Rule.LONG_REPLACEMENT})
    verdicts.details = np.full((1, 2, DETAIL_LENGTH), ord(character), np.uint32)
    verdicts.detail_rows[0] = 0
    table = HeaderTable(1)
    add_apart(table, verdicts)
    [[(_, value)]] = table.headers().listed()
    assert len(value) <= 200
    text = value.decode()
    assert text.startswith("long replacement ")
    assert text.isprintable()


def test_a_message_that_has_no_room_for_the_header_comes_out_without_it() -> None:
    records = Records.of(IN, [0, 1], [0, 0], [None, None], [b"x" * 790, b"x"], [(), ()], [0, 0])
    verdicts = Verdicts.blank(2, fill={"reasons": Rule.NUMBER})
    ruling = Ruling(7, 1, Result.JUDGED, 0, 2, np.zeros(2, np.uint8), verdicts)
    config = replace(emit_config("out"), origin_header=False, kept_apart_header=True)
    transactor = cast("TransactionalProducer", RoomFor(800))
    assert not unsendable(config, records, transactor)
    emission = Emission()
    Emitter(config, {}, transactor, Suspects()).add(emission, PendingBlock(0, 2, records, {}, 5, {}), ruling)
    [parts] = emission.outgoing.values()
    assert listed(parts).headers == [(), ((KEPT_APART, b"number"),)]
