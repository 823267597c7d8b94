"""Processes of one app with other settings: each says so once, and names the settings that differ."""

from __future__ import annotations

from dataclasses import replace

from tests.configs import builder
from tests.driver import APP, INDEX, WORKER, World, texts
from tests.memory.broker import MemoryBroker
from twinsieve.pipeline.index.ends import JudgedUnder
from twinsieve.pipeline.service.judging_settings import JudgingSettings, judging_settings
from twinsieve.pipeline.settings.common import common_settings, differing_keys
from twinsieve.pipeline.settings.model import InputSettings, Settings

TEXT = Settings(input=InputSettings(text_field="text"))
TITLE = Settings(input=InputSettings(text_field="title"))


def test_the_index_says_once_which_workers_have_other_settings_until_they_have_its_own() -> None:
    world = World(partitions=2)
    under = JudgedUnder(settings=common_settings(TEXT))
    judge = world.start("a", index_config=replace(INDEX, under=under), roles="index")
    other = world.start("b", worker_config=replace(WORKER, settings=common_settings(TITLE)), roles="worker")
    for number in range(2):
        world.produce("in", number, texts(10 * number, 10 * number + 9))
    world.settle()
    assert judge.index is not None
    differing = judge.index.other_settings
    assert sorted(part.number for part in differing.of) == [0, 1]
    assert differing.remark.endswith("input.text_field")
    said = [notice for notice in judge.index.notices if "other settings" in notice]
    assert len(said) == 1, "once, not for each partition"
    assert "input.text_field" in said[0]
    other.kill()
    world.start("b", worker_config=replace(WORKER, settings=common_settings(TEXT)), roles="worker")
    for number in range(2):
        world.produce("in", number, texts(40 + 10 * number, 50 + 10 * number))
    world.settle()
    assert differing.remark == ""


def test_a_worker_reads_on_record_that_its_app_is_judged_under_other_settings() -> None:
    world = World()
    under = JudgedUnder(settings=common_settings(TEXT))
    world.start("a", index_config=replace(INDEX, under=under))
    world.produce("in", 0, texts(0, 9))
    world.settle()
    made = builder(TITLE.model_copy(update={"app": APP}))
    own = replace(made, clock=world.clock, connect=lambda _: MemoryBroker(world.cluster))
    settings = JudgingSettings(own, world.clock)

    def looked(*, judges: bool) -> str:
        for _ in range(2):
            world.clock.sleep(100.0)
            settings.look(judges=judges)
            own.queries.submit(int).result()  # the query before it is done
        settings.look(judges=judges)
        return settings.remark

    assert looked(judges=False).endswith("input.text_field")
    assert looked(judges=True) == "", "the record is its own, or soon will be"
    assert differing_keys(judging_settings(APP, MemoryBroker(world.cluster)), common_settings(TEXT)) == []
    redrive = JudgingSettings(replace(own, job="redrive"), world.clock)
    world.clock.sleep(100.0)
    redrive.look(judges=False)
    own.queries.submit(int).result()
    redrive.look(judges=False)
    assert redrive.remark == "", "it reads another topic than its app"
