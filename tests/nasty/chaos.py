"""A deployment under everything that may go wrong at once; `run` is one of them, judged from the raw topics."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from tests.driver import (
    DEAD,
    DECISIONS,
    DUPLICATES,
    GROUP,
    LOG,
    OUTPUT,
    SEEDED,
    VERDICTS,
    Process,
)
from tests.memory.faults import at_once, never_fails
from tests.memory.log import Outcome, Transaction
from tests.model.chaos import ACTIONS, WINDOW, Actions, Chaos
from tests.model.checker import (
    check_all_judged,
    check_complete,
    check_no_text,
    check_output,
    check_seeded,
    rebuild,
)
from tests.nasty.kinds import Kind
from tests.nasty.seeding import Seeding
from tests.twins import AtOnce, HashSieve, Later
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import Messages, Partition

_LATENCIES_S = (0.0, 0.0, 0.0, 0.0, 0.05, 0.3, 2.0, 8.0)
_FROZEN_S = (7.0, 9.0, 15.0)
_ROUNDS_AFTER_LOSS = 600
_ROUNDS_OF_A_SEED = 600


@dataclass(frozen=True)
class Found:
    """What a run that broke no promise was like.

    kinds: what it was made of; stops: processes that refused to go on, in their words
    copies: messages that came out although they equal one before them, whose record retention had taken
    """

    seed: int
    kinds: frozenset[Kind]
    messages: int
    stops: tuple[str, ...]
    copies: tuple[str, ...]


class NastyChaos(Chaos):
    """One hostile run. Each seed takes a part of the kinds that it is given."""

    def __init__(self, seed: int, folder: Path, kinds: Collection[Kind]) -> None:
        chosen = random.Random(seed + 1_000_003)
        self.kinds = frozenset(kind for kind in sorted(kinds) if chosen.random() < 0.6)
        self.stalled = False
        self.cut_tail = False
        self.seeds: list[Seeding] = []
        self.unborn = 0
        super().__init__(seed, folder, moves=Kind.MOVES in self.kinds)
        if Kind.LATE in self.kinds:
            self.world.cluster.faults.append_latency_s = lambda: self.random.choice(_LATENCIES_S)
            self.world.cluster.faults.append_failure = self._append_failure

    def _append_failure(self, waiting: int) -> int | None:
        return self.random.randint(0, waiting) if self.random.random() < 0.02 else None

    def begin(self) -> None:
        """An app that is seeded goes live after some more actions, or at once."""
        if Kind.SEED not in self.kinds:
            super().begin()
            return
        self.world.cluster.create(NewTopic(SEEDED, self.random.randint(1, 3)))
        for _ in range(self.random.randint(2, 10)):
            self.produce_seeded()
        self.unborn = self.random.choice([0, 10, 30, ACTIONS + 1])
        if not self.unborn:
            super().begin()

    def act(self) -> None:
        super().act()
        if self.unborn:
            self.unborn -= 1
            if not self.unborn:
                super().begin()

    def revive(self) -> None:
        if self.unborn:
            self.start_seed()
        else:
            super().revive()

    def double(self) -> None:
        if self.unborn:
            self.start_seed()
        else:
            super().double()

    def start_seed(self) -> Seeding:
        """An operator enters the command, whether or not the app is live, or another one seeds."""
        process = Seeding(
            self.world,
            self.random.choice(["s", "t"]),
            static=self.random.random() < 0.7,
            snapshots=self.kept,
            sieve=lambda: HashSieve(WINDOW),
        )
        self.world.processes.append(process)
        self.seeds.append(process)
        process.hook = self.stalling_hook(process)
        return process

    def produce_seeded(self) -> None:
        """As an app with transactions wrote its output, of which some were aborted."""
        number = self.random.randrange(len(self.world.cluster.topics[SEEDED].logs))
        transaction = Transaction(self.world.clock.monotonic_s())
        messages = Messages()
        for _ in range(self.random.randint(1, 12)):
            messages.add(b"k", self.post(), (("h", b"1"),), self.world.clock.now_ms())
        self.world.cluster.write(Partition(SEEDED, number), messages, transaction)
        transaction.end(self.random.choice([Outcome.COMMITTED, Outcome.COMMITTED, Outcome.ABORTED]))

    def start(self, slot: str) -> Process:
        draw = self.random.random
        caseless = Kind.SETTINGS in self.kinds and draw() < 0.4
        quick = Kind.QUICK_SNAPSHOTS in self.kinds and draw() < 0.5
        process = self.world.start(
            slot,
            static=draw() < 0.7,
            snapshots=self.kept,
            background=AtOnce if quick else Later,
            sieve=lambda: HashSieve(WINDOW, caseless=caseless),
        )
        process.hook = self.stalling_hook(process)
        return process

    def stalling_hook(self, process: Process) -> Callable[[str], None]:
        """As `random_hook`, and now and then the process stands still in a call."""
        first = self.random_hook()
        left = self.random.randint(1, 500)
        stalls = self.kinds & {Kind.STALLS, Kind.FROZEN}

        def hook(step: str) -> None:
            nonlocal left
            first(step)
            left -= 1
            if left <= 0 and stalls and not self.stalled:
                left = self.random.randint(30, 600)
                self.stalled = True
                try:
                    self.stall(process, self.random.choice(sorted(stalls)))
                finally:
                    self.stalled = False

        return hook

    def stall(self, process: Process, kind: Kind) -> None:
        """The others go on while this one stands still."""
        if kind is Kind.FROZEN:
            self.world.clock.sleep(self.random.choice(_FROZEN_S))
        for _ in range(self.random.randint(3, 40)):
            if self.random.random() < 0.15:
                self.produce()
            others = [each for each in self.world.processes if each is not process]
            if others:
                self.random.choice(others).step(self.random.choice([0.0, 0.1]))

    def actions(self) -> Actions:
        # With the moves, but a kind of its own here.
        actions = [each for each in super().actions() if each[1] != self.trim_input]
        if Kind.INPUT_TRIMMED in self.kinds:
            actions.append((1, self.trim_input))
        if Kind.ANSWERS_TRIMMED in self.kinds:
            actions.append((2, self.trim_answers))
        if Kind.TRANSACTIONS in self.kinds:
            actions.append((5, self.produce_in_transaction))
        if Kind.LEADERLESS in self.kinds:
            actions += [(4, self.lose_leader), (4, self.find_leaders)]
        if Kind.RETENTION in self.kinds:
            actions.append((3, self.trim_record))
        if Kind.TRUNCATION in self.kinds and not self.cut_tail:
            actions.append((4, self.truncate))
        if Kind.SEED in self.kinds:
            actions += [(3 if self.unborn else 1, self.start_seed), (1, self.produce_seeded)]
        return actions

    def produce(self) -> None:
        super().produce()
        if Kind.SETTINGS in self.kinds and self.random.random() < 0.3:
            self.world.produce("in", self.input().number, [self.post("M")])

    def input(self) -> Partition:
        """One of the input's partitions."""
        return Partition("in", self.random.randrange(len(self.world.cluster.topics["in"].logs)))

    def produce_in_transaction(self) -> None:
        transaction = Transaction(self.world.clock.monotonic_s())
        messages = Messages()
        for _ in range(self.random.randint(1, 4)):
            messages.add(b"k", self.post(), (("h", b"1"),), self.world.clock.now_ms())
        self.world.cluster.write(self.input(), messages, transaction)
        transaction.end(self.random.choice([Outcome.COMMITTED, Outcome.ABORTED]))

    def kill(self) -> None:
        if self.alive():
            self.random.choice(self.alive()).kill(lambda waiting: self.random.randint(0, waiting))

    def trim_answers(self) -> None:
        for log in self.world.cluster.topics[VERDICTS].logs:
            log.trim(self.random.randint(log.beginning, log.end))

    def lose_leader(self) -> None:
        topic = self.random.choice(["in", OUTPUT, DUPLICATES, DEAD, VERDICTS, LOG.topic, DECISIONS.topic])
        number = self.random.randrange(len(self.world.cluster.topics[topic].logs))
        self.world.cluster.faults.leaderless.add(Partition(topic, number))

    def find_leaders(self) -> None:
        for partition in self.world.cluster.faults.leaderless:
            self.world.cluster.log(partition).elect()
        self.world.cluster.faults.leaderless.clear()

    def trim_record(self) -> None:
        log, decisions = self.world.cluster.log(LOG), self.world.cluster.log(DECISIONS)
        which = self.random.choice(["log", "decisions", "both"])
        share = self.random.random()
        if which != "decisions":
            self.world.trim_log(log.beginning + int(share * (log.end - log.beginning)))
        if which != "log":
            self.world.trim_decisions(
                decisions.beginning + int(share * (decisions.end - decisions.beginning))
            )

    def truncate(self) -> None:
        """The power fails, and a log comes back without its tail."""
        self.all_down()
        at = self.random.choice([LOG, DECISIONS])
        log = self.world.cluster.log(at)
        end = max(log.beginning, log.end - self.random.randint(1, 8))
        self.cut_tail = self.world.truncate(at, end)
        self.revive()

    def finish(self) -> None:
        """The dust settles."""
        faults = self.world.cluster.faults
        faults.append_latency_s, faults.append_failure = at_once, never_fails
        self.find_leaders()
        if not self.cut_tail:
            if self.unborn:
                self.finish_seed()
            super().finish()
            return
        # What was on record is lost: to stop is right, and so is to go on where nothing is guessed.
        for process in self.world.processes:
            process.hook = lambda _: None
            process.stop_s = 0.0
        self.run_until_quiet()
        if self.moved and not self.world.stops:
            self.move_back()
            self.run_until_quiet()

    def run_until_quiet(self) -> None:
        """Or until a process refuses to go on."""
        for _ in range(_ROUNDS_AFTER_LOSS):
            if self.world.quiet() or self.world.stops:
                return
            self.tend()
            self.world.run(1)
        raise AssertionError(f"neither stopped nor done: {self.world.describe()}")

    def finish_seed(self) -> None:
        """Nobody disturbs a seed any more: it comes to its end, unless the app has offsets already."""
        self.world.clock.sleep(20.0)
        for process in self.world.processes:
            process.hook, process.stop_s = no_hook, 0.0
        for _ in range(_ROUNDS_OF_A_SEED):
            if not any(process.running for process in self.seeds):
                last = self.start_seed()
                last.hook = no_hook
                if last.refused:
                    break
            self.world.run(1)
            if any(process.finished for process in self.seeds[-1:]):
                break
        else:
            raise AssertionError(f"the seed is stuck: {self.world.describe()}")
        live = bool(self.world.cluster.group(GROUP).offsets)
        assert live or self.seeds[-1].finished, self.seeds[-1].refused
        self.unborn = 0


def run(seed: int, folder: Path, kinds: Collection[Kind]) -> Found:
    """One hostile run, which broke no promise.

    raises: AssertionError for a message that was lost, came out once too often or is stuck; for a verdict that the
        raw topics contradict; for a stop while nothing that was on record was lost
    """
    chaos = NastyChaos(seed, folder, kinds)
    for _ in range(ACTIONS):
        chaos.act()
    chaos.finish()
    world = chaos.world
    assert chaos.cut_tail or not world.stops, f"stopped for nothing: {world.stops}"
    truth = rebuild(world, window=WINDOW, judge=Kind.SETTINGS not in chaos.kinds)
    fates = check_output(world, truth, in_order=not chaos.moved)
    if not world.stops:
        check_complete(world, truth, fates)
        check_all_judged(world, truth)
        check_no_text(world, truth, fates)
        for each in chaos.seeds:
            if each.finished:
                check_seeded(world, truth, each.ends)
    copies = [f"{truth.names[its]}[{number}]@{at}" for its, number, at in truth.copies]
    return Found(seed, chaos.kinds, len(truth.kinds), tuple(world.stops), tuple(copies))
