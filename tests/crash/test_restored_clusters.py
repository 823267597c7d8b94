"""A cluster is put back to an earlier moment, or what mirrors it takes over, while state folders stay as they were.

`COMBINATIONS` lists what may be ahead of, behind or beside what. Each one ends in one of two ways: what comes out is right,
or a process stops and says why. Who judges that reads the topics alone: each message came out once, and no message was
dropped whose leader is not in the output with that text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from tests.driver import (
    DEAD,
    DECISIONS,
    DUPLICATES,
    GROUP,
    INDEX,
    INDEX_GROUP,
    LOG,
    OUTPUT,
    SEEDED,
    VERDICTS,
    Process,
    World,
)
from tests.memory.backup import Backup
from tests.memory.log import Entry
from tests.nasty.seeding import Seeding
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Messages, Partition

pytestmark = pytest.mark.matrix

BEFORE, LOST, AFTER = range(30), range(30, 70), range(100, 150)
"""Texts until the backup; those that the restored cluster never had; those that it got instead."""
PARTITIONS = 2
INTERNAL = (LOG.topic, DECISIONS.topic, VERDICTS)


def header(entry: Entry, name: str) -> str:
    """The value of one header."""
    return (dict(entry.headers)[name] or b"").decode()


@dataclass
class Drill:
    """One app on one cluster; each process is a machine with a state folder of its own, unless `shared`."""

    folder: Path
    shared: bool = False
    trims: bool = False
    max_blocks: int = 3
    world: World = field(default_factory=lambda: World(PARTITIONS))

    def start(self, slot: str, **settings: object) -> Process:
        """A process with both roles."""
        config = replace(INDEX, max_blocks=self.max_blocks, trim_log=self.trims, **settings)  # type: ignore[arg-type]
        return self.world.start(slot, snapshots=str(self.state(slot)), index_config=config)

    def state(self, slot: str) -> Path:
        """Its state folder."""
        return self.folder / ("shared" if self.shared else slot)

    def snapshots(self, slot: str) -> list[int]:
        """The blocks at which its snapshots are."""
        return sorted(int(path.name[6:22]) for path in self.state(slot).glob("app/*.snapshot"))

    def write(self, numbers: range) -> None:
        """Producers write these texts, each twice, and all of it comes out."""
        for first in range(numbers.start, numbers.stop, 5):
            texts: list[bytes | None] = [b"text %d" % n for n in numbers if first <= n < first + 5]
            for number in range(PARTITIONS):
                self.world.produce("in", number, texts)
            self.world.settle()
            self.world.clock.sleep(1.0)

    def write_unread(self, numbers: range) -> None:
        """The same, with nobody to read them."""
        for number in range(PARTITIONS):
            self.world.produce("in", number, [b"text %d" % n for n in numbers])

    def stop(self, *processes: Process) -> None:
        """SIGTERM: each writes a last snapshot."""
        for process in processes:
            process.terminate()

    def restore(self, backup: Backup, **parts: tuple[str, ...]) -> None:
        """Put the cluster, or these parts of it, back."""
        backup.restore(self.world.cluster, **parts)
        self.world.clock.sleep(20.0)

    def take_over(self, from_process: Process, slot: str) -> Process:
        """A process starts beside one that judges, which is killed then."""
        process = self.start(slot)
        self.world.run(60)
        from_process.kill()
        self.world.clock.sleep(20.0)
        self.world.run(60)
        return process

    def told(self) -> str:
        """What processes said of snapshots that they do not use."""
        indexes = [process.index for process in self.world.processes if process.index is not None]
        return "\n".join(notice for index in indexes for notice in index.notices)

    def check(self, *, copies: bool = False) -> None:
        """Judge by the topics alone. copies: whether texts may come out again"""
        cluster = self.world.cluster
        came: Counter[str] = Counter()
        out: dict[str, bytes | None] = {}
        for topic in (OUTPUT, DUPLICATES, DEAD):
            for number in range(PARTITIONS):
                for _, entry in cluster.log(Partition(topic, number)).visible():
                    came[header(entry, "twinsieve-origin")] += 1
                    if topic == OUTPUT:
                        out[header(entry, "twinsieve-origin")] = entry.value
        wanted = {
            f"in[{number}]@{offset}": entry.value
            for number in range(PARTITIONS)
            for offset, entry in cluster.log(Partition("in", number)).visible()
        }
        assert not wanted.keys() - came.keys(), "lost"
        if not copies:
            assert came == Counter(list(wanted)), "twice, or never in the input"
            assert len(set(out.values())) == len(out), "a text came out twice"
        self.check_leaders(out)

    def check_leaders(self, out: dict[str, bytes | None] | None = None) -> None:
        """Every drop names a message that is in the output with that text."""
        logs = [Partition(OUTPUT, number) for number in range(PARTITIONS)]
        out = out or {
            header(entry, "twinsieve-origin"): entry.value
            for at in logs
            for _, entry in self.world.cluster.log(at).visible()
        }
        for number in range(PARTITIONS):
            for _, entry in self.world.cluster.log(Partition(DUPLICATES, number)).visible():
                leader = header(entry, "twinsieve-leader")
                assert out.get(leader) == entry.value, f"{entry.value!r} was dropped for {leader}"

    def refused(self, *said: str) -> None:
        """A process stops for each of these reasons, and no drop is wrong."""
        for _ in range(3):
            self.world.run(60)
            self.world.clock.sleep(20.0)
        assert self.world.stops
        for words in said:
            assert any(re.search(words, stop) for stop in self.world.stops), self.world.stops
        self.check_leaders()


def histories(drill: Drill, *, keep_folder: bool = True) -> tuple[Backup, Process]:
    """Backup of the cluster, then other messages and newer snapshots of `a`, which then stops."""
    a = drill.start("a")
    drill.write(BEFORE)
    drill.world.clock.sleep(3.0)
    backup = Backup(drill.world.cluster)
    saved = drill.folder / "backup"
    if not keep_folder:
        drill.stop(a)
        copytree(drill.state("a"), saved)
        a = drill.start("a")
    drill.write(LOST)
    drill.stop(a)
    if not keep_folder:
        rmtree(drill.state("a"))
        copytree(saved, drill.state("a"))
    return backup, a


def outgrowing(drill: Drill, blocks: int) -> Process:
    """Another machine, which judged until the log had this many blocks more than the newest snapshot of `a`."""
    b = drill.start("b")
    drill.write(AFTER)
    while drill.world.cluster.log(LOG).end <= drill.snapshots("a")[-1] + blocks:
        drill.write(range(150, 155))
    return b


def end_of_drill(drill: Drill, *, copies: bool = False) -> None:
    """What the restored cluster never had is sent again, and something new."""
    drill.write(LOST)
    drill.write(range(200, 220))
    drill.check(copies=copies)
    assert drill.world.stops == []


def ahead(drill: Drill) -> None:
    backup, _ = histories(drill)
    drill.restore(backup)
    drill.start("a")
    end_of_drill(drill)


def beside(drill: Drill) -> None:
    """Another machine judges until the log has outgrown the newest snapshot."""
    backup, _ = histories(drill)
    drill.restore(backup)
    drill.take_over(outgrowing(drill, 5), "a")
    end_of_drill(drill)


def same_block(drill: Drill) -> None:
    """The other history is as long as that of the snapshot, to the block."""
    drill.max_blocks = 1
    backup, _ = histories(drill)
    drill.restore(backup)
    b = drill.start("b")
    newest = drill.snapshots("a")[-1]
    for number in range(300, 600):
        drill.world.produce("in", 0, [b"text %d" % number])
        for _ in range(6):
            b.step()
            if b.index is not None and b.index.state.next_offset == newest:
                break
        if b.index is not None and b.index.state.next_offset == newest:
            break
    assert b.index is not None
    assert b.index.state.next_offset == newest
    b.kill()
    drill.world.clock.sleep(20.0)
    drill.start("a")
    end_of_drill(drill)


def older_snapshot(drill: Drill) -> None:
    """The folder is of the moment of the backup, or older: it is used."""
    backup, _ = histories(drill, keep_folder=False)
    drill.restore(backup)
    a = drill.start("a")
    end_of_drill(drill)
    assert a.index is not None
    assert "not used" not in drill.told()


def older_folder(drill: Drill) -> None:
    """The cluster was not restored, the folder was: it is used, and follows."""
    histories(drill, keep_folder=False)
    drill.world.clock.sleep(20.0)
    drill.start("a")
    end_of_drill(drill)
    assert "not used" not in drill.told()


def restored_twice(drill: Drill) -> None:
    """Snapshots of two histories that are no more."""
    backup, _ = histories(drill)
    drill.restore(backup)
    b = drill.start("b")
    drill.write(AFTER)
    drill.stop(b)
    drill.restore(backup)
    c = drill.start("c")
    drill.write(range(160, 190))
    while drill.world.cluster.log(LOG).end <= max(drill.snapshots("a")[-1], drill.snapshots("b")[-1]) + 5:
        drill.write(range(190, 195))
    b = drill.take_over(c, "b")
    drill.take_over(b, "a")
    end_of_drill(drill)


def shared_whole_log(drill: Drill) -> None:
    """All machines have one folder, and the log is whole."""
    drill.shared = True
    beside(drill)


def shared_trimmed(drill: Drill) -> None:
    """The log was deleted behind snapshots that are gone: nothing fills the windows."""
    drill.shared = drill.trims = True
    backup, _ = histories(drill)
    drill.restore(backup)
    assert drill.world.cluster.log(LOG).beginning > 0
    drill.start("a")
    drill.write_unread(LOST)
    drill.refused("not used", "--without-snapshots")


def shared_trimmed_without(drill: Drill) -> None:
    """The same, and the operator does what the line says."""
    shared_trimmed(drill)
    drill.world.stops.clear()
    drill.start("a", needs_snapshots=False)
    end_of_drill(drill, copies=True)


def shared_trimmed_of_one_moment(drill: Drill) -> None:
    """The folder was copied just before the brokers' disks, and is put back with them."""
    drill.shared = drill.trims = True
    a = drill.start("a")
    drill.write(BEFORE)
    copytree(drill.state("a"), drill.folder / "backup")
    backup = Backup(drill.world.cluster)
    drill.write(LOST)
    drill.stop(a)
    drill.restore(backup)
    rmtree(drill.state("a"))
    copytree(drill.folder / "backup", drill.state("a"))
    assert drill.world.cluster.log(LOG).beginning > 0
    drill.start("a")
    end_of_drill(drill)
    assert "not used" not in drill.told()


def standby_ahead(drill: Drill) -> None:
    """A standby, which has no restart, had followed further than the restored topics go."""
    a, b = drill.start("a"), drill.start("b", snapshot_every_s=1e9)
    drill.write(BEFORE)
    backup = Backup(drill.world.cluster)
    drill.write(LOST)
    a.kill()
    drill.restore(backup)
    end_of_drill_with(drill, b)


def standby_beside(drill: Drill) -> None:
    """It was cut off while another machine judged beyond where it is."""
    a, b = drill.start("a"), drill.start("b", snapshot_every_s=1e9)
    drill.write(BEFORE)
    backup = Backup(drill.world.cluster)
    drill.write(LOST)
    a.kill()
    b.pause(10_000.0)
    drill.restore(backup)
    assert b.index is not None
    c = drill.start("c")
    drill.write(AFTER)
    while drill.world.cluster.log(LOG).end <= b.index.state.next_offset + 5:
        drill.write(range(150, 155))
    b.stop_s = 0.0
    drill.world.run(60)
    c.kill()
    drill.world.clock.sleep(20.0)
    end_of_drill_with(drill, b)


def live_index(drill: Drill) -> None:
    """The index that judges runs on over the restore."""
    a = drill.start("a")
    drill.write(BEFORE)
    backup = Backup(drill.world.cluster)
    drill.write(LOST)
    backup.restore(drill.world.cluster)
    end_of_drill_with(drill, a)


def end_of_drill_with(drill: Drill, process: Process) -> None:
    """As `end_of_drill`, with a supervisor for that process."""
    if not process.running:
        drill.start(process.slot)
    end_of_drill(drill)


def older_offsets(drill: Drill) -> None:
    """The disk with the offsets was copied before the others."""
    backup, _ = histories(drill)
    drill.restore(backup, groups=(GROUP, INDEX_GROUP))
    drill.start("a")
    end_of_drill(drill)


def newer_offsets(drill: Drill) -> None:
    """It was copied after the others."""
    backup, _ = histories(drill)
    drill.restore(backup, topics=("in", OUTPUT, DUPLICATES, DEAD, *INTERNAL))
    drill.start("a")
    drill.refused("restore|reset")


def shorter_input(drill: Drill) -> None:
    backup, _ = histories(drill)
    drill.restore(backup, topics=("in",))
    drill.start("a")
    drill.refused("ends at .* before the committed offset")


def regrown_input(drill: Drill) -> None:
    """Other messages have the offsets of those that were judged."""
    backup, _ = histories(drill)
    drill.restore(backup, topics=("in",))
    drill.write_unread(range(400, 480))
    drill.start("a")
    drill.refused("messages that were read are gone")


def older_decisions(drill: Drill) -> None:
    backup, _ = histories(drill)
    drill.restore(backup, topics=(DECISIONS.topic,))
    drill.start("a")
    drill.refused("restore")


def older_log(drill: Drill) -> None:
    backup, _ = histories(drill)
    drill.restore(backup, topics=(LOG.topic,))
    drill.start("a")
    drill.refused("restore")


def older_internal_topics(drill: Drill) -> None:
    """Input, output and the workers' offsets are those of now: what came out since the backup leads nobody."""
    backup, _ = histories(drill)
    drill.restore(backup, topics=INTERNAL, groups=(INDEX_GROUP,))
    drill.start("a")
    end_of_drill(drill, copies=True)


def other_ids(drill: Drill) -> None:
    """Every topic is copied to a new cluster, offset by offset, and so are the offsets of the groups."""
    histories(drill)
    drill.restore(Backup(drill.world.cluster))
    for name in ("in", OUTPUT, DUPLICATES, DEAD, *INTERNAL):
        made_of = drill.world.cluster.topics[name]
        made_of.topic_id = bytes(reversed(made_of.topic_id))
    drill.start("a")
    drill.write_unread(AFTER)
    drill.refused("deleted and created again", "start a new app")


def mirrored_under_the_same_app(drill: Drill) -> None:
    """Input and output are copied with other offsets, which a mirror translated for the workers; the internal topics are
    new."""
    histories(drill)
    mirror(drill, {"in": "in", OUTPUT: OUTPUT})
    drill.start("a")
    drill.write_unread(AFTER)
    drill.refused("deleted and created again")


def mirrored_and_seeded(drill: Drill) -> None:
    """The same, as OPERATIONS has it: no offsets, the windows are filled from the mirrored output."""
    histories(drill)
    mirror(drill, {"in": "in", OUTPUT: SEEDED})
    drill.world.cluster.groups.clear()
    seed = Seeding(drill.world, "s", snapshots=str(drill.state("a")))
    drill.world.processes.append(seed)
    drill.world.run_until(lambda: seed.finished)
    for number in range(PARTITIONS):
        at = Partition("in", number)
        drill.world.move_offset(at, drill.world.cluster.log(at).end)
    drill.start("a")
    before = {n: drill.world.cluster.log(Partition("in", n)).end for n in range(PARTITIONS)}
    drill.write(AFTER)
    drill.write(LOST)
    cluster = drill.world.cluster
    dropped = [e.value for n in range(PARTITIONS) for _, e in cluster.log(Partition(DUPLICATES, n)).visible()]
    out = [e.value for n in range(PARTITIONS) for _, e in cluster.log(Partition(OUTPUT, n)).visible()]
    seeded = [e.value for n in range(PARTITIONS) for _, e in cluster.log(Partition(SEEDED, n)).visible()]
    written = sum(cluster.log(Partition("in", n)).end - before[n] for n in range(PARTITIONS))
    assert len(out) + len(dropped) == written
    assert sorted(out, key=str) == sorted((b"text %d" % n for n in AFTER), key=str)
    assert set(dropped) <= set(out) | set(seeded)


def mirror(drill: Drill, copied: Mapping[str, str]) -> None:
    """A new cluster: topics have other ids, and those that are copied, under these names, other offsets, for retention has
    taken some of the input."""
    drill.world.kill_all()
    cluster = drill.world.cluster
    old = dict(cluster.topics)
    cluster.topics.clear()
    for name, topic in old.items():
        cluster.create(NewTopic(name, len(topic.logs), settings=topic.settings))
        if copied.get(name, name) != name:
            cluster.create(NewTopic(copied[name], len(topic.logs)))
        for number, log in enumerate(topic.logs if name in copied else ()):
            messages = Messages()
            for offset, entry in log.visible():
                if name != "in" or offset >= 3:
                    messages.add(entry.key, entry.value, entry.headers, entry.timestamp_ms)
            cluster.write(Partition(copied[name], number), messages)
    for at, committed in cluster.group(GROUP).offsets.items():
        cluster.group(GROUP).offsets[at] = committed._replace(offset=committed.offset - 3)
    cluster.group(INDEX_GROUP).offsets.clear()


def retention_beside(drill: Drill) -> None:
    """The restored log was deleted up to a place behind the newest snapshot: nothing tells whose it is."""
    backup, _ = histories(drill)
    drill.restore(backup)
    b = outgrowing(drill, 20)
    for at in (LOG, DECISIONS):
        drill.world.cluster.log(at).trim(drill.world.cluster.log(at).end - 5)
    drill.take_over(b, "a")
    end_of_drill(drill, copies=True)


def retention_alone(drill: Drill) -> None:
    """Nothing was restored; the machine was away for longer than retention keeps decisions."""
    a, b = drill.start("a"), drill.start("b")
    drill.write(BEFORE)
    drill.stop(a)
    drill.write(AFTER)
    for at in (LOG, DECISIONS):
        drill.world.cluster.log(at).trim(drill.world.cluster.log(at).end - 5)
    drill.take_over(b, "a")
    end_of_drill(drill, copies=True)


def idle_for_long(drill: Drill) -> None:
    """Nothing was restored; retention took every block and every decision of an app that had nothing to do."""
    a = drill.start("a")
    drill.write(BEFORE)
    drill.stop(a)
    for at in (LOG, DECISIONS):
        drill.world.cluster.log(at).trim(drill.world.cluster.log(at).end)
    drill.start("a")
    drill.write(BEFORE)
    end_of_drill(drill)
    assert "not used" not in drill.told()


COMBINATIONS: dict[str, Callable[[Drill], None]] = {
    "1 the snapshot is ahead of the log: right, from the log": ahead,
    "2 the log has outgrown it: right, from the log": beside,
    "3 the log is as long as it, to the block: right, from the log": same_block,
    "4 snapshot and cluster are of one backup: right, from the snapshot": older_snapshot,
    "5 the folder alone is of the backup: right, from the snapshot": older_folder,
    "6 restored twice, snapshots of two lost histories: right, from the log": restored_twice,
    "7 shared folder, whole log: right, from the log": shared_whole_log,
    "8 shared folder, trimmed log: refused": shared_trimmed,
    "9 the same with --without-snapshots: right, copies come out again": shared_trimmed_without,
    "10 a standby is ahead of the log: right, it restores": standby_ahead,
    "11 the log has outgrown a standby: right, it restores": standby_beside,
    "12 the index judges on over the restore: right, it restores": live_index,
    "13 offsets older than the topics: right": older_offsets,
    "14 offsets newer than the topics: refused": newer_offsets,
    "15 input older than the rest, and shorter: refused": shorter_input,
    "16 input older than the rest, and grown again: refused": regrown_input,
    "17 decisions older than the rest: refused": older_decisions,
    "18 log older than the rest: refused": older_log,
    "19 internal topics older than the rest: right, copies come out again": older_internal_topics,
    "20 other topic ids: refused": other_ids,
    "21 mirrored offsets, the same app: refused": mirrored_under_the_same_app,
    "22 mirrored offsets, seeded: right": mirrored_and_seeded,
    "23 retention took what would tell, restored: right, copies come out again": retention_beside,
    "24 retention took what would tell, not restored: right, copies come out again": retention_alone,
    "25 retention took all, idle: right, from the snapshot": idle_for_long,
    "26 shared folder, trimmed log, all of one moment: right, from the snapshot": shared_trimmed_of_one_moment,
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_a_restored_cluster_gives_right_drops_or_is_refused(name: str, tmp_path: Path) -> None:
    COMBINATIONS[name](Drill(tmp_path))
