"""What the status pages of `run` cost: CPU of a refresh with 1,000 drops, and judging with a page open.

    python -m bench.status_pages [--refreshes 60] [--pairs 5] [--messages 100000]

Refresh: a page with 1,000 drops asks for what is new: as many drops as are taken a second, and the texts of
their leaders. CPU of the process that serves, all of it. Also the whole page as it is opened, and the same as
JSON.
Judging: one process with both roles on a broker of its own, which is full at the start; without pages, and
with pages, texts and a client that opens the page and refreshes it each second. These run in turn, `--pairs`
times; above 1 the process with pages was faster. The rate leaves out the first quarter of the messages, in
which the page is opened and the client that reads leaders connects, once a process. CPU is that of the
process, from its start on. The machine's speed drifts, so quote the median ratios. `--pairs 0`: no judging.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import orjson

from bench.kafka_throughput import progress
from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment
from tests.broker.load import Load
from tests.broker.server import free_ports
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import MOST_DROPS
from twinsieve.pipeline.status_pages.drops import A_SECOND, Drops, text_reader
from twinsieve.pipeline.status_pages.figures import StatusFigures
from twinsieve.pipeline.status_pages.log_tail import LogTail
from twinsieve.pipeline.status_pages.server import StatusPages, StatusServer
from twinsieve.pipeline.tools.generate.stream import generate
from twinsieve.pipeline.wire.positions import pack_positions
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.stages.contract import Kind, Verdicts

_LAST = re.compile(rb'data-last="(\d+)"')
_LIMIT_S = 300.0
_CLIENT = """
import http.client, sys
for line in sys.stdin:
    asked = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    asked.request("GET", line.strip())
    body = asked.getresponse().read()
    asked.close()
    sys.stdout.buffer.write(b"%d\\n" % len(body) + body)
    sys.stdout.buffer.flush()
"""


class _FastClock(SystemClock):
    """A clock that runs so fast that every drop is taken."""

    def monotonic_s(self) -> float:
        """Seconds since some start."""
        return super().monotonic_s() * 1e6


class _Stream:
    """Drops of generated posts: the pair of each is a post and its repeat."""

    def __init__(self, drops: Drops) -> None:
        self._drops = drops
        posts = list(generate(20_000, truth=True))
        texts = {post["id"]: post["text"] for post in posts}
        pairs = [(post, texts[post["duplicate_of"]]) for post in posts if "duplicate_of" in post]
        self._pairs = itertools.cycle(pairs)
        self._offset = 0

    def drop(self, count: int) -> None:
        """Drop this number of posts, and set the texts of their leaders."""
        for post, kept in itertools.islice(self._pairs, count):
            self._offset += 2
            verdicts = Verdicts.blank(1, fill={"kinds": Kind.NEAR, "matched": 9, "compared": 10})
            verdicts.leaders[:] = pack_positions(0, 0, np.array([self._offset]))
            ruling = Ruling(0, 1, Result.JUDGED, 0, 1, verdicts=verdicts, topics={0: "posts"})
            values: list[bytes | None] = [orjson.dumps(post)]
            records = Records(Partition("posts", 0), [self._offset + 1], [0], [None], values)
            self._drops.take(records, ruling)
            for leader in self._drops.without_leader():
                self._drops.set_leader(leader, kept, "")


def refreshes(count: int) -> None:
    """Print what one refresh takes."""
    settings, clock = Settings(), _FastClock()
    drops, metrics = Drops(clock, "value", text_reader(MessageReader(settings))), Metrics(clock)
    metrics.set_info("bench", "both", "0" * 16)
    for number in range(16):
        metrics.pending.labels("posts", str(number)).set(number)
    figures = StatusFigures(settings, metrics, clock, lambda: "", lambda: "")
    server = StatusServer(("127.0.0.1", 0), StatusPages(figures, LogTail(), drops))
    stream = _Stream(drops)
    stream.drop(MOST_DROPS)
    with _asking(server.port) as ask:
        last = 0
        for path, about in (("/", "the whole page"), ("/status.json", "the same as JSON")):
            for times in ("first", "later"):
                cpu_ms, body = ask(path)
                print(f"{about}, {times} time: {cpu_ms:.1f} ms of CPU, {len(body):,} bytes")
            found = _LAST.search(body)
            last = int(found[1]) if found else last
        taken, sizes = [], []
        for _ in range(count):
            stream.drop(int(A_SECOND))
            cpu_ms, body = ask(f"/?after={last}")
            found = _LAST.search(body)
            last = int(found[1]) if found else last
            taken.append(cpu_ms)
            sizes.append(len(body))
        print(
            f"a refresh with {A_SECOND:.0f} new of {MOST_DROPS:,} drops: median {median(taken):.2f} ms of "
            f"CPU, largest {max(taken):.2f} ms, {median(sizes):,.0f} bytes ({count} refreshes)"
        )
    server.close()


@contextmanager
def _asking(port: int) -> Iterator[Callable[[str], tuple[float, bytes]]]:
    """A function that gets a page through another process: CPU milliseconds of this process, and the page."""
    client = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert client.stdin is not None
    assert client.stdout is not None

    def ask(path: str) -> tuple[float, bytes]:
        began = time.process_time()
        client.stdin.write(path.encode() + b"\n")
        client.stdin.flush()
        body = client.stdout.read(int(client.stdout.readline()))
        return (time.process_time() - began) * 1000, body

    yield ask
    client.stdin.close()
    client.wait()


def look(port: int) -> None:
    """Open the page of a process and refresh it each second, until the process ends."""
    last, is_open = 0, False
    while True:
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            asked.request("GET", f"/?after={last}")
            found = _LAST.search(asked.getresponse().read())
            last, is_open = int(found[1]) if found else last, True
        except OSError:
            if is_open:
                return
        finally:
            asked.close()
        time.sleep(1.0 if is_open else 0.1)


def judged(cluster: Cluster, run: int, messages: int, client: str, *, pages: bool) -> tuple[float, float]:
    """Messages a second of one process, and its CPU seconds."""
    app = f"pages-{run}"
    (port,) = free_ports(1)
    for name in ("PAGES", "TEXTS"):
        os.environ.pop(f"TWINSIEVE_HTTP__{name}", None)
    if pages:
        os.environ |= {"TWINSIEVE_HTTP__PAGES": f"127.0.0.1:{port}", "TWINSIEVE_HTTP__TEXTS": "true"}
    deployment = Deployment(cluster.bootstrap, client, app)
    looking = None
    try:
        deployment.create_topics()
        Load(cluster.bootstrap, f"{app}.in", messages).run()
        if pages:
            looking = subprocess.Popen([sys.executable, "-m", "bench.status_pages", "--look", str(port)])
        process = deployment.start("one")
        seen = progress(cluster.bootstrap, f"{app}.workers", f"{app}.in", messages, _LIMIT_S)
        last_s, done = seen[-1]
        first_s, before = next(at for at in seen if at[1] * 4 >= done)
        if done < messages:
            sys.exit(f"only {done:,} of {messages:,} messages within {_LIMIT_S:.0f} s")
        return (done - before) / (last_s - first_s), _cpu_s(process.pid)
    finally:
        deployment.close()
        if looking is not None:
            looking.kill()
            looking.wait()


def _cpu_s(pid: int) -> float:
    """CPU seconds that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print machine, CPU of a refresh, each pair and the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--refreshes", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--client", default="kafka-python", choices=["kafka-python", "confluent"])
    parser.add_argument("--look", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.look:
        look(given.look)
        return
    print(machine_line(), flush=True)
    refreshes(given.refreshes)
    if not given.pairs:
        return
    print(f"judging: {given.messages:,} generated posts, {given.client}, one process", flush=True)
    ratios, cpus = [], []
    with Cluster().start() as cluster:
        numbers = itertools.count()
        judged(cluster, next(numbers), given.messages, given.client, pages=False)  # compiles
        for pair in range(1, given.pairs + 1):
            runs = {
                pages: judged(cluster, next(numbers), given.messages, given.client, pages=pages)
                for pages in ((False, True) if pair % 2 else (True, False))
            }
            (rate, cpu_s), (watched_rate, watched_cpu_s) = runs[False], runs[True]
            ratios.append(watched_rate / rate)
            cpus.append(watched_cpu_s / cpu_s)
            print(
                f"pair {pair}: {rate:,.0f}/s {cpu_s:.1f} s without, {watched_rate:,.0f}/s "
                f"{watched_cpu_s:.1f} s with pages; with/without {ratios[-1]:.3f}, CPU {cpus[-1]:.3f}",
                flush=True,
            )
    print(f"median with/without {median(ratios):.3f}, CPU {median(cpus):.3f}")


if __name__ == "__main__":
    main()
