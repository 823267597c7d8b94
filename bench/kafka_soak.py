"""Hurts a running deployment for a while and counts what was lost: `python -m bench.kafka_soak --seconds 60`.

Under a steady load of posts: kill -9 of processes with worker and index, SIGSTOP zombies with a
second process in their slot, processes that join and leave, kill -9 and restart of the broker; with
--shards the same for shards. A killed process is started again at once, as a supervisor would. The
checker knows nothing of how twinsieve works:
every input message must come out exactly once, in order, dropped ones for a leader that came out.
Exit code 1 unless 0 lost, 0 extra, 0 stuck, at the rate asked for and with a p99 within its limit; with
--shards also if no row was judged with an answer.
In brackets: the slowest message sent from a trouble to the next.
The p99 counts from the send, so also the time in which there is no broker; it is given without that as well.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from bench.machine import machine_line
from tests.broker.soak import MAX_P99_S, SESSION_S, shortcomings, soak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=3_000.0, help="messages a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=4.0, help="seconds between two troubles")
    parser.add_argument("--p99", type=float, help=f"most seconds ({MAX_P99_S:g})")
    parser.add_argument("--posts", type=Path, help="real posts, gzipped JSON lines")
    parser.add_argument("--keep-logs", action="store_true")
    parser.add_argument("--combined", action="store_true", help="kill the controller with the broker")
    parser.add_argument("--hard", action="store_true", help="wrong clocks; outputs take small batches")
    parser.add_argument(
        "--strangers", type=float, default=0.0, help="seconds that other consumers stay in the workers' group"
    )
    parser.add_argument(
        "--shards",
        type=int,
        default=0,
        help="shards; then only --p99 limits the times: one waits for the dead",
    )
    parser.add_argument(
        "--session", type=float, default=SESSION_S, help="of the broker, in seconds; more on a slow machine"
    )
    parser.add_argument(
        "--limited", action="store_true", help="a cgroup for each process, with the memory that lint says"
    )
    options = parser.parse_args()
    if options.limited and options.shards:
        parser.error("--limited is not for shards")
    print(machine_line())
    found, done = soak(
        options.seconds,
        options.rate,
        options.seed,
        options.pause,
        posts=options.posts,
        keep_logs=options.keep_logs,
        combined=options.combined,
        hard=options.hard,
        stranger_s=options.strangers,
        shards=options.shards,
        session_s=options.session,
        limited=options.limited,
    )
    what = "generated posts" if options.posts is None else f"posts of {options.posts.name}"
    print(f"seed {options.seed}, {options.rate:g} {what}/s, {options.seconds:g} s: {done}")
    print(found)
    max_s = math.inf if options.shards else MAX_P99_S
    max_s = max_s if options.p99 is None else options.p99
    short = shortcomings(found, options.seconds * options.rate, max_s)
    for line in short:
        print(f"TOO LITTLE: {line}")
    sys.exit(0 if found.good and not short else 1)


if __name__ == "__main__":
    main()
