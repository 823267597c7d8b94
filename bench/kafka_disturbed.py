"""What people and neighbours do to a running app: how late messages get, and after how long it is said.

    python -m bench.kafka_disturbed [--client confluent] [--case foreign ...] [--seconds 180]

Processes run under a steady load of posts to all partitions. Then one thing happens:

foreign     an ordinary consumer joins the group of the workers, for 1, 5 and 30 seconds
unreadable  a batch that unpacks beyond `kafka.max_unpacked_bytes` comes into one partition; three processes
deleted     the output topic is deleted, and made again 20 seconds later
log         nobody reads stderr, and the pipe is full from the start
folder      the state folder hangs for --seconds; alone, and beside a standby whose own folder is well

Printed: seconds until the pages of each process say it, the slowest message before and meanwhile (in
`unreadable`: of the other partitions), and what was lost or came out twice; exit code 1 if anything was.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, poll_until
from tests.broker.growth import Growth
from tests.broker.load import PARTITIONS
from tests.broker.server import free_ports
from tests.broker.stranger import Stranger
from tests.full_pipe import full_pipe
from tests.service.scraped import Pages, Series

_BEFORE_S = 15.0
_AFTER_S = 20.0
_SAID_S = 60.0
_BAD = 2
_BAD_BYTES = 48 << 20
_GONE_S = 20.0
Metrics = dict[str, Series]


class _App:
    """An app under load, its processes and their pages."""

    def __init__(self, deployment: Deployment, bootstrap: str) -> None:
        self.deployment, self.bootstrap = deployment, bootstrap
        deployment.create_topics()
        self.source = f"{deployment.app}.in"
        self.growth = Growth(bootstrap, self.source, deployment.outputs, PARTITIONS)
        self.pages: dict[str, Pages] = {}

    def start(self, name: str) -> subprocess.Popen[bytes]:
        (port,) = free_ports(1)
        self.pages[name] = Pages(port)
        return self.deployment.start(name, listen=f"127.0.0.1:{port}")

    def settle(self) -> tuple[float, float]:
        """Wait until all processes are ready, then for `_BEFORE_S`: when that began and ended."""
        ready = lambda: all(page.status("/readyz") == 200 for page in self.pages.values())  # noqa: E731
        assert poll_until(ready, 120.0), "not ready"
        assert poll_until(lambda: len(self.growth.come_out()) == PARTITIONS, 60.0), "nothing comes out"
        time.sleep(3.0)
        began_s = time.monotonic()
        time.sleep(_BEFORE_S)
        return began_s, time.monotonic()

    def said(self, true: Callable[[Metrics], bool], names: Sequence[str] = ()) -> str:
        """After how many seconds from now the pages of each of these processes (default: all) say it."""
        began_s, found = time.monotonic(), dict[str, float]()

        def look() -> bool:
            for name in names or self.pages:
                if name not in found and true(self.pages[name].metrics()):
                    found[name] = time.monotonic() - began_s
            return len(found) == len(names or self.pages)

        poll_until(look, _SAID_S)
        wanted = names or self.pages
        every = (f"{name} {found[name]:.1f} s" if name in found else f"{name} never" for name in wanted)
        return "said by " + ", ".join(every)

    def slowest(self, since_s: float, until_s: float, but: int | None = None) -> float:
        found = self.growth.slowest(since_s, until_s)
        return max(slowest for partition, (_, _, slowest) in found.items() if partition != but)

    def end(self, held: int | None = None) -> tuple[str, bool]:
        """End the load and judge: what to print, and whether it is good. held: a partition that waits"""
        growth = self.growth
        growth.stop_load()
        wanted = {place for place in growth.sent_s if place[0] != held}
        poll_until(lambda: wanted <= growth.seen_s.keys(), 90.0)
        lost = len(wanted - growth.seen_s.keys())
        good = not (lost or growth.extra or growth.disorder)
        return f"{lost} lost, {growth.extra} extra, {growth.disorder} out of order", good

    def close(self, *, keep_logs: bool) -> None:
        self.growth.stop()
        self.deployment.close(keep_logs=keep_logs)


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


def foreign(bootstrap: str, client: str, _: float) -> Found:
    app = _App(Deployment(bootstrap, client, f"foreign-{client[:2]}"), bootstrap)
    lines, good = [], False
    try:
        app.start("a")
        app.start("b")
        began_s, ended_s = app.settle()
        lines.append(f"slowest before {app.slowest(began_s, ended_s):.2f} s")
        for stays_s in (1.0, 5.0, 30.0):
            joined_s = time.monotonic()
            stranger = Stranger(bootstrap, f"{app.deployment.app}.workers", app.source)
            said = ""
            if stays_s > 1.0:
                said = "; " + app.said(lambda page: sum(page.get("foreign_members", {}).values()) > 0)
            time.sleep(max(0.0, joined_s + stays_s - time.monotonic()))
            stranger.leave()
            left_s = time.monotonic()
            poll_until(lambda: app.growth.worst_s() < float("inf"), 5.0)
            time.sleep(_AFTER_S)
            count = sum(
                sum(page.metrics().get("foreign_offsets_total", {}).values()) for page in app.pages.values()
            )
            lines.append(
                f"for {left_s - joined_s:.0f} s, it read {stranger.read}{said}; "
                f"slowest from its leave on {app.slowest(left_s, left_s + _AFTER_S - 2.0):.1f} s, "
                f"{count:.0f} offsets replaced so far"
            )
        judged, good = app.end()
        lines.append(judged)
    finally:
        app.close(keep_logs=not good)
    return lines, good


def unreadable(bootstrap: str, client: str, _: float) -> Found:
    deployment = Deployment(
        bootstrap, client, f"unreadable-{client[:2]}", max_unpacked_bytes="8MiB", message_bytes="1MiB"
    )
    app = _App(deployment, bootstrap)
    lines, good = [], False
    try:
        for name in "abc":
            app.start(name)
        began_s, ended_s = app.settle()
        lines.append(f"slowest before {app.slowest(began_s, ended_s, _BAD):.2f} s")
        packer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": "zstd",
                "message.max.bytes": 2 * _BAD_BYTES,
                "log_level": 0,
            }
        )
        packer.produce(app.source, bytes(_BAD_BYTES), partition=_BAD)
        assert packer.flush(60) == 0
        came_s = time.monotonic()

        def waits(page: Metrics) -> bool:
            return page.get("waiting_partitions", {}).get(("unreadable_batch",), 0.0) > 0

        holder = [""]

        def is_held() -> bool:
            holder[0] = next((name for name, each in app.pages.items() if waits(each.metrics())), "")
            return bool(holder[0])

        poll_until(is_held, _SAID_S)
        held_s = time.monotonic() - came_s
        oldest = app.said(
            lambda page: max(page.get("oldest_waiting_seconds", {("", ""): 0.0}).values()) > 1.0,
            [holder[0] or "a"],
        )
        time.sleep(max(0.0, came_s + _AFTER_S - time.monotonic()))
        slowest_s = app.slowest(came_s - 1.0, came_s + _AFTER_S - 2.0, _BAD)
        judged, good = app.end(held=_BAD)
        lines.append(
            f"held by {holder[0]} after {held_s:.1f} s, oldest waiting message {oldest}; slowest of other "
            f"partitions {slowest_s:.2f} s; other partitions: {judged}"
        )
    finally:
        app.close(keep_logs=not good)
    return lines, good


def deleted(bootstrap: str, client: str, _: float) -> Found:
    app = _App(Deployment(bootstrap, client, f"deleted-{client[:2]}"), bootstrap)
    lines, good = [], False
    try:
        app.start("a")
        app.start("b")
        began_s, ended_s = app.settle()
        lines.append(f"slowest before {app.slowest(began_s, ended_s):.2f} s")
        operator, output = (
            AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}),
            app.deployment.outputs[0],
        )
        operator.delete_topics([output])[output].result()
        gone_s = time.monotonic()
        said = app.said(lambda page: max(page.get("oldest_waiting_seconds", {("", ""): 0.0}).values()) > 1.0)
        time.sleep(max(0.0, gone_s + _GONE_S - time.monotonic()))

        def is_made() -> bool:
            with suppress(Exception):
                operator.create_topics([NewTopic(output, PARTITIONS, 1)])[output].result()
                return True
            return False

        assert poll_until(is_made, 60.0)
        back_s = time.monotonic()
        sent = {place for place, at_s in app.growth.sent_s.copy().items() if at_s < back_s}
        poll_until(lambda: sent <= app.growth.seen_s.keys(), 120.0)
        out_s = time.monotonic() - back_s
        judged, good = app.end()
        lines.append(f"oldest waiting message {said}; all out {out_s:.1f} s after it was back; {judged}")
    finally:
        app.close(keep_logs=not good)
    return lines, good


def log(bootstrap: str, client: str, _: float) -> Found:
    lines, good = [], False
    with full_pipe() as pipe:
        deployment = _Unread(bootstrap, client, f"log-{client[:2]}")
        deployment.pipe = pipe
        app = _App(deployment, bootstrap)
        try:
            processes = [app.start("a"), app.start("b")]
            began_s, ended_s = app.settle()
            slowest_s = app.slowest(began_s, ended_s)
            dropped = [
                sum(page.metrics().get("dropped_log_lines_total", {}).values()) for page in app.pages.values()
            ]
            judged, good = app.end()
            asked_s = time.monotonic()
            for process in processes:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(60) for process in processes]
            lines.append(
                f"slowest {slowest_s:.2f} s, lines dropped {dropped}; {judged}; SIGTERM ended both after "
                f"{time.monotonic() - asked_s:.1f} s, codes {codes}"
            )
        finally:
            app.close(keep_logs=False)
    return lines, good


def folder(bootstrap: str, client: str, seconds: float) -> Found:
    lines, good = [], True
    for has_standby in (False, True):
        deployment = Deployment(
            bootstrap, client, f"folder-{client[:2]}-{has_standby:d}", snapshot_every="5s"
        )
        flag, state = deployment.folder / "HANG", deployment.folder / "state"
        hanging = [sys.executable, "-m", "tests.broker.hung_program", str(state), str(flag)]
        well, deployment._program = deployment._program, hanging
        app, is_good = _App(deployment, bootstrap), False
        try:
            app.start("a")
            assert poll_until(lambda page=app.pages["a"]: page.status("/readyz") == 200, 120.0)  # type: ignore[misc]
            if has_standby:
                deployment._program = well
                deployment.set("state", dir=str(deployment.folder / "own"))
                app.start("b")
            began_s, ended_s = app.settle()
            flag.touch()
            said = app.said(lambda page: max(page.get("state_hung_seconds", {(): 0.0}).values()) > 0.0, ["a"])
            time.sleep(max(0.0, ended_s + seconds - time.monotonic()))
            hung_s = time.monotonic()
            flag.unlink()
            slowest_s = app.slowest(ended_s, hung_s - 1.0)
            judged, is_good = app.end()
            lines.append(
                f"{'with a standby' if has_standby else 'alone'}: slowest before "
                f"{app.slowest(began_s, ended_s):.2f} s, while the folder hangs for {seconds:.0f} s "
                f"{slowest_s:.2f} s ({said}); {judged}"
            )
        finally:
            app.close(keep_logs=not is_good)
        good = good and is_good
    return lines, good


_CASES = {each.__name__: each for each in (foreign, unreadable, deleted, log, folder)}


def main() -> None:
    """Print the machine and what was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--client", action="append", choices=["kafka-python", "confluent"])
    parser.add_argument("--case", action="append", choices=[*_CASES])
    parser.add_argument("--seconds", type=float, default=180.0, help="how long the folder hangs")
    options = parser.parse_args()
    print(machine_line(), flush=True)
    good = True
    with Cluster(lives_long=True).start() as cluster:
        for client in options.client or ["kafka-python", "confluent"]:
            for case in options.case or _CASES:
                lines, is_good = _CASES[case](cluster.bootstrap, client, options.seconds)
                good = good and is_good
                print(
                    "\n  ".join([f"{client}, {case}: {'good' if is_good else 'WRONG'}", *lines]), flush=True
                )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
