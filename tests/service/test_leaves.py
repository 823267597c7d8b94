"""A process that ends leaves its groups whatever the reason, and one that cannot work yet takes no partition.

Sessions of members never time out here, so partitions move only when a member leaves.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.memory.broker import MemoryBroker
from tests.service.running import Service, came_out, patient_cluster, small, wait_for
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import AbortableError, FatalError, Messages, Partition
from twinsieve.stages.errors import StateError

NAMES = Names("t")
COUNT = 4
_FAULTS = {
    "a refusal": StateError("posts[0]: it lost messages"),
    "a missing right": FatalError("not allowed", fenced=True),
    "a defect": ZeroDivisionError("a bug"),
    "no memory": MemoryError("no memory"),
}


class Processes:
    """Processes of one app; in process `a` the role `role` meets an error at `step` once `on` is set."""

    def __init__(self, folder: Path) -> None:
        self.cluster = patient_cluster()
        self.cluster.create(NewTopic("posts", COUNT))
        windows = {name: {"window": {"messages": 1_000}} for name in ("near", "exact")}
        self._settings = small(folder, {}, **windows)
        self.on = threading.Event()
        self.role, self.step, self.error = "", "", Exception()
        self.failures = self._posted = 0
        self._services: list[Service] = []

    def start(self, name: str) -> Service:
        def fail(step: str) -> None:
            if self.on.is_set() and step == self.step and threading.current_thread().name == self.role:
                self.failures += 1
                raise self.error

        made = (lambda cluster: MemoryBroker(cluster, fail)) if name == "a" else MemoryBroker
        self._services.append(Service(self._settings, self.cluster, made, member=name, role="both"))
        return self._services[-1]

    def members(self, group: str) -> set[str | None]:
        return {member.instance for member in self.cluster.group(group).members.values()}

    def post(self) -> None:
        """One more message in each partition."""
        for number in range(COUNT):
            messages = Messages()
            messages.add(None, orjson.dumps({"text": f"{self._posted} 今天武汉下雨了 {number}"}))
            self.cluster.write(Partition("posts", number), messages)
        self._posted += COUNT

    def wait_until_out(self) -> None:
        topics = ("posts.unique", "posts.duplicates")
        wait_for(lambda: came_out(self.cluster, *topics) == self._posted, f"{self._posted} messages")

    def wait_for_members(self, *names: str) -> None:
        for group, role in ((NAMES.workers, "worker"), (NAMES.index, "index")):
            want = {f"{name}-{role}" for name in names}
            wait_for(lambda group=group, want=want: self.members(group) == want, f"{want} in {group}")  # type: ignore[misc]

    def wait_for_failures(self, more: int) -> None:
        wanted = self.failures + more
        wait_for(lambda: self.failures >= wanted, f"{more} failures")

    def close(self) -> None:
        for each in self._services:
            each.stop.set()
            each.join()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("role", ["worker", "index"])
@pytest.mark.parametrize("fault", _FAULTS)
def test_who_ends_by_an_error_of_one_role_leaves_both_groups(
    processes: Processes, fault: str, role: str
) -> None:
    bad = processes.start("a")
    processes.post()
    processes.wait_until_out()
    processes.start("b")
    processes.wait_for_members("a", "b")
    processes.role, processes.error = f"role-{role}", _FAULTS[fault]
    processes.step = "transactor.commit.before" if role == "worker" else "consumer.poll.before"
    processes.on.set()
    processes.post()
    bad.join()
    assert bad.error is _FAULTS[fault]
    processes.wait_for_members("b")
    processes.post()
    processes.wait_until_out()


def test_a_worker_takes_no_partition_from_others_before_its_index_is_restored(processes: Processes) -> None:
    processes.start("b")
    processes.post()
    processes.wait_until_out()
    processes.role, processes.step = "role-index", "broker.reader"
    processes.error = AbortableError("the store of snapshots does not answer")
    processes.on.set()
    processes.start("a")
    for _ in range(2):
        processes.wait_for_failures(2)
        processes.post()
        processes.wait_until_out()
        assert processes.members(NAMES.workers) == {"b-worker"}
    processes.on.clear()
    processes.wait_for_members("a", "b")


def test_a_worker_that_is_alone_does_not_wait_for_its_index(processes: Processes) -> None:
    """Another process may judge, and partitions that nobody has are taken from nobody."""
    processes.role, processes.step = "role-index", "broker.reader"
    processes.error = AbortableError("the store of snapshots does not answer")
    processes.on.set()
    processes.start("a")
    wait_for(lambda: processes.members(NAMES.workers) == {"a-worker"}, "the worker joins")
    processes.on.clear()
    processes.post()
    processes.wait_until_out()
