"""A deployment under everything that may go wrong at once; `run` is one of them, judged from the raw topics."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tests.driver import (
    DEAD,
    DECISIONS,
    DUPLICATES,
    GROUP,
    JSON_READER,
    LOG,
    OUTPUT,
    SEEDED,
    VERDICTS,
    WORKER,
    Process,
    World,
)
from tests.memory.faults import at_once, never_fails
from tests.memory.log import Outcome, Transaction
from tests.model.chaos import ACTIONS, Actions, Chaos
from tests.model.checker import check_output, check_seeded, rebuild
from tests.model.sharding import ANSWERS, without_threads
from tests.nasty.kinds import Kind
from tests.nasty.mishaps import refusing_hook, slow_hook, slow_sieve
from tests.nasty.refusing import accept, produce_refused, refuse
from tests.nasty.registry import RegistryWorld, unhurried
from tests.nasty.restoring import put_back
from tests.nasty.seeding import Seeding
from tests.nasty.strangers import Stranger, use_tool
from tests.nasty.unreadable import UnreadableInput
from tests.twins import AtOnce, HashSieve, Later
from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, NewTopic
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.wire.block import BlockFlag, outline_of
from twinsieve.pipeline.wire.judged_by import rules_in

_LATENCIES_S = (0.0, 0.0, 0.0, 0.0, 0.05, 0.3, 2.0, 8.0)
_FROZEN_S = (7.0, 9.0, 15.0)
_JUDGING_S = (0.0, 0.02, 0.1, 0.3)
"""A row; a step that judges what it gets at once may outlast a session then."""
_AHEAD_S = (-7_200.0, -600.0, -70.0, 0.0, 0.0, 70.0, 600.0, 7_200.0)
_ROUNDS_OF_A_SEED = 600
_ROUNDS_TO_NOTICE = 60
_OUTPUTS = (OUTPUT, DUPLICATES, DEAD)
_KEYS = (None, b"k", b"a", b"b", b"key-1", b"a longer key", b"zz")
_LIMITS = (60, 120, DEFAULT_MESSAGE_BYTES)
_PADS = (50, 150, 1_000)


@dataclass(frozen=True)
class Found:
    """What a run that broke no promise was like.

    kinds: what it was made of; stops: processes that refused to go on, in their words
    copies: messages that came out although they equal one before them, whose record retention had taken
    excused: what the promises leave open, by cause
    answered: rows that were judged with answers of shards, once for each segment
    """

    seed: int
    kinds: frozenset[Kind]
    messages: int
    stops: tuple[str, ...]
    copies: tuple[str, ...]
    excused: Counter[str]
    answered: int


class NastyChaos(Chaos):
    """One hostile run. Each seed takes a part of the kinds that it is given."""

    def __init__(self, seed: int, folder: Path, kinds: Collection[Kind]) -> None:
        chosen = random.Random(seed + 1_000_003)
        self.kinds = frozenset(kind for kind in sorted(kinds) if chosen.random() < 0.6)
        self.seed = seed
        self.stalled = False
        self.cut_tail = False
        self.seeds: list[Seeding] = []
        self.unborn = 0
        self.is_out = False
        self.strangers: list[Stranger] = []
        super().__init__(seed, folder, moves=Kind.MOVES in self.kinds, shards=Kind.SHARDS in self.kinds)
        if Kind.LATE in self.kinds:
            self.world.cluster.faults.append_latency_s = lambda: self.random.choice(_LATENCIES_S)
            self.world.cluster.faults.append_failure = self._append_failure
            self.world.cluster.faults.fetches_late = True

    def make_world(self) -> World:
        """Its topics."""
        partitions, other = self.random.randint(1, 4), dict[str, int]()
        topics = ("in", "more") if Kind.TOPICS in self.kinds else ("in",)
        if Kind.PLACES in self.kinds:
            other = {name: self.random.randint(1, 6) for name in (*_OUTPUTS, "more")}
        made = RegistryWorld if Kind.REGISTRY in self.kinds else World
        world = made(partitions, topics, other, JSON_READER)
        self.unreadable = UnreadableInput(world, self.random)
        return world

    def _append_failure(self, waiting: int) -> int | None:
        return self.random.randint(0, waiting) if self.random.random() < 0.02 else None

    def begin(self) -> None:
        """An app that is seeded goes live after some more actions, or at once."""
        if Kind.SEED not in self.kinds:
            self.go_live()
            return
        self.world.cluster.create(NewTopic(SEEDED, self.random.randint(1, 3)))
        for _ in range(self.random.randint(2, 10)):
            self.produce_seeded()
        self.unborn = self.random.choice([0, 10, 30, ACTIONS + 1])
        if not self.unborn:
            self.go_live()

    def go_live(self) -> None:
        """Nothing stalls a process before shards answer."""
        self.stalled = True
        super().begin()
        self.stalled = False

    def act(self) -> None:
        super().act()
        self.strangers = [each for each in self.strangers if each.act()]
        if self.unborn:
            self.unborn -= 1
            if not self.unborn:
                self.go_live()

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
            snapshots=self.kept,
            sieve=lambda: HashSieve(self.window),
        )
        if self.sharding is not None:
            self.sharding.equip(process)
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
            messages.add(b"k", self.post(), (self.world.next_header(),), self.world.clock.now_ms())
        self.world.cluster.write(Partition(SEEDED, number), messages, transaction)
        transaction.end(self.random.choice([Outcome.COMMITTED, Outcome.COMMITTED, Outcome.ABORTED]))

    def start(self, slot: str) -> Process:
        draw = self.random.random
        caseless = Kind.SETTINGS in self.kinds and draw() < 0.4
        quick = Kind.QUICK_SNAPSHOTS in self.kinds and draw() < 0.5
        row_s = self.random.choice(_JUDGING_S) if Kind.SLOW_JUDGING in self.kinds else 0.0
        sieve = slow_sieve(self.world.clock, row_s) if row_s else HashSieve
        process = self.world.start(
            slot,
            snapshots=self.kept,
            background=AtOnce if quick else Later,
            sieve=lambda: sieve(self.window, caseless=caseless),
            ahead_s=self.random.choice(_AHEAD_S) if Kind.CLOCKS in self.kinds else 0.0,
            worker_config=replace(
                WORKER,
                topics=tuple(self.world.topic_ids),
                on_unreadable=self.unreadable.on_unreadable,
            ),
        )
        if self.sharding is not None:
            self.sharding.equip(process, other=caseless, row_s=row_s)
        process.leaves = Kind.DEFECTS in self.kinds and draw() < 0.7
        process.hook = self.stalling_hook(process)
        return process

    def stalling_hook(self, process: Process) -> Callable[[str], None]:
        """As `random_hook`, and now and then the process stands still in a call."""
        hooks = [self.random_hook()]
        if Kind.SLOW_OUTPUT in self.kinds:
            hooks.append(slow_hook(self.world.clock, self.random))
        if Kind.REFUSED in self.kinds:
            hooks.append(refusing_hook(self.random))
        left = self.random.randint(1, 500)
        stalls = self.kinds & {Kind.STALLS, Kind.FROZEN}

        def hook(step: str) -> None:
            nonlocal left
            for each in hooks:
                each(step)
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
        if Kind.TOPICS in self.kinds:
            actions += [(1, self.make_input_again), (1, self.make_output_again), (1, self.take_out_or_in)]
        if Kind.RESTORED in self.kinds:
            actions.append((2, lambda: put_back(self)))
        if Kind.CLOCKS in self.kinds:
            actions.append((4, self.jump))
        if Kind.COMPACTION in self.kinds:
            actions.append((4, self.compact))
        if Kind.STRANGERS in self.kinds and not self.unborn:
            actions += [(3, self.let_in_stranger), (2, self.use_tool)]
        if Kind.REFUSING in self.kinds:
            actions += [
                (2, lambda: refuse(self.world, self.random)),
                (1, lambda: accept(self.world)),
                (4, lambda: produce_refused(self.world, self.random, self.texts())),
            ]
        if Kind.UNREADABLE in self.kinds:
            actions += [(3, lambda: self.unreadable.damage(self.input())), (3, self.unreadable.repair)]
        if isinstance(self.world, RegistryWorld):
            world = self.world
            actions.append((3, lambda: world.disturb(self.random)))
        if Kind.LIMITS in self.kinds:
            actions += [(2, self.set_limit), (4, self.produce_large)]
        return actions

    def produce(self) -> None:
        super().produce()
        if Kind.SETTINGS in self.kinds and self.random.random() < 0.3:
            self.write(self.input(), [self.post().replace(b"m", b"M")])

    def write(self, at: Partition, values: list[bytes | None]) -> None:
        """A producer writes these, each with a key of its own."""
        if Kind.PLACES not in self.kinds:
            super().write(at, values)
            return
        for value in values:
            key = self.random.choice(_KEYS)
            self.world.produce(at.topic, at.number, [value], b"k" if value is None and key is None else key)

    def grow(self) -> None:
        if Kind.PLACES not in self.kinds and Kind.TOPICS not in self.kinds:
            super().grow()
            return
        name = self.random.choice([*self.world.topic_ids, *_OUTPUTS])
        self.world.cluster.add_partitions(name, min(6, len(self.world.cluster.topics[name].logs) + 1))

    def make_input_again(self) -> None:
        """Somebody deletes an input and creates it anew, often with the same messages under other keys, while the
        app is down or while it runs; an operator says then where to begin."""
        self.moved = True
        name = self.random.choice(sorted(self.world.topic_ids))
        runs = self.random.random() < 0.5
        if not runs:
            self.all_down()
        self.look()
        held = [entry.value for log in self.world.cluster.topics[name].logs for _, entry in log.visible()]
        count = self.random.randint(1, 5)
        self.world.make_again(name, count)
        # Ids are compared once a second: what is made and filled within one may come out twice.
        self.world.clock.sleep(2.0)
        for value in held if self.random.random() < 0.7 else ():
            self.write(Partition(name, self.random.randrange(count)), [value])
        if runs:
            self.run_until_noticed(name)
            self.all_down()
        self.begin_again(name)

    def run_until_noticed(self, name: str) -> None:
        """Some time, in which every process may stop for the topic that was made again."""
        before = len(self.world.stops)
        for _ in range(self.random.randint(0, _ROUNDS_TO_NOTICE)):
            self.world.run(1)
        asked = f"{name}["
        self.world.stops[before:] = [
            each for each in self.world.stops[before:] if asked not in each or "twinsieve reset" not in each
        ]

    def make_output_again(self) -> None:
        """Somebody deletes an output under the running app, and creates it anew."""
        self.world.make_again(self.random.choice(_OUTPUTS), self.random.randint(1, 6))

    def take_out_or_in(self) -> None:
        """An operator changes `input.topics`; the topic may be made again meanwhile."""
        self.moved = True
        self.all_down()
        self.look()
        if self.is_out:
            self.world.take_in("more")
            if self.random.random() < 0.3:
                self.world.make_again("more", self.random.randint(1, 5))
                self.begin_again("more")
        else:
            self.world.take_out("more")
        self.is_out = not self.is_out
        self.revive()

    def jump(self) -> None:
        """Somebody sets the clock of a process, or its machine stood still."""
        if self.alive():
            clock = self.random.choice(self.alive()).clock
            clock.ahead_s = self.random.choice(_AHEAD_S)
            stood_s = self.random.choice((0.0, 0.0, 9.0, 4_000.0))
            self.world.clock.sleep(stood_s)
            clock.paused_s += stood_s

    def compact(self) -> None:
        """Compaction takes some messages; the newest stays, as the newest of a key does."""
        self.look()
        at = self.input()
        held = [offset for offset, _ in self.world.cluster.log(at).visible()][:-1]
        self.world.compact(at, self.random.sample(held, min(len(held), self.random.randint(1, 4))))

    def let_in_stranger(self) -> None:
        """Somebody types the workers' group into a consumer."""
        self.strangers.append(Stranger(self.world, self.random))

    def use_tool(self) -> None:
        """Somebody moves an offset with a tool, all members being down."""
        self.all_down()
        use_tool(self.world, self.random, self.input())
        self.revive()

    def set_limit(self) -> None:
        """Somebody changes the largest message that an output takes."""
        self.world.limit(self.random.choice(_OUTPUTS), self.random.choice(_LIMITS))

    def produce_large(self) -> None:
        """Messages that an output may not take; their texts are those of others."""
        for _ in range(self.random.randint(1, 4)):
            padding = b', "pad": "%s"}' % (b"x" * self.random.choice(_PADS))
            self.write(self.input(), [self.post().replace(b"}", padding)])

    def same(self, text: str) -> str:
        """What texts have in common that some of the processes take for equal."""
        return text.lower() if Kind.SETTINGS in self.kinds else text

    def produce_in_transaction(self) -> None:
        transaction = Transaction(self.world.clock.monotonic_s())
        messages = Messages()
        for _ in range(self.random.randint(1, 4)):
            messages.add(b"k", self.post(), (self.world.next_header(),), self.world.clock.now_ms())
        self.world.cluster.write(self.input(), messages, transaction)
        transaction.end(self.random.choice([Outcome.COMMITTED, Outcome.ABORTED]))

    def kill(self) -> None:
        if self.alive():
            self.random.choice(self.alive()).kill(lambda waiting: self.random.randint(0, waiting))

    def trim_answers(self) -> None:
        for log in self.world.cluster.topics[VERDICTS].logs:
            log.trim(self.random.randint(log.beginning, log.end))

    def lose_leader(self) -> None:
        topic = self.random.choice(
            [*self.world.topic_ids, OUTPUT, DUPLICATES, DEAD, VERDICTS, LOG.topic, DECISIONS.topic]
        )
        if self.sharding is not None and self.random.random() < 0.1:
            topic = ANSWERS
        count = self.world.cluster.partition_counts().get(topic, 0)
        if count:
            self.world.cluster.faults.leaderless.add(Partition(topic, self.random.randrange(count)))

    def find_leaders(self) -> None:
        counts = self.world.cluster.partition_counts()
        for partition in self.world.cluster.faults.leaderless:
            if partition.number < counts.get(partition.topic, 0):
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
        accept(self.world)
        self.find_leaders()
        for stranger in self.strangers:
            stranger.leave()
        self.unreadable.repair()
        if isinstance(self.world, RegistryWorld):
            self.world.registry.state = "well"
        if not self.cut_tail:
            if self.unborn:
                self.finish_seed()
            super().finish()
            return
        if self.sharding is not None:
            self.sharding.finish()
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
        self.world.run_until(lambda: self.world.quiet() or bool(self.world.stops), self.tend)

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


def check_rules(world: World) -> None:
    """Each decision says by which rules it was made, and each change was reported once, if at all: a process may
    be killed before it does."""
    rules = [rules_in(entry.headers) for entry in world.decision_entries()]
    assert all(rules)
    changes = sum(one != other for one, other in pairwise(rules))
    indexes = [process.index for process in world.processes if process.index is not None]
    counted = sum(index.rules_changes for index in indexes)
    assert counted == sum("other rules" in notice for index in indexes for notice in index.notices) <= changes


def _order_was_lost(world: World) -> bool:
    """Whether processes stopped only because no order to move an offset is on record, and retention took such an order:
    the block with which an index would have learned of it."""
    if not all("no `twinsieve reset` on record" in said for said in world.stops):
        return False
    taken = (outline_of(entry.value) for entry in world.trimmed_log.values() if entry.visible and entry.value)
    return any(outline is not None and BlockFlag.RESET in outline.flags for outline in taken)


def run(seed: int, folder: Path, kinds: Collection[Kind]) -> Found:
    """One hostile run, which broke no promise.

    raises: AssertionError for a message that was lost, came out once too often or is stuck; for a verdict that the
        raw topics contradict; for a stop while nothing that was on record was lost
    """
    with without_threads(), unhurried():
        return _judged(NastyChaos(seed, folder, kinds))


def _judged(chaos: NastyChaos) -> Found:
    for _ in range(ACTIONS):
        chaos.act()
    chaos.finish()
    world, by_loop = chaos.world, Kind.SETTINGS not in chaos.kinds
    assert chaos.cut_tail or not world.stops or _order_was_lost(world), f"stopped for nothing: {world.stops}"
    excused = Counter[str]()
    if world.stops:
        truth = rebuild(world, window=chaos.window, judge=by_loop)
        check_output(world, truth, in_order=not chaos.moved)
    else:
        truth, excused = chaos.judge(by_loop=by_loop, same=chaos.same)
        for each in chaos.seeds:
            if each.finished:
                check_seeded(world, truth, each.ends)
        chaos.probe(chaos.same)
    if not chaos.kinds & {Kind.RESTORED, Kind.RETENTION} and not chaos.cut_tail:
        check_rules(world)
    copies = [f"{truth.names[its]}[{number}]@{at}" for its, number, at in truth.copies]
    answered = chaos.sharding.answered if chaos.sharding is not None else 0
    return Found(
        chaos.seed, chaos.kinds, len(truth.judgements), tuple(world.stops), tuple(copies), excused, answered
    )
