"""`python -m tests.broker.wrong_clock AHEAD_S EVERY_S run -c FILE …`: a command of twinsieve whose clock is wrong.

AHEAD_S: how far ahead it is, below 0 behind; EVERY_S: it jumps to as far on the other side, and back, each time after
that many seconds; 0: never
"""

from __future__ import annotations

import sys
import time


def set_clock(ahead_s: float, every_s: float) -> None:
    """Let `time.time` and `time.time_ns` of this process show another time; what is monotonic stays."""
    real, real_ns = time.time, time.time_ns

    def ahead_now_s() -> float:
        return -ahead_s if every_s and time.monotonic() // every_s % 2 else ahead_s

    time.time = lambda: real() + ahead_now_s()
    time.time_ns = lambda: real_ns() + int(ahead_now_s() * 1e9)


if __name__ == "__main__":
    set_clock(float(sys.argv[1]), float(sys.argv[2]))
    # kafka-python takes time.time as it is when it is imported.
    from twinsieve.pipeline.commands.cli import main

    sys.exit(main(sys.argv[3:]))
