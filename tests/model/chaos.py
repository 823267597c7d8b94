"""A deployment under seeded random interleavings of work and mishaps."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from tests.driver import DUPLICATES, GROUP, INDEX_GROUP, JSON_READER, NO_TEXTS, Process, World, post
from tests.memory.broker import CrashError
from tests.model.checker import Truth, check_all_judged, check_complete, check_output, rebuild
from tests.model.history import Cause
from tests.model.raw import Raw, Same, check_standing, check_world, missing_texts
from tests.model.sharding import Sharding
from tests.twins import HashSieve
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Partition
from twinsieve.stages.contract import Kind

WINDOWS = (25, 1_000)
"""Kept messages that a sieve remembers: fewer than there are texts, or all."""
ACTIONS = 90
_UNREAD_S = 60.0
"""An index gives up a topic that nobody has read for half of this time."""
Actions = list[tuple[int, Callable[[], None]]]


_POSTS_BEFORE_SHARDS = 12
"""How often posts are written before shards begin to answer."""


class Chaos:
    """One random run. Weights of the actions are such that the deployment makes progress in between.

    moves: operators move offsets and lose input; shards: the index uses the answers of shards
    """

    def __init__(self, seed: int, folder: Path, *, moves: bool, shards: bool = False) -> None:
        self.random = random.Random(seed)
        self.window = self.random.choice(WINDOWS)
        self.world = self.make_world()
        self.folder = folder
        self.moves = moves
        self.moved = False
        self.kept = str(folder) if shards or self.random.random() < 0.5 else None
        self.slots = ["a", "b", "c"][: self.random.randint(1, 3)]
        self.sharding: Sharding | None = None
        if shards:
            self.sharding = Sharding(self.world, self.random, self.window, str(folder), self.random_hook)
            self.sharding.tend()
        self.begin()

    def make_world(self) -> World:
        """Its topics."""
        return World(partitions=self.random.randint(1, 4), reader=JSON_READER)

    def begin(self) -> None:
        """One process in each slot. With shards, nothing happens to them before some answer."""
        for slot in self.slots:
            self.start(slot)
        if self.sharding is not None:
            for _ in range(_POSTS_BEFORE_SHARDS):
                self.produce()
            self.sharding.begin(self.revive)

    def start(self, slot: str) -> Process:
        process = self.world.start(
            slot,
            snapshots=self.kept,
            sieve=lambda: HashSieve(self.window),
            hook=self.random_hook(),
        )
        if self.sharding is not None:
            self.sharding.equip(process)
        return process

    def random_hook(self) -> Callable[[str], None]:
        """Lets some hundred calls pass, then crashes or fails one; most hooks do nothing at all."""
        left = self.random.randint(1, 400)
        error = self.random.choice(
            [None, None, CrashError("crash"), AbortableError("made to fail"), FatalError("made to end")]
        )

        def hook(step: str) -> None:
            nonlocal left
            left -= 1
            if left == 0 and error is not None and step != "transactor.abort":
                raise error

        return hook

    def act(self) -> None:
        actions = self.actions()
        total = [weight for weight, _ in actions]
        self.random.choices([action for _, action in actions], total)[0]()

    def actions(self) -> Actions:
        """What may happen next, each with its weight."""
        actions: Actions = [
            (30, self.produce),
            (60, self.step),
            (6, self.kill),
            (10, self.revive),
            (4, self.zombie),
            (3, self.double),
            (5, self.rebalance),
            (5, self.wait),
            (2, self.cut_off),
            (2, self.trim_log),
            (1, self.grow),
        ]
        if self.moves:
            actions += [(3, self.move), (1, self.trim_input), (1, self.recreate)]
        if self.sharding is not None:
            actions += self.sharding.actions()
        return actions

    def inputs(self) -> list[Partition]:
        """All partitions of the input."""
        topics = self.world.cluster.topics
        return [Partition(name, n) for name in self.world.topic_ids for n in range(len(topics[name].logs))]

    def input(self) -> Partition:
        """One of them."""
        return self.random.choice(self.inputs())

    def produce(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            values: list[bytes | None] = [self.post() for _ in range(self.random.randint(1, 12))]
            if self.random.random() < 0.3:
                value = self.random.choice([None, b"\xff\xfe", b"", *NO_TEXTS])
                values.insert(self.random.randint(0, len(values)), value)
            self.write(self.input(), values)

    def write(self, at: Partition, values: list[bytes | None]) -> None:
        """A producer writes these."""
        self.world.produce(at.topic, at.number, values)

    def texts(self) -> list[str]:
        """Every text that `post` makes: long enough for the near stage, and alike to no other."""
        return [f"{number:02}" * 4 for number in range(61)]

    def post(self) -> bytes:
        """One of 61 messages."""
        return post(self.random.choice(self.texts()))

    def step(self) -> None:
        for _ in range(self.random.randint(1, 6) if self.world.processes else 0):
            self.random.choice(self.world.processes).step(self.random.choice([0.0, 0.1]))

    def alive(self) -> list[Process]:
        return [process for process in self.world.processes if process.running]

    def kill(self) -> None:
        if self.alive():
            self.random.choice(self.alive()).kill()

    def revive(self) -> None:
        dead = [
            slot for slot in self.slots if not any(p.running and p.slot == slot for p in self.world.processes)
        ]
        if dead:
            self.world.processes = [p for p in self.world.processes if p.running]
            self.start(self.random.choice(dead))

    def zombie(self) -> None:
        if self.alive():
            self.random.choice(self.alive()).pause(self.random.choice([1.0, 7.0, 9.0, 15.0]))

    def double(self) -> None:
        """A second process in a slot whose first one is alive."""
        self.start(self.random.choice(self.slots))

    def rebalance(self) -> None:
        self.world.cluster.group(self.random.choice([GROUP, INDEX_GROUP])).rebalance(
            self.random.randint(0, 2)
        )

    def wait(self) -> None:
        self.world.clock.sleep(self.random.choice([0.5, 3.0, 12.0]))

    def cut_off(self) -> None:
        self.world.cluster.reachable = False
        for _ in range(self.random.randint(1, 5)):
            self.step()
        self.world.cluster.reachable = True

    def trim_log(self) -> None:
        """As retention behind the older snapshot."""
        kept = sorted(int(path.name[6:22]) for path in (self.folder / "app").glob("*.snapshot"))
        if len(kept) > 1:
            self.world.trim_log(kept[0])

    def grow(self) -> None:
        topics = self.world.cluster.topics
        for name in ("in", "out", "dup", "dead"):
            self.world.cluster.add_partitions(name, min(5, len(topics["in"].logs) + (name == "in")))

    def all_down(self) -> None:
        self.world.kill_all()
        self.world.cluster.tick()

    def look(self) -> None:
        """Before something is lost: what the offset has passed is out."""
        raw = Raw(self.world)
        for message in raw.messages.values():
            held = self.world.history.recorded(Partition(message.name, message.place[1]))
            passed = held is not None and message.place[2] < held.offset and message.stands
            lost = passed and message.place not in self.world.left_out and not raw.fates[message.place]
            assert not lost, f"{message.at}: the offset {held} has passed it, and it is in no output"

    def move(self) -> None:
        """An operator moves one partition's offset, all workers being down."""
        self.moved = True
        self.all_down()
        self.look()
        at = self.input()
        log = self.world.cluster.log(at)
        self.world.move_offset(at, self.random.randint(log.beginning, log.end))
        self.revive()

    def trim_input(self) -> None:
        self.look()
        at = self.input()
        log = self.world.cluster.log(at)
        self.world.trim(at, self.random.randint(log.beginning, log.end))

    def recreate(self) -> None:
        """The input topic is deleted and made again; `reset` then says where to begin."""
        self.moved = True
        self.all_down()
        self.look()
        self.world.make_again("in", len(self.world.cluster.topics["in"].logs))
        self.begin_again("in")

    def begin_again(self, name: str) -> None:
        """All processes begin at the beginning of a topic that was made again."""
        for number in range(len(self.world.cluster.topics[name].logs)):
            self.world.move_offset(Partition(name, number), 0)
        self.revive()

    def finish(self) -> None:
        """The dust settles: one healthy process in each slot."""
        if self.sharding is not None:
            self.sharding.finish()
        self.world.clock.sleep(20.0)
        for process in self.world.processes:
            process.hook = no_hook
        self.world.settle(tend=self.tend)
        if self.moved:
            self.move_back()
            self.world.settle(tend=self.tend)

    def move_back(self) -> None:
        """What an operator skipped is read after all."""
        self.all_down()
        for at in self.inputs():
            self.world.move_offset(at, self.world.cluster.log(at).beginning)

    def tend(self) -> None:
        for slot in self.slots:
            if not any(process.running and process.slot == slot for process in self.world.processes):
                self.start(slot).hook = no_hook
        if self.sharding is not None:
            self.sharding.tend()

    def judge(self, *, by_loop: bool = True, same: Same = str) -> tuple[Truth, Counter[str]]:
        """What the record says, and what was excused, by cause; to be asked when the dust has settled.

        by_loop: whether verdicts follow from the log alone
        raises: AssertionError for the first promise that is broken
        """
        world = self.world
        forgets = self.window < len(self.texts())
        excused = check_world(world, same=same, in_order=not self.moved, forgets=forgets)
        truth = rebuild(world, window=self.window, judge=by_loop)
        check_complete(world, truth, check_output(world, truth, in_order=not self.moved), same)
        check_all_judged(world, truth)
        return truth, excused

    def pass_time(self, seconds: float) -> None:
        """All are at work, and nothing arrives; where an input was taken out, for longer than an index waits for it."""
        gone = {Cause.TAKEN_OUT, Cause.DELETED}
        losses = chain.from_iterable(self.world.history.losses.values())
        until_s = self.world.clock.monotonic_s() + (
            seconds if gone & {loss.cause for loss in losses} else 1.0
        )
        while self.world.clock.monotonic_s() < until_s:
            self.tend()
            self.world.run(1)
            self.world.clock.sleep(0.5)

    def judged_anew_after_it_came_out(self, raw: Raw, same: Same) -> set[str]:
        """Texts of messages whose record retention took before they came out: as duplicates, and an index that knew
        nothing of that verdict has them as unique. GUARANTEES says so."""
        truth = rebuild(self.world, window=self.window, judge=False)
        return {
            same(raw.messages[place].text)
            for place, said in truth.judgements.items()
            if said[-1].kind is Kind.UNIQUE
            and any(fate.topic == DUPLICATES for fate in raw.fates[place])
            and truth.forgotten(said[0].block, said[-1].block)
        }

    def probe(self, same: Same = str) -> None:
        """Each text is written once more, in calm: none is dropped for a message that never came out."""
        self.pass_time(_UNREAD_S)
        self.write(self.input(), [post("of a new time")])
        self.world.settle(tend=self.tend)
        texts = [text for text in self.texts() if self.world.has_schema(post(text))]
        for text in texts:
            self.write(self.input(), [post(text)])
        self.world.settle(tend=self.tend)
        raw = Raw(self.world)
        missing = missing_texts(raw, texts, same)
        if missing:
            excused = self.judged_anew_after_it_came_out(raw, same)
            missing = {text for text in missing if same(text) not in excused}
        assert not missing, (
            f"written in calm, and dropped for messages that never came out: {sorted(missing)}"
        )
        check_standing(raw)
