"""Memory, CPU, disk and log of the first process on Kafka, with the settings of the quick start.

    python -m bench.kafka_footprint [WINDOW ...]

WINDOW: near.window.messages in place of that of the file, with ten times as many in the exact window; each is
measured with topics and state of its own.

A broker, an input of PARTITIONS partitions, and one `twinsieve run -c config/kafka.yaml`. Memory is read once
when the process waits for the first message, and once when its near window is full: generated posts (seed 1)
are sent, a quarter of the window at a time, until it holds as many as `near.window.messages` says. Beside
them what `twinsieve lint` says at worst. Memory is of the whole process, Python and its packages included;
the peak is Linux's VmHWM. CPU is that of the process while the last quarter of the window was judged.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

from bench.kafka_meter import wait_committed
from bench.machine import cpu_seconds, machine_line, memory_mib
from bench.peers.programs import fill, make_topic
from tests.broker.cluster import Cluster
from tests.broker.deployment import poll_until
from tests.broker.load import PARTITIONS
from tests.broker.server import free_ports
from tests.broker.stranger import consumer
from tests.service.scraped import Pages
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.tools.generate.stream import generate

_LIMIT_S = 600.0
_SEED = 1
_QUICK_START = Path(__file__).resolve().parents[1] / "config" / "kafka.yaml"
_PROGRAM = [sys.executable, "-m", "twinsieve"]


def _log_bytes(bootstrap: str) -> int:
    """Bytes of the three internal topics on the broker."""
    names = Names("sieve")
    broker = KafkaBroker(KafkaSettings(bootstrap=bootstrap))
    found = broker.admin().log_bytes([names.fingerprints, names.decisions, names.verdicts])
    broker.close()
    return sum(found.values())


def main() -> None:
    """Print machine, and for each window what lint says and the two readings."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("windows", nargs="*", type=int, metavar="WINDOW")
    windows = parser.parse_args().windows or [load_settings(_QUICK_START, {}).near.window.messages]
    print(machine_line())
    for window in windows:
        _measure(window)


def _measure(window: int) -> None:
    print(f"near window: {window:,} kept messages")
    sized = _sets(f"near.window.messages={window}", f"exact.window.messages={10 * window}")
    lint = [*_PROGRAM, "lint", str(_QUICK_START), "--partitions", str(PARTITIONS), *sized]
    told = subprocess.run(lint, capture_output=True, text=True, check=True).stdout
    print(f"lint, at worst: {re.findall(r'both roles: .*', told)[0]}")
    with Cluster().start() as cluster, tempfile.TemporaryDirectory() as folder:
        make_topic(cluster.bootstrap, "posts")
        (port,) = free_ports(1)
        own = _sets(
            f"kafka.bootstrap={cluster.bootstrap}", f"state.dir={folder}", f"http.listen=127.0.0.1:{port}"
        )
        words = ["-c", str(_QUICK_START), *sized, *own]
        subprocess.run([*_PROGRAM, "topics", "create", *words], check=True, stdout=subprocess.DEVNULL)
        process = subprocess.Popen([*_PROGRAM, "run", *words], stderr=subprocess.DEVNULL)
        try:
            pages = Pages(port)
            poll_until(pages.is_ready, _LIMIT_S)
            print(f"waits for the first message: {_shown(process.pid)}", flush=True)
            posts, sent, cpu_s = generate(sys.maxsize, _SEED), 0, 0.0
            while (held := int(pages.total("window_messages") or 0)) < window:
                if process.poll() is not None:
                    raise SystemExit(f"run ended with exit code {process.returncode}")
                before_s = cpu_seconds(process.pid)
                fill(cluster.bootstrap, "posts", islice(posts, window // 4))
                sent += window // 4
                wait_committed(consumer(cluster.bootstrap, "sieve.workers"), "posts", sent, _LIMIT_S)
                cpu_s = (cpu_seconds(process.pid) - before_s) / (window // 4)
            print(f"has judged {sent:,} generated posts, of which its near window holds {held:,}: ", end="")
            print(f"{_shown(process.pid)}, {1e6 * cpu_s:.1f} µs of CPU a message")
            print(f"log on the broker: {_log_bytes(cluster.bootstrap) / sent:.0f} bytes a message")
        finally:
            process.terminate()
            process.wait(60)
        disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        print(f"state.dir after its end: {disk / 2**20:.0f} MiB", flush=True)


def _sets(*pairs: str) -> list[str]:
    return [word for pair in pairs for word in ("--set", pair)]


def _shown(pid: int) -> str:
    return f"now {memory_mib(pid, 'VmRSS'):,.0f} MiB, peak {memory_mib(pid, 'VmHWM'):,.0f} MiB"


if __name__ == "__main__":
    main()
