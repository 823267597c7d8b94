"""A deployment under seeded random interleavings of work and mishaps."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.driver import GROUP, INDEX_GROUP, JSON_READER, NO_TEXTS, Process, World, post
from tests.memory.broker import CrashError
from tests.twins import HashSieve
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Partition

WINDOW = 25
ACTIONS = 90
Actions = list[tuple[int, Callable[[], None]]]


class Chaos:
    """One random run. Weights of the actions are such that the deployment makes progress in between."""

    def __init__(self, seed: int, folder: Path, *, moves: bool) -> None:
        self.random = random.Random(seed)
        self.world = World(partitions=self.random.randint(1, 4), reader=JSON_READER)
        self.folder = folder
        self.moves = moves
        self.moved = False
        self.kept = str(folder) if self.random.random() < 0.5 else None
        self.slots = ["a", "b", "c"][: self.random.randint(1, 3)]
        self.begin()

    def begin(self) -> None:
        """One process in each slot."""
        for slot in self.slots:
            self.start(slot)

    def start(self, slot: str) -> Process:
        static = self.random.random() < 0.7
        return self.world.start(
            slot, static=static, snapshots=self.kept, sieve=lambda: HashSieve(WINDOW), hook=self.random_hook()
        )

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
        return actions

    def produce(self) -> None:
        count = len(self.world.cluster.topics["in"].logs)
        for _ in range(self.random.randint(1, 3)):
            values: list[bytes | None] = [self.post() for _ in range(self.random.randint(1, 12))]
            if self.random.random() < 0.3:
                value = self.random.choice([None, b"\xff\xfe", b"", *NO_TEXTS])
                values.insert(self.random.randint(0, len(values)), value)
            self.world.produce("in", self.random.randrange(count), values)

    def post(self, letter: str = "m") -> bytes:
        """One of 61 messages."""
        return post(f"{letter}{self.random.randint(0, 60)}")

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

    def move(self) -> None:
        """An operator moves one partition's offset, all workers being down."""
        self.moved = True
        self.all_down()
        number = self.random.randrange(len(self.world.cluster.topics["in"].logs))
        log = self.world.cluster.log(Partition("in", number))
        self.world.move_offset(Partition("in", number), self.random.randint(log.beginning, log.end))
        self.revive()

    def trim_input(self) -> None:
        log = self.world.cluster.log(
            Partition("in", self.random.randrange(len(self.world.cluster.topics["in"].logs)))
        )
        log.trim(self.random.randint(log.beginning, log.end))

    def recreate(self) -> None:
        """The input topic is deleted and made again; `reset` then says where to begin."""
        self.moved = True
        self.all_down()
        count = len(self.world.cluster.topics["in"].logs)
        self.world.cluster.delete("in")
        self.world.cluster.create(NewTopic("in", count))
        self.world.topic_ids["in"].add(self.world.cluster.topics["in"].topic_id)
        for number in range(count):
            self.world.move_offset(Partition("in", number), 0)
        self.revive()

    def finish(self) -> None:
        """The dust settles: one healthy process in each slot."""
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
        for number, log in enumerate(self.world.cluster.topics["in"].logs):
            self.world.move_offset(Partition("in", number), log.beginning)

    def tend(self) -> None:
        for slot in self.slots:
            if not any(process.running and process.slot == slot for process in self.world.processes):
                self.start(slot).hook = no_hook
