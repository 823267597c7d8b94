"""docs/runbooks/disaster-recovery.md and new-cluster.md on a real broker: a backup that is put back, and a mirror that takes over."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.cluster import Cluster
from tests.broker.server import Node
from tests.broker.services import Service, settings_for, value_of, wait_for
from tests.broker.worlds import fresh, until_done
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Records
from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
from twinsieve.pipeline.operate.reset import apply, plan
from twinsieve.pipeline.operate.reset_targets import read_targets
from twinsieve.pipeline.service.seed import run_seed
from twinsieve.pipeline.settings.model import Settings

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def texts(seed: int, count: int) -> list[str]:
    """No two of them are alike, whatever the seeds."""
    draw = random.Random(seed)
    return [" ".join("".join(draw.choices(_LETTERS, k=6)) for _ in range(14)) for _ in range(count)]


def at_machine(settings: Settings, name: str, folder: Path) -> Settings:
    """The settings of a machine with a state folder of its own."""
    state = settings.state.model_copy(update={"dir": str(folder / name)})
    return settings.model_copy(update={"state": state})


def by_origin(records: Records) -> dict[str, tuple[bytes | None, str]]:
    """Value and leader of each message that came out, by where it was."""
    found = {}
    for value, headers in zip(records.values, records.headers, strict=True):
        held = {name: (text or b"").decode() for name, text in headers}
        assert held["twinsieve-origin"] not in found, "twice"
        found[held["twinsieve-origin"]] = value, held.get("twinsieve-leader", "")
    return found


def judged(service: Service, posts: list[str]) -> None:
    """These come in one by one, so that each is a block with a transaction of its own, and all come out."""
    for post in posts:
        before = service.count("out", "dup")
        service.post(post)
        wait_for(lambda wanted=before + 1: service.count("out", "dup") == wanted, service)  # type: ignore[misc]


def check(service: Service, wanted: list[str]) -> None:
    """Each message came out once; each text is in the output; each drop names a message there with its text."""
    out, dropped = by_origin(service.read("out")), by_origin(service.read("dup"))
    assert not out.keys() & dropped.keys()
    assert {value for value, _ in out.values()} == {value_of(text) for text in wanted}
    assert len(out) == len(wanted)
    for value, leader in dropped.values():
        assert out[leader][0] == value, f"{value!r} was dropped for {leader}"


def back_up(node: Node, folder: Path) -> None:
    """Copy the disk of a node that is down for a moment."""
    node.kill()
    shutil.copytree(node._data, folder)
    node.start()
    node.wait_ready()


def restore(node: Node, folder: Path) -> None:
    """Put the copy back."""
    node.kill()
    shutil.rmtree(node._data)
    shutil.copytree(folder, node._data)
    node.start()
    node.wait_ready()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """One node, whose disk is copied."""
    with Cluster(mortal=True).start() as made:
        yield made


@pytest.mark.needs("own broker")
def test_a_newer_state_folder_drops_nothing_after_a_cluster_is_restored_from_a_backup(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has outgrown the newer snapshot when its machine comes back; decisions lie at the same offsets in both
    histories."""
    settings = settings_for(cluster.bootstrap, tmp_path)
    service = Service(at_machine(settings, "a", tmp_path))
    common, lost, instead, new = texts(1, 3), texts(2, 5), texts(3, 9), texts(4, 2)
    service.start()
    judged(service, common)
    service.stop()
    back_up(cluster.nodes[0], tmp_path / "backup")
    service.start()
    judged(service, lost)
    service.stop()
    restore(cluster.nodes[0], tmp_path / "backup")
    service.settings = at_machine(settings, "b", tmp_path)
    service.start()
    judged(service, instead)
    service.stop()
    service.settings = at_machine(settings, "a", tmp_path)
    service.start()
    judged(service, [*lost, *new, *common])
    service.stop()
    check(service, [*common, *instead, *lost, *new])
    service.end()
    said = [record.getMessage() for record in caplog.records if "this snapshot is not used" in record.message]
    assert said, "the operator hears which file to delete"


@pytest.mark.minutes
@pytest.mark.needs("own broker")
def test_a_process_that_runs_on_while_its_cluster_is_restored_drops_nothing(
    cluster: Cluster, tmp_path: Path
) -> None:
    service = Service(settings_for(cluster.bootstrap, tmp_path))
    common, lost, new = texts(1, 3), texts(2, 5), texts(4, 2)
    service.start()
    judged(service, common)
    back_up(cluster.nodes[0], tmp_path / "backup")
    judged(service, lost)
    restore(cluster.nodes[0], tmp_path / "backup")
    for attempt in range(2):
        try:
            judged(service, [*lost, *new][service.count("out") - len(common) :])
            break
        except AssertionError:
            # A process may end by itself: its supervisor starts it again.
            assert service.error is not None
            assert attempt == 0
            service.stop()
            service.error = None
            service.start()
    judged(service, common)
    service.stop()
    check(service, [*common, *lost, *new])
    service.end()


def test_a_mirror_with_other_offsets_takes_over_after_a_seed(service: Service, tmp_path: Path) -> None:
    """The mirror copied the output, and the input without its beginning; what the old cluster read is skipped."""
    old = fresh("mirrored-output")
    emitted, read, new = texts(5, 4), texts(6, 1), texts(7, 3)
    service.broker.admin().create_topic(NewTopic(old, 1))
    service.post(*emitted, topic=old)
    service.post(*emitted[2:], *read)
    seeded = run_seed(service.settings, old, connect_by_settings, member="one")
    assert seeded.finished
    moves = plan(service.settings, service.broker, read_targets(["2"]))
    until_done(lambda: apply(service.settings, service.broker, moves))
    service.start()
    wait_for(lambda: service.count("out") == 1, service)
    judged(service, [*new, *emitted])
    out, dropped = by_origin(service.read("out")), by_origin(service.read("dup"))
    assert {value for value, _ in out.values()} == {value_of(text) for text in (*read, *new)}
    assert {value for value, _ in dropped.values()} == {value_of(text) for text in emitted}
    assert all(leader.startswith(f"{old}[0]@") for _, leader in dropped.values())
