"""The status pages read texts of leaders out of the input, through each client."""

from __future__ import annotations

import numpy as np
import orjson

from tests.broker.worlds import World, make_topic, until, write
from tests.memory.broker import ManualClock
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.status_pages.drops import Drops, text_reader
from twinsieve.pipeline.status_pages.leader_texts import LeaderTexts
from twinsieve.pipeline.wire.positions import pack_positions
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.stages.contract import Kind, Verdicts


def test_leaders_anywhere_in_the_input_are_read_and_deleted_ones_reported(world: World) -> None:
    topic = make_topic(world.broker(), 3)
    for number in range(3):
        write(
            world.broker(),
            Partition(topic, number),
            [orjson.dumps({"text": f"{number}/{offset}"}) for offset in range(50)],
        )
    world.broker().admin().delete_records({Partition(topic, 1): 20})
    clock, read = ManualClock(), text_reader(MessageReader(Settings()))
    drops = Drops(clock, "value", text_reader(MessageReader(Settings())))
    leaders = [(0, 49), (1, 19), (2, 0), (1, 20), (0, 7), (2, 49), (0, 49), (2, 50)]
    for number, offset in leaders:
        verdicts = Verdicts.blank(1, fill={"kinds": Kind.EXACT})
        verdicts.leaders[:] = pack_positions(0, number, np.array([offset]))
        records = Records(Partition(topic, 0), [99], [0], [None], [b'{"text": "x"}'], [()])
        drops.take(records, Ruling(0, 1, Result.JUDGED, 0, 1, verdicts=verdicts, topics={0: topic}))
    texts = LeaderTexts(drops, world.broker, "value", read, clock)
    try:
        texts.ask()
        until(lambda: not drops.without_leader())
    finally:
        texts.close()
    shown = [drop.why_leader or drop.leader_text for drop in reversed(drops.newer(0))]
    assert shown == [
        *("0/49", "not in the topic any more: taken by retention", "2/0", "1/20", "0/7", "2/49", "0/49"),
        "not in the topic any more",
    ]
