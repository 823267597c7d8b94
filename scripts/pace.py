"""How many million additions a second each of two processes does that run at once: `python3 scripts/pace.py`.

One process alone did some 20 on a quiet machine with two cores. Where two do far less, others take the cores
away, for tenths of a second at a time: real brokers then drop their clients, and the tests take hours.
"""

import subprocess
import sys

_PROGRAM = """
import time
until, count, total = time.perf_counter() + 5, 0, 0
while time.perf_counter() < until:
    for number in range(100_000):
        total += number
    count += 1
print(count / 50)
"""

processes = [subprocess.Popen([sys.executable, "-c", _PROGRAM], stdout=subprocess.PIPE) for _ in range(2)]
print(f"{min(float(process.communicate()[0]) for process in processes):.1f}")
