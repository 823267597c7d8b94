"""`twinsieve reset`, `seed` and `redrive` on a real broker."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.broker.services import POSTS, Service, origins, wait_for
from tests.broker.worlds import fresh, until_done
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.mark import read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Partition
from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
from twinsieve.pipeline.operate.reset import Move, apply, plan
from twinsieve.pipeline.operate.reset_targets import read_targets
from twinsieve.pipeline.service.redrive import RedriveResult, run_redrive
from twinsieve.pipeline.service.seed import run_seed
from twinsieve.stages.contract import Kind


def moved(service: Service, target: str) -> list[Move]:
    """Plan and apply once the group has forgotten the stopped process."""
    moves = plan(service.settings, service.broker, read_targets([target]))
    until_done(lambda: apply(service.settings, service.broker, moves))
    return moves


def test_offsets_move_only_while_nobody_runs_and_nothing_comes_out_twice(service: Service) -> None:
    service.post(*POSTS[:3])
    service.start()
    wait_for(lambda: service.count("out") == 3, service)
    moves = plan(service.settings, service.broker, read_targets(["earliest"]))
    with pytest.raises(BrokerError, match="stop every `twinsieve run`"):
        apply(service.settings, service.broker, moves)
    service.stop()
    (move,) = moved(service, "earliest")
    assert "3 -> 0, goes back 3" in str(move)
    at = Partition(service.settings.input.topics[0], 0)
    held = service.broker.admin().group_offsets(Names(service.settings.app).workers)[at]
    mark = read_mark(held.metadata)
    assert held.offset == 0
    assert mark is not None
    assert mark.end == 3
    service.post(POSTS[3])
    service.start()
    wait_for(lambda: service.count("out") == 4, service)
    assert sorted(origins(service.read("out"))) == [0, 1, 2, 3]
    assert service.count("dup") == 0


def test_offsets_are_found_by_time_and_by_number(service: Service) -> None:
    service.post(*POSTS[:4])
    at = Partition(service.settings.input.topics[0], 0)
    for target, offset in (("2", 2), ("latest", 4), ("2001-01-01", 0), ("2100-01-01", 4)):
        moved(service, target)
        held = service.broker.admin().group_offsets(Names(service.settings.app).workers)
        assert held[at].offset == offset, target


def test_a_seed_fills_the_windows_and_emits_nothing(service: Service) -> None:
    settings = service.settings
    old = fresh("old-output")
    service.broker.admin().create_topic(NewTopic(old, 1))
    service.post(*POSTS[:3], topic=old)
    seeded = run_seed(settings, old, connect_by_settings, member="one")
    assert (seeded.finished, seeded.kinds) == (True, {Kind.UNIQUE: 3})
    again = run_seed(settings, old, connect_by_settings, member="one")
    assert (again.finished, again.kept) == (True, 0)
    assert service.count("out", "dup", "dead") == 0
    service.post(*POSTS[:4])
    service.start()
    wait_for(lambda: service.count("out", "dup") == 4, service)
    assert list(origins(service.read("out"))) == [3]
    leaders = [dict(headers)["twinsieve-leader"] for headers in service.read("dup").headers]
    assert leaders == [b"%s[0]@%d" % (old.encode(), number) for number in range(3)]
    with pytest.raises(BrokerError, match="already started by `run`"):
        run_seed(settings, old, connect_by_settings, member="one")


def test_dead_letters_come_out_once_beside_the_app_and_before_it(service: Service) -> None:
    """The texts are no JSON. With the right encoding they are judged again: by an index of the command's own, then
    beside a process of `run`, into which a copy of what was redriven comes."""
    wrong = service.settings
    right = wrong.model_copy(update={"input": wrong.input.model_copy(update={"encoding": "text"})})
    trace: tuple[str, bytes] = ("trace", b"7")

    def produce(*texts: str) -> None:
        service.produce(*((b"k", text.encode(), [trace]) for text in texts))

    def redrive() -> RedriveResult:
        return run_redrive(right, connect_by_settings, member="two")

    produce(*POSTS[:3], POSTS[0])
    service.start()
    wait_for(lambda: service.count("dead") == 4, service)
    service.stop()
    alone = redrive()
    assert (alone.finished, alone.kinds) == (True, {Kind.UNIQUE: 3, Kind.EXACT: 1})
    service.start()
    produce(POSTS[3])
    wait_for(lambda: service.count("dead") == 5, service)
    service.stop()
    service.settings = right
    service.start()
    beside = redrive()
    assert (beside.finished, beside.kinds - Counter({Kind.REPLAYED: 4})) == (True, {Kind.UNIQUE: 1})
    produce(POSTS[3], POSTS[4])
    wait_for(lambda: service.count("out", "dup") == 7, service)
    assert list(origins(service.read("out"))) == [0, 1, 2, 4, 6]
    assert list(origins(service.read("dup"))) == [3, 5]
    assert all(key == b"k" for key in service.read("out").keys)
    assert all(trace in headers for headers in service.read("out").headers)
    dead = dict(enumerate(service.read("dead").offsets))
    leaders = [dict(headers)["twinsieve-leader"] for headers in service.read("dup").headers]
    topic = (wrong.output.dead_letter or "").encode()
    assert leaders == [b"%s[0]@%d" % (topic, dead[row]) for row in (0, 4)]
    assert redrive().kinds - Counter({Kind.REPLAYED: 5}) == {}
