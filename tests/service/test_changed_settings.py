"""Similarity, guard and window changed, and the program started anew, with a crash in between.

Judged under the old settings, killed before everything was emitted, restored under the new ones: what was
judged stays judged, the new settings hold from the next block on, and no message is dropped for a leader that
did not come out. The real scheme and the real sieve, both roles, on the memory broker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

import pytest

from tests.memory.broker import CrashError, ManualClock, MemoryBroker, MemoryCluster
from tests.memory.log import Entry
from tests.twins import Later
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import no_hook
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Messages, Partition
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.build import Builder, make_scheme, wire_scheme
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import Source, decode_ruling
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.scheme import Scheme

IN = Partition("posts", 0)
COUNT, MORE = 120, 40


CHANGES: dict[str, dict[str, object]] = {
    "lower similarity": {"similarity": 6_000},
    "higher similarity": {"similarity": 9_900},
    "differences off": {"differences": "off"},
    "all differences": {"differences": "full"},
    "smaller window": {"window": {"messages": 15, "age_ms": None}},
    "larger window": {"window": {"messages": 500, "age_ms": None}},
}


def base(state: str) -> Settings:
    return Settings.model_validate(
        {
            "app": "t",
            "near": {"similarity": 0.9, "differences": "guards", "window": {"messages": 60, "age": "none"}},
            "exact": {"window": {"messages": 2_000, "age": "none"}},
            "kafka": {"poll_messages": 9},
            "state": {"dir": state, "snapshot_every": "10ms"},
        }
    )


def with_section(settings: Settings, section: str, **values: object) -> Settings:
    """These settings, with other values in one section."""
    held = getattr(settings, section).model_copy(update=values)
    return settings.model_copy(update={section: held})


def changed(settings: Settings, change: str) -> Settings:
    update = {
        key: settings.near.window.model_copy(update=value) if isinstance(value, dict) else value
        for key, value in CHANGES[change].items()
    }
    return with_section(settings, "near", **update)


def exact_window(settings: Settings, messages: int) -> Settings:
    window = settings.exact.window.model_copy(update={"messages": messages})
    return with_section(settings, "exact", window=window)


def posts(seed: int, count: int) -> Iterator[str]:
    """Posts of which many are a few characters or a number away from an earlier one."""
    dice = random.Random(seed)
    known: list[str] = []
    for number in range(count):
        if known and dice.random() < 0.6:
            text = list(dice.choice(known))
            for _ in range(dice.randrange(4)):
                text[dice.randrange(len(text))] = chr(0x4E00 + dice.randrange(2_000))
            yield "".join(text).replace("新增1", f"新增{dice.randrange(1, 4)}")
        else:
            known.append(
                "".join(chr(0x4E00 + dice.randrange(2_000)) for _ in range(24)) + f"新增1{number % 7}例"
            )
            yield known[-1]


@dataclass
class Deployment:
    """One process with both roles; `run` may be cut short by a crash."""

    cluster: MemoryCluster
    clock: ManualClock
    scheme: Scheme
    crash_at: str = ""
    left: int = 0
    notices: list[str] = field(default_factory=list)
    decisions: dict[int, Entry] = field(default_factory=dict)
    """Every decision ever recorded, also those that were deleted behind snapshots."""

    def hook(self, step: str) -> None:
        if step == self.crash_at:
            self.left -= 1
            if self.left == 0:
                raise CrashError(step)

    def run(self, settings: Settings, rounds: int, *, needs_snapshots: bool = True) -> bool:
        """Whether it ran through; a crash leaves everything as it is."""
        broker = MemoryBroker(self.cluster, self.hook if self.left else no_hook)
        builder = Builder(
            settings,
            self.scheme,
            self.clock,
            lambda _: broker,
            "one",
            emit=True,
            background=Later(),
            needs_snapshots=needs_snapshots,
        )
        try:
            index, worker = builder.index(self.hook), builder.worker(self.hook)
            for _ in range(rounds):
                for role in (index, worker):
                    try:
                        role.step(0.05)
                    except AbortableError as error:
                        self.notices.append(str(error))
                self.decisions.update(self.cluster.log(Partition("t.decisions", 0)).visible())
                if self.done():
                    break
        except CrashError:
            self.clock.sleep(20.0)
            return False
        except FatalError as error:
            raise AssertionError(f"no process was displaced: {error}") from error
        self.notices += index.notices
        worker.close()
        index.abandon()
        self.clock.sleep(20.0)
        return True

    def done(self) -> bool:
        committed = self.cluster.group(Names("t").workers).offsets.get(IN)
        return committed is not None and committed.offset >= self.cluster.log(IN).end

    def produce(self, texts: Iterator[str]) -> None:
        messages = Messages()
        for text in texts:
            messages.add(None, b'{"text": "%s"}' % text.encode())
        self.cluster.write(IN, messages)

    def entries(self, topic: str) -> list[Entry]:
        return [entry for _, entry in self.cluster.log(Partition(topic, 0)).visible()]

    def origins(self, topic: str) -> list[int]:
        return [_place(dict(entry.headers)["twinsieve-origin"]) for entry in self.entries(topic)]

    def judged(self) -> dict[int, Kind]:
        """Kind by input offset, in the order of the log; each is judged once."""
        found: dict[int, Kind] = {}
        wire = wire_scheme(base("unused"), self.scheme)
        self.decisions.update(self.cluster.log(Partition("t.decisions", 0)).visible())
        for _, entry in sorted(self.decisions.items(), key=itemgetter(0)):
            ruling = decode_ruling(What.DECISION, entry.value or b"", wire, "")
            new = [row for row, source in enumerate(ruling.sources) if source == Source.NEW]
            at = max(found, default=-1) + 1
            found.update({at + place: Kind(int(ruling.verdicts.kinds[row])) for place, row in enumerate(new)})
        return found

    def check_whole(self, old: dict[int, Kind], count: int) -> None:
        """What was judged stays judged, each message came out once, and none was dropped for nothing."""
        judged = self.judged()
        assert {at: judged[at] for at in old} == old, "what was judged stays judged"
        uniques, duplicates = self.origins("posts.unique"), self.origins("posts.duplicates")
        assert sorted(uniques + duplicates) == list(range(count)), "each once, none lost"
        assert uniques == [at for at, kind in judged.items() if kind is Kind.UNIQUE]
        headers = [dict(entry.headers) for entry in self.entries("posts.duplicates")]
        leaders = [_place(each["twinsieve-leader"]) for each in headers if "twinsieve-leader" in each]
        nameless = [each for each in headers if "twinsieve-leader" not in each]
        assert all(each.get("twinsieve-note") == b"unconfirmed" for each in nameless)
        assert len(leaders) > 10
        assert set(leaders) <= set(uniques), "dropped for a leader that did not come out"


def _place(header: bytes | None) -> int:
    assert header is not None
    return int(header.decode().partition("@")[2])


def deployment(settings: Settings, scheme: Scheme) -> Deployment:
    clock = ManualClock()
    cluster = MemoryCluster(clock, session_timeout_s=6.0, transaction_timeout_s=8.0)
    cluster.create(NewTopic(IN.topic, 1))
    create(settings, MemoryBroker(cluster).admin())
    return Deployment(cluster, clock, scheme)


@pytest.mark.parametrize("crash_at", ["index.committed", "worker.sent", "worker.committed"])
@pytest.mark.parametrize("change", CHANGES)
def test_no_message_is_dropped_for_a_leader_that_did_not_come_out(
    change: str, crash_at: str, scheme: Scheme, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = base(str(tmp_path_factory.mktemp("state")))
    after = changed(before, change)
    world = deployment(before, scheme)
    world.produce(posts(1, COUNT))
    world.crash_at, world.left = crash_at, 5
    assert not world.run(before, 200), "it was to crash"
    old = world.judged()
    assert 0 < len(old) < COUNT
    assert len(world.origins("posts.unique")) < sum(kind is Kind.UNIQUE for kind in old.values()) or (
        crash_at == "worker.committed"
    )
    world.produce(posts(2, MORE))
    assert world.run(after, 1_000)
    world.check_whole(old, COUNT + MORE)


@pytest.mark.parametrize("change", CHANGES)
def test_new_settings_hold_from_the_next_block_on(
    change: str, scheme: Scheme, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kinds = []
    for settings in (None, change):
        before = base(str(tmp_path_factory.mktemp("state")))
        world = deployment(before, scheme)
        world.produce(posts(1, COUNT))
        world.crash_at, world.left = "index.committed", 8
        world.run(before, 200)
        first = world.judged()
        world.produce(posts(3, 200))
        assert world.run(changed(before, settings) if settings else before, 1_000)
        kinds.append(world.judged())
        assert {at: kinds[-1][at] for at in first} == first
    as_before, as_changed = kinds
    assert as_before.keys() == as_changed.keys()
    fewer = {"lower similarity", "differences off", "larger window"}
    uniques = [list(each.values()).count(Kind.UNIQUE) for each in (as_changed, as_before)]
    assert uniques[0] < uniques[1] if change in fewer else uniques[0] > uniques[1]


def test_other_key_or_scope_fields_are_another_scheme() -> None:
    settings = base("unused")
    keyed = with_section(settings, "exact", fields=("url",))
    scoped = settings.model_copy(update={"scope": ("tenant",)})
    scheme = make_scheme(settings)
    assert len({wire_scheme(each, scheme) for each in (settings, keyed, scoped)}) == 3
