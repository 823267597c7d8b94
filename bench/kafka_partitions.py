"""Whether many input partitions keep up: `python -m bench.kafka_partitions --partitions 400 --rate 2000`.

A broker, two processes with both roles, generated posts at a steady rate, to each partition in turn. Prints
seconds until both are ready, seconds from the send of a message to its read-committed arrival, how far the
outputs are behind when the load ends, and CPU of each process. The reader lets the broker gather messages for
a quarter of a second, so times are up to that much too long. Then one process is killed with -9 under
load: seconds until its partitions emit again. --program measures another checkout.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from bench.machine import cpu_seconds, machine_line, machine_time
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load
from tests.service.scraped import Pages

_LIMIT_S = 180.0
_GATHERS_MS = 250


def main() -> None:
    """Print machine, input and numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, default=400)
    parser.add_argument("--rate", type=float, default=2_000.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--skip", type=float, default=10.0, help="seconds that do not count")
    parser.add_argument("--program", type=Path, help="the twinsieve of another checkout")
    parser.add_argument("--no-kill", action="store_true", help="end after the load, without the kill")
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    program = [str(options.program.absolute())] if options.program else [sys.executable, "-m", "twinsieve"]
    print(machine_line())
    with Cluster(lives_long=True).start() as cluster:
        app = "many"
        deployment = Deployment(
            cluster.bootstrap,
            app,
            snapshot_every="5m",
            partitions=options.partitions,
            program=program,
        )
        watcher = Watcher(cluster.bootstrap, deployment.outputs, options.partitions, gathers_ms=_GATHERS_MS)

        def load(seconds: float, seed: int) -> Load:
            count = int(seconds * options.rate)
            source = f"{app}.in"
            return Load(
                cluster.bootstrap, source, count, options.rate, seed=seed, partitions=options.partitions
            )

        try:
            deployment.create_topics()
            began_s = time.monotonic()
            pages = [deployment.start_shown(name) for name in "ab"]
            pids = {name: process.pid for name, process in deployment.processes.items()}
            assert poll_until(lambda: all(map(Pages.is_ready, pages)), _LIMIT_S), "not ready"
            ready_s = time.monotonic() - began_s
            in_thread(watcher.run)
            warm, counted, last = load(options.skip, 2), load(options.seconds, 3), load(20.0, 4)
            in_thread(warm.run).join()
            used = {name: cpu_seconds(pid) for name, pid in pids.items()}
            machine = machine_time()
            in_thread(counted.run).join()
            behind = len(warm.sent_s) + len(counted.sent_s) - len(watcher.seen)
            now = machine_time()
            busy = 1 - (now.idle - machine.idle) / (now.all - machine.all)
            cores = ", ".join(
                f"{name} {(cpu_seconds(pid) - used[name]) / options.seconds:.2f}"
                for name, pid in pids.items()
            )
            ended_s = time.monotonic()
            wanted = warm.sent_s.keys() | counted.sent_s.keys()
            poll_until(lambda: wanted <= watcher.seen.keys(), _LIMIT_S)
            drained_s = time.monotonic() - ended_s
            counted.sent_s |= warm.sent_s
            found = judge(counted, watcher, deployment.outputs[0], since_s=min(counted.sent_s.values()))
            print(
                f"input: generated posts at {options.rate:g} messages/s for {options.seconds:g} s, "
                f"{options.partitions} partitions\n"
                f"both ready after {ready_s:.1f} s; {busy:.0%} of the machine is busy; cores: {cores}\n"
                f"p50 {found.p50_ms:.0f} ms, p99 {found.p99_ms:.0f} ms, slowest {found.worst_s:.1f} s; "
                f"{behind} messages ({behind / options.rate:.1f} s) behind at the end of the load, "
                f"all out {drained_s:.1f} s later\n"
                f"{found.lost} lost, {found.extra} extra, {found.orphans} orphans, "
                f"{found.disorder} out of order",
                flush=True,
            )
            if options.no_kill:
                return
            thread = in_thread(last.run)
            time.sleep(5)
            killed_s = time.monotonic()
            deployment.kill("b")
            thread.join()
            out = poll_until(lambda: last.sent_s.keys() <= watcher.seen.keys(), _LIMIT_S)
            waits = max((watcher.seen[p][0].at_s for p in last.sent_s if p in watcher.seen), default=0.0)
            print(
                f"one process killed under load: "
                f"{'all' if out else 'NOT all'} out {waits - killed_s:.1f} s after the kill, "
                f"{max(0.0, waits - max(last.sent_s.values())):.1f} s after the last was sent"
            )
        finally:
            watcher.stop.set()
            time.sleep(0.3)
            deployment.close(keep_logs=options.keep_logs)


if __name__ == "__main__":
    main()
