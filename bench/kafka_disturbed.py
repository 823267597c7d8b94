"""What people and neighbours do to a running app: how late messages get, and after how long it is said.

    python -m bench.kafka_disturbed [--case foreign ...] [--seconds 180]

Processes run under a steady load of posts to all partitions. Then one thing happens:

foreign     an ordinary consumer joins the group of the workers, for 1, 5 and 30 seconds
unreadable  a batch that unpacks beyond `kafka.max_unpacked_bytes` comes into one partition; three processes
deleted     the output topic is deleted, and made again 20 seconds later
log         nobody reads stderr, and the pipe is full from the start
folder      the state folder hangs for --seconds; alone, and beside a standby whose own folder is well

Each run prints after how many seconds the metrics of each process show it, how long the slowest message took
before and during it, and how many messages were lost or came out twice. `unreadable` leaves out the messages
of the partition with the batch. The exit code is 1 if a message was lost, came out twice or out of order.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.growth import Growth
from tests.broker.load import PARTITIONS, Place
from tests.broker.stranger import Stranger, delete_topics, producer
from tests.full_pipe import full_pipe
from tests.service.scraped import Pages, Series
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings

_BEFORE_S = 15.0
_AFTER_S = 20.0
_SAID_S = 60.0
_BAD = 2
_BAD_BYTES = 48 << 20
_GONE_S = 20.0
_UNREAD_S = 1.0
Metrics = dict[str, Series]


class _App:
    """An app under load, its processes and their pages.

    lines: what a case found; good: whether all came out once and in order, False until `end` has judged
    """

    def __init__(self, deployment: Deployment, bootstrap: str) -> None:
        self.deployment, self.bootstrap = deployment, bootstrap
        deployment.create_topics()
        self.source = f"{deployment.app}.in"
        self.growth = Growth(bootstrap, self.source, deployment.outputs, PARTITIONS)
        self.pages: dict[str, Pages] = {}
        self.lines: list[str] = []
        self.good = False

    def start(self, name: str, program: Sequence[str] = ()) -> None:
        self.pages[name] = self.deployment.start_shown(name, program=program)

    def until_ready(self) -> None:
        assert poll_until(lambda: all(map(Pages.is_ready, self.pages.values())), 120.0), "not ready"

    def settle(self, but: int | None = None) -> None:
        """Wait until all processes are ready, and report the slowest message of the next `_BEFORE_S`."""
        self.until_ready()
        assert poll_until(lambda: len(self.growth.come_out()) == PARTITIONS, 60.0), "nothing comes out"
        time.sleep(3.0)
        began_s = time.monotonic()
        time.sleep(_BEFORE_S)
        self.lines.append(f"slowest before {self.slowest(began_s, time.monotonic(), but):.2f} s")

    def said(self, true: Callable[[Metrics], bool], names: Sequence[str] = ()) -> str:
        """After how many seconds from now the metrics of each of these processes (default: all) show it."""
        wanted = names or list(self.pages)
        began_s, found = time.monotonic(), dict[str, float]()

        def look() -> bool:
            for name in wanted:
                if name not in found and true(self.pages[name].metrics()):
                    found[name] = time.monotonic() - began_s
            return len(found) == len(wanted)

        poll_until(look, _SAID_S)
        every = (f"{name} {found[name]:.1f} s" if name in found else f"{name} never" for name in wanted)
        return "said by " + ", ".join(every)

    def total(self, name: str) -> float:
        """The sum of a metric over all processes."""
        return sum(page.total(name) or 0.0 for page in self.pages.values())

    def slowest(self, since_s: float, until_s: float, but: int | None = None) -> float:
        found = self.growth.slowest(since_s, until_s)
        return max(slowest for partition, (_, _, slowest) in found.items() if partition != but)

    def end(self, is_owed: Callable[[Place, float], bool] = lambda *_: True) -> str:
        """End the load and judge; returns what to print.

        is_owed: whether a message must come out, by its place and the time when it was sent
        """
        growth = self.growth
        growth.stop_load()
        wanted = {place for place, sent_s in growth.sent_s.items() if is_owed(place, sent_s)}
        poll_until(lambda: wanted <= growth.seen_s.keys(), 90.0)
        lost = len(wanted - growth.seen_s.keys())
        self.good = not (lost or growth.extra or growth.disorder)
        return f"{lost} lost, {growth.extra} extra, {growth.disorder} out of order"


def _sum_of(name: str, page: Metrics) -> float:
    return sum(page.get(name, {}).values())


def _waits_long(page: Metrics) -> bool:
    return max(page.get("oldest_waiting_seconds", {}).values(), default=0.0) > 1.0


@contextmanager
def _running(deployment: Deployment, bootstrap: str, names: Sequence[str] = ()) -> Iterator[_App]:
    """The app with these processes, started; at the end all is stopped, and logs stay if it was not good."""
    app = _App(deployment, bootstrap)
    try:
        for name in names:
            app.start(name)
        yield app
    finally:
        app.growth.stop()
        deployment.close(keep_logs=not app.good)


class _Unread(Deployment):
    """Its processes write to a pipe that nobody reads."""

    pipe: int

    def _spawn(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.pipe, stderr=self.pipe, start_new_session=True
        )
        self.processes[name] = process
        return process


Found = tuple[list[str], bool]


def foreign(bootstrap: str, _: float) -> Found:
    with _running(Deployment(bootstrap, "foreign"), bootstrap, "ab") as app:
        app.settle()
        for stays_s in (1.0, 5.0, 30.0):
            joined_s = time.monotonic()
            stranger = Stranger(bootstrap, f"{app.deployment.app}.workers", app.source)
            said = ""
            if stays_s > 1.0:
                said = "; " + app.said(lambda page: _sum_of("foreign_members", page) > 0)
            time.sleep(max(0.0, joined_s + stays_s - time.monotonic()))
            stranger.leave()
            left_s = time.monotonic()
            poll_until(lambda: app.growth.worst_s() < float("inf"), 5.0)
            time.sleep(_AFTER_S)
            app.lines.append(
                f"for {left_s - joined_s:.0f} s, it read {stranger.read}{said}; "
                f"slowest from its leave on {app.slowest(left_s, left_s + _AFTER_S - 2.0):.1f} s, "
                f"{app.total('foreign_offsets_total'):.0f} offsets replaced so far"
            )
        app.lines.append(app.end())
    return app.lines, app.good


def unreadable(bootstrap: str, _: float) -> Found:
    deployment = Deployment(bootstrap, "unreadable", max_unpacked_bytes="8MiB", message_bytes="1MiB")
    with _running(deployment, bootstrap, "abc") as app:
        app.settle(_BAD)
        packer = producer(bootstrap, compression_type="zstd", message_max_bytes=2 * _BAD_BYTES)
        packer.produce(app.source, bytes(_BAD_BYTES), partition=_BAD)
        assert packer.flush(60) == 0
        came_s = time.monotonic()
        holders: list[str] = []

        def is_held() -> bool:
            for name, pages in app.pages.items():
                if pages.metrics().get("waiting_partitions", {}).get(("unreadable_batch",), 0.0) > 0:
                    holders.append(name)
            return bool(holders)

        assert poll_until(is_held, _SAID_S), "no process holds the partition"
        held_s = time.monotonic() - came_s
        oldest = app.said(_waits_long, holders[:1])
        time.sleep(max(0.0, came_s + _AFTER_S - time.monotonic()))
        slowest_s = app.slowest(came_s - 1.0, came_s + _AFTER_S - 2.0, _BAD)
        app.lines.append(
            f"held by {holders[0]} after {held_s:.1f} s, oldest waiting message {oldest}; slowest of other "
            f"partitions {slowest_s:.2f} s; other partitions: {app.end(lambda place, _: place[0] != _BAD)}"
        )
    return app.lines, app.good


def deleted(bootstrap: str, _: float) -> Found:
    with _running(Deployment(bootstrap, "deleted"), bootstrap, "ab") as app:
        app.settle()
        operator = KafkaBroker(KafkaSettings(bootstrap=bootstrap)).admin()
        output = app.deployment.outputs[0]
        delete_topics(bootstrap, output)
        gone_s = time.monotonic()
        said = app.said(_waits_long)
        time.sleep(max(0.0, gone_s + _GONE_S - time.monotonic()))

        def is_made() -> bool:
            # The broker refuses the name while it still deletes the topic.
            with suppress(BrokerError):
                operator.create_topic(NewTopic(output, PARTITIONS))
                return True
            return False

        assert poll_until(is_made, 60.0)
        back_s = time.monotonic()

        # What came out in the last moments may have gone with the topic before it was read.
        def is_owed(_: Place, sent_s: float) -> bool:
            return not gone_s - _UNREAD_S < sent_s < gone_s + _UNREAD_S

        sent_s = app.growth.sent_s.copy()
        wanted = {place for place, at_s in sent_s.items() if at_s < back_s and is_owed(place, at_s)}
        poll_until(lambda: wanted <= app.growth.seen_s.keys(), 120.0)
        out_s = time.monotonic() - back_s
        judged = app.end(is_owed)
        unread = sorted(at_s - gone_s for place, at_s in sent_s.items() if place not in app.growth.seen_s)
        app.lines.append(
            f"oldest waiting message {said}; all out {out_s:.1f} s after it was back; {judged}; not read, by "
            f"seconds from the deletion to their send: {[round(each_s, 2) for each_s in unread]}"
        )
    return app.lines, app.good


def log(bootstrap: str, _: float) -> Found:
    with full_pipe() as pipe:
        deployment = _Unread(bootstrap, "log")
        deployment.pipe = pipe
        with _running(deployment, bootstrap, "ab") as app:
            app.settle()
            dropped, judged = app.total("dropped_log_lines_total"), app.end()
            asked_s = time.monotonic()
            for name in app.pages:
                deployment.signal(name, signal.SIGTERM)
            codes = [process.wait(60) for process in deployment.processes.values()]
            app.lines.append(
                f"{dropped:.0f} lines dropped; {judged}; SIGTERM ended both after "
                f"{time.monotonic() - asked_s:.1f} s, codes {codes}"
            )
    return app.lines, app.good


def folder(bootstrap: str, seconds: float) -> Found:
    found = [_hanging(bootstrap, seconds, has_standby=each) for each in (False, True)]
    return [line for lines, _ in found for line in lines], all(good for _, good in found)


def _hanging(bootstrap: str, seconds: float, *, has_standby: bool) -> Found:
    deployment = Deployment(bootstrap, f"folder-{has_standby:d}", snapshot_every="5s")
    flag, state = deployment.folder / "HANG", deployment.folder / "state"
    with _running(deployment, bootstrap) as app:
        app.start("a", [sys.executable, "-m", "tests.broker.hung_program", str(state), str(flag)])
        app.until_ready()
        if has_standby:
            deployment.set("state", dir=str(deployment.folder / "own"))
            app.start("b")
        app.settle()
        flag.touch()
        began_s = time.monotonic()
        said = app.said(lambda page: _sum_of("state_hung_seconds", page) > 0, ["a"])
        time.sleep(max(0.0, began_s + seconds - time.monotonic()))
        slowest_s = app.slowest(began_s, time.monotonic() - 1.0)
        flag.unlink()
        app.lines.append(
            f"{'with a standby' if has_standby else 'alone'}: slowest while the folder hangs for "
            f"{seconds:.0f} s {slowest_s:.2f} s ({said}); {app.end()}"
        )
    return app.lines, app.good


_CASES = {each.__name__: each for each in (foreign, unreadable, deleted, log, folder)}


def main() -> None:
    """Print the machine and what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", choices=[*_CASES])
    parser.add_argument("--seconds", type=float, default=180.0, help="how long the folder hangs")
    options = parser.parse_args()
    print(machine_line(), flush=True)
    good = True
    with Cluster(lives_long=True).start() as cluster:
        for case in options.case or _CASES:
            lines, is_good = _CASES[case](cluster.bootstrap, options.seconds)
            good = good and is_good
            print("\n  ".join([f"{case}: {'good' if is_good else 'WRONG'}", *lines]), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
