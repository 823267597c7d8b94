"""`twinsieve redrive` that dies, at every step and in any order of runs: each dead letter comes out once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crash.test_crash_at_every_step import Trap, crash
from tests.driver import DEAD, DUPLICATES, INDEX, OUTPUT, READER, Process, World, origin_of
from tests.examples import examples
from tests.memory.log import Entry
from tests.nasty.redriving import Redriving
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.index.config import IndexStep
from twinsieve.pipeline.index.ledger import GivenUp
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import InputSettings, Settings
from twinsieve.pipeline.worker.config import WorkerStep

pytestmark = pytest.mark.matrix

WRONG = MessageReader(Settings(input=InputSettings(text_field="txet")))
"""Reads none of the messages of `fill`; `READER` then takes each whole value for a text, if it is UTF-8."""
VALUES: dict[DeadLetterReason, Callable[[int], bytes]] = {
    DeadLetterReason.MISSING_FIELD: lambda number: b'{"text": "%d"}' % number,
    DeadLetterReason.INVALID_JSON: lambda number: b"text %d" % number,
    DeadLetterReason.NOT_UTF8: lambda number: b"\xff %d" % number,
}
REPAIRED = (DeadLetterReason.MISSING_FIELD, DeadLetterReason.INVALID_JSON)
STEPS = [*WorkerStep, *(step for step in IndexStep if step is not IndexStep.SNAPSHOT_WRITTEN)]


def number_of(entry: Entry) -> bytes | None:
    """What tells a message from all others, wherever it is."""
    return dict(entry.headers)["h"]


def entries(world: World, *topics: str) -> list[Entry]:
    return [entry for name in topics for log in world.cluster.topics[name].logs for _, entry in log.visible()]


class Sent(NamedTuple):
    """A message of the input: where it is, and why it became a dead letter if it did."""

    place: tuple[str, int, int]
    value: bytes
    time_ms: int
    reason: DeadLetterReason


class DeadLetters:
    """An app whose first messages all became dead letters, and whose settings were corrected then.

    sent: what was written to the input, by its number; the first `letters` of them are dead letters
    """

    def __init__(self, folder: Path | None = None, rows: int = 8) -> None:
        self.world = World(partitions=2, reader=WRONG)
        self.folder = folder
        self.sent: dict[bytes | None, Sent] = {}
        self._fill(rows)
        first = self.start()
        self.world.settle()
        first.terminate()
        self.world.clock.sleep(10.0)
        self.world.reader = READER
        self.letters = len(self.sent)
        assert len(entries(self.world, DEAD)) == self.letters
        assert not entries(self.world, OUTPUT, DUPLICATES)

    def _fill(self, rows: int) -> None:
        makers = [*VALUES.values()]
        for row in range(rows):
            for partition in range(2):
                self.world.clock.sleep(0.1)
                self.produce(partition, [makers[(row + partition) % 3](row // 4)])

    def produce(self, partition: int, values: list[bytes]) -> None:
        first = self.world.cluster.log(Partition("in", partition)).end
        self.world.produce("in", partition, values)
        for offset, entry in self.world.cluster.log(Partition("in", partition)).visible():
            if offset >= first:
                place, value = ("in", partition, offset), entry.value or b""
                self.sent[number_of(entry)] = Sent(place, value, entry.timestamp_ms, reason_of(value))

    def start(self) -> Process:
        """A process of `run`."""
        index = replace(INDEX, snapshot_every_s=0.0)
        snapshots = str(self.folder) if self.folder else None
        process = Process(self.world, "slot", index_config=index, snapshots=snapshots)
        self.world.processes.append(process)
        return process

    def redrive(self, slot: str = "redrive", **asked: object) -> Redriving:
        process = Redriving(self.world, slot, **asked)  # type: ignore[arg-type]
        self.world.processes.append(process)
        return process

    def finish(self, slot: str = "redrive", **asked: object) -> None:
        """Run the command until it is done; it is run again where it ends before."""
        redriving = self.redrive(slot, **asked)
        for _ in range(4_000):
            if redriving.finished:
                return
            assert not redriving.error, redriving.error
            if not redriving.running:
                redriving = self.redrive(slot, **asked)
            self.world.run(1)
        raise AssertionError(f"stuck: {self.world.describe()}")

    def check(
        self, redriven: Collection[DeadLetterReason] = (), since_ms: int = 0, *, calm: bool = True
    ) -> None:
        """Every message is where it belongs, by raw topics alone.

        redriven: reasons of which nothing may be left that is as young as `since_ms`
        calm: whether everything that came in is out, and every leader; a dead redrive leaves some behind
        """
        world = self.world
        assert not world.stops, world.stops
        kept = Counter(entry.value for entry in entries(world, OUTPUT))
        assert max(kept.values(), default=1) == 1, "two kept messages are equal"
        out = Counter(map(number_of, entries(world, OUTPUT, DUPLICATES)))
        assert max(out.values(), default=1) == 1, "a message came out twice"
        for entry in entries(world, OUTPUT, DUPLICATES, DEAD):
            sent = self.sent[number_of(entry)]
            assert origin_of(entry) == sent.place
            assert (entry.value, entry.key, entry.timestamp_ms) == (sent.value, b"k", sent.time_ms)
        for entry in entries(world, DUPLICATES):
            led_by = self._entry_at(dict(entry.headers)["twinsieve-leader"] or b"")
            assert led_by.value == entry.value
            assert not calm or out[number_of(led_by)] == 1, "a leader never came out"
        for number, sent in self.sent.items() if calm else list(self.sent.items())[: self.letters]:
            if sent.reason in redriven and sent.reason in REPAIRED and sent.time_ms >= since_ms:
                assert out[number] == 1, "a dead letter was lost"

    def _entry_at(self, position: bytes) -> Entry:
        name, _, rest = position.decode().partition("[")
        number, _, offset = rest.partition("]@")
        return dict(self.world.cluster.log(Partition(name, int(number))).visible())[int(offset)]

    def died_again(self) -> Counter[bytes | None]:
        """How often each message is a dead letter."""
        return Counter(map(number_of, entries(self.world, DEAD)))


def reason_of(value: bytes) -> DeadLetterReason:
    """What `WRONG` finds wrong with such a value."""
    if value.startswith(b"\xff"):
        return DeadLetterReason.NOT_UTF8
    return DeadLetterReason.MISSING_FIELD if value.startswith(b"{") else DeadLetterReason.INVALID_JSON


def redrive_that_dies(
    letters: DeadLetters, step: str, occurrence: int, *, beside: bool, **asked: object
) -> bool:
    """One run of the command that dies at that step, unless it is done before; whether it is done.

    beside: while messages come in
    """
    redriving = letters.redrive(hook=Trap(step, occurrence, crash), **asked)
    for turn in range(600):
        if not redriving.running:
            break
        if beside and turn % 10 == 0 and turn < 60:
            letters.produce(turn // 10 % 2, [b"text %d" % (turn // 20), b"new %d" % (turn // 20)])
        letters.world.run(1)
    assert not redriving.running, "stuck"
    return redriving.finished


@pytest.mark.parametrize("step", STEPS)
def test_a_redrive_that_dies_at_a_step_loses_nothing_and_doubles_nothing(step: str, tmp_path: Path) -> None:
    """Alone; and beside `run`, into which messages come in that are partly equal to dead letters."""
    for beside in (False, True):
        letters = DeadLetters(tmp_path / str(beside))
        if beside:
            letters.start()
            letters.world.run(5)
        redrive_that_dies(letters, step, 2 if beside else 1, beside=beside)
        letters.finish()
        if beside:
            letters.world.settle()
        letters.check(VALUES)


def test_a_second_redrive_judges_nothing_but_what_failed_again(tmp_path: Path) -> None:
    letters = DeadLetters(tmp_path)
    letters.finish()
    out, dead = len(entries(letters.world, OUTPUT, DUPLICATES)), letters.died_again()
    letters.finish()
    letters.check(VALUES)
    assert len(entries(letters.world, OUTPUT, DUPLICATES)) == out
    failed = [number for number, sent in letters.sent.items() if sent.reason not in REPAIRED]
    assert letters.died_again() - dead == Counter(failed), "once in each run"


def test_two_redrives_at_once_share_the_work_although_they_began_at_other_ends() -> None:
    letters = DeadLetters()
    first = letters.redrive("one")
    letters.world.run(3)
    letters.start()
    letters.produce(0, [b"\xff later %d" % number for number in range(3)])
    letters.world.run(10)
    second = letters.redrive("two")
    letters.world.run_until(lambda: first.finished and second.finished)
    letters.check(VALUES)


def test_what_dies_after_the_start_waits_for_the_next_run() -> None:
    letters = DeadLetters()
    letters.start()
    redriving = letters.redrive(reason=DeadLetterReason.NOT_UTF8, roles="worker")
    redriving.step()
    redriving.pause(20.0)
    letters.produce(0, [b"\xff later %d" % number for number in range(3)])
    letters.produce(1, [b"\xff later too"])
    letters.world.run(40)
    later = [*letters.sent][letters.letters :]
    assert [letters.died_again()[number] for number in later] == [1, 1, 1, 1]
    letters.world.run_until(lambda: redriving.finished)
    assert [letters.died_again()[number] for number in later] == [1, 1, 1, 1]
    letters.finish(reason=DeadLetterReason.NOT_UTF8)
    assert [letters.died_again()[number] for number in later] == [2, 2, 2, 2]


class Run(NamedTuple):
    """One run of the command, and where it dies."""

    reason: DeadLetterReason | None
    since: int | None
    step: str
    occurrence: int
    beside: bool


RUNS = st.builds(
    Run,
    st.sampled_from([None, *VALUES]),
    st.none() | st.integers(0, 15),
    st.sampled_from(["never", *STEPS]),
    st.integers(1, 4),
    st.booleans(),
)


@given(st.lists(RUNS, min_size=2, max_size=4))
@settings(max_examples=examples(12), deadline=None)
def test_runs_of_any_reasons_and_times_that_die_anywhere_find_all_and_double_nothing(runs: list[Run]) -> None:
    letters = DeadLetters()
    times_ms = sorted(sent.time_ms for sent in letters.sent.values())
    for run in runs:
        since_ms = None if run.since is None else times_ms[run.since]
        beside = letters.start() if run.beside else None
        is_done = redrive_that_dies(
            letters, run.step, run.occurrence, beside=run.beside, reason=run.reason, since_ms=since_ms
        )
        done = [] if not is_done else [run.reason] if run.reason else VALUES
        letters.check(done, since_ms or 0, calm=False)
        if beside is not None:
            letters.world.settle()
            beside.terminate()
            letters.world.clock.sleep(10.0)
    letters.finish()
    letters.check(VALUES)


_LONG_S = INDEX.unread_s + 6 * INDEX.inputs_s


def given_up(world: World) -> Counter[GivenUp]:
    return sum((each.index.given_up for each in world.processes if each.index is not None), Counter())


def pass_time(world: World, seconds: float) -> None:
    until_s = world.clock.monotonic_s() + seconds
    while world.clock.monotonic_s() < until_s:
        world.run(1)


def test_what_a_dead_redrive_left_behind_drops_no_copy_for_ever() -> None:
    """It was judged and never came out. After a while copies come out, and the dead letter is one of them then."""
    letters = DeadLetters()
    letters.start()
    letters.world.run(5)
    reason = DeadLetterReason.INVALID_JSON
    # The first transaction records where the redrive begins, the second one has messages.
    assert not redrive_that_dies(letters, WorkerStep.SENT, 2, beside=False, reason=reason)
    pass_time(letters.world, _LONG_S)
    letters.produce(0, [sent.value for sent in letters.sent.values() if sent.reason is reason])
    letters.world.settle()
    assert given_up(letters.world).keys() == {GivenUp.GONE}
    letters.check()
    letters.finish()
    letters.check(VALUES)


def test_a_redrive_that_waits_for_a_leader_is_not_given_up() -> None:
    letters = DeadLetters()
    letters.start()
    letters.world.run(5)
    outputs = {Partition(OUTPUT, number) for number in range(2)}
    letters.world.cluster.faults.leaderless |= outputs
    redriving = letters.redrive(reason=DeadLetterReason.INVALID_JSON)
    pass_time(letters.world, 2 * _LONG_S)
    letters.produce(0, [b"another"])
    letters.world.run(20)
    assert redriving.running
    assert not given_up(letters.world)
    letters.world.cluster.faults.leaderless -= outputs
    letters.finish()
    letters.check(VALUES)
