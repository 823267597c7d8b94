"""The broker is killed, stays away, and comes back: `python -m bench.kafka_outage --seconds 60`.

Two processes under a steady load of generated posts. They must go on by themselves, lose and double nothing,
and say so in some twenty lines at once and one every few seconds then. Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import sys

from bench.machine import machine_line
from tests.broker.outage import max_lines, outage


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=500.0, help="messages a second")
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    found, said, alive = outage(options.seconds, options.rate, keep_logs=options.keep_logs)
    print(f"broker away for {options.seconds:g} s at {options.rate:g} generated posts/s")
    print(f"{found}; log lines meanwhile {said}; {'both live' if alive else 'A PROCESS ENDED'}")
    sys.exit(0 if found.good and alive and max(said.values()) <= max_lines(options.seconds) else 1)


if __name__ == "__main__":
    main()
