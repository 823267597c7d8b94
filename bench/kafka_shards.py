"""An app with shards on a real broker, beside the same app without: CPU, memory, pauses, latency.

    python -m bench.kafka_shards cost [--kept 4000000] [--segments 16] [--rate 5000]
    python -m bench.kafka_shards pauses|latency [--kept 400000] …
    python -m bench.kafka_shards slow [--kept 480000] [--segments 60] [--messages 60000] …
    python -m bench.kafka_shards verdicts [--kept 20000] [--segments 4] [--posts FILE.jsonl.gz …]

The index, a worker and three shards are processes of their own, on this machine; generated posts. The near
window is filled first, so that it has the full segments that were asked for.

cost: CPU time of the processes from /proc for the same number of posts: with one segment (a near window as
large as one of the segments), with all segments in one process, and with shards; the last two in turn. All at
the same rate: what a process does once for each poll and transaction is shared by more messages in a faster
app (--rate 0: as fast as each goes). Processes that share cores and caches take longer for the same work: the
worker shows how much. Memory is the index's RssAnon, median and maximum of a run: the open segment grows and
is sealed meanwhile. All have the same window for exact copies.
pauses: the longest silence of the outputs at --rate while nothing happens, and while shards join, leave,
restart one after the other, are killed and frozen, with one and with two replicas.
latency: from a message's send to its read-committed arrival, in turn without and with shards.
slow: how long --messages take that were posted as fast as that goes, in turn without shards, and with one
that gets all or 20, 6 and 2 % of each second (SIGSTOP); and a stream of 500 a second.
verdicts: posts of each file, and posts with a counter, go through an app with shards in one order; each must
come out where one plain loop with the same window puts it, with the leader that it names. The window is empty
first.
"""

from __future__ import annotations

import argparse
import gzip
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import orjson

from bench.kafka_meter import wait_committed
from bench.machine import cpu_seconds, machine_line, memory_mib
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.load import Load
from tests.broker.stranger import consumer
from tests.service.scraped import Pages
from tests.twins import batch_of
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.settings.model import KafkaSettings, Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.stages.contract import Kind
from twinsieve.stages.judge.batch_sieve import BatchSieve

_LIMIT_S = 1_800.0
_SHARDS = ("s1", "s2", "s3")
_MEMORY = "8GiB"
_LOOK_S = 0.5
_COST_RATE, _RATE, _FED = 5_000.0, 1_000.0, 500.0
"""Messages a second for cost, for pauses and latency, and for slow."""
_SHARES = (0.0, 1.0, 0.2, 0.06, 0.02)
"""Of each second that shards get; 0: there are none."""
_PART = 1_000
"""Messages that are written at once for verdicts."""


class Cost(NamedTuple):
    """cpu: µs a message of each process; usual_mib, most_mib: median and maximum of the index's memory"""

    cpu: dict[str, float]
    usual_mib: float
    most_mib: float

    def __str__(self) -> str:
        each = " + ".join(f"{name} {us:.1f}" for name, us in self.cpu.items())
        memory = f"{self.usual_mib:,.0f} MiB, at most {self.most_mib:,.0f}"
        return f"{each} = {sum(self.cpu.values()):.1f} µs, {memory}"


class App:
    """One deployment.

    segments: of its near window, which has room for `kept` messages in full ones
    exact: `exact.window.messages`; None: three times the near window
    """

    def __init__(self, bootstrap: str, name: str, kept: int, segments: int, exact: int | None = None) -> None:
        self.bootstrap = bootstrap
        self.segments = segments
        self.sent = 0
        self.pages: dict[str, Pages] = {}
        segment = kept // segments
        window = kept + (segment if segments > 1 else 0)
        self.deployment = Deployment(bootstrap, name, snapshot_every="1h")
        self.deployment.set("exact", window={"messages": exact or 3 * window})
        self.deployment.set("near", window={"messages": window, "age": "none"}, segment=segment)
        self.deployment.set("state", memory=_MEMORY, scratch=str(self.deployment.folder))
        self.deployment.create_topics()
        self._full = kept + segment // 2 if segments > 1 else kept

    def start(self, member: str, role: str) -> None:
        """Start a process, again in its place if it has ended."""
        self.pages[member] = self.deployment.start_shown(member, role)

    def run(self, *, shards: bool, replicas: int = 1, members: Sequence[str] = _SHARDS) -> None:
        """Start index and worker, with these shards if wanted, and wait until they work."""
        self.deployment.set("near", answers="shards" if shards else "none", replicas=replicas)
        broker = KafkaBroker(KafkaSettings(bootstrap=self.bootstrap))
        create(Settings.model_validate(self.deployment.settings), broker.admin())
        broker.close()
        self.start("index", "index")
        self.start("worker", "worker")
        for member in members if shards else ():
            self.start(member, "shard")
        _wait(lambda: self.pages["index"].total("index_live") == 1.0, "no index judges")
        if shards and self.kept():
            self.post(200)
            _wait(self.is_answered, "shards do not answer for all segments")

    def is_answered(self) -> bool:
        """Whether shards answer for every full segment, as the index sees it."""
        time.sleep(0.5)
        return self.pages["index"].total("index_unanswered_segments") == 0.0

    def end(self) -> None:
        """Stop all processes and wait for their ends."""
        for name in self.deployment.processes:
            self.deployment.signal(name, signal.SIGTERM)
        for process in self.deployment.processes.values():
            process.wait(300)
        self.deployment.processes.clear()

    def post(self, messages: int, rate: float | None = None) -> None:
        """Write this many other posts, and wait until all are judged and came out."""
        name = self.deployment.app
        Load(self.bootstrap, f"{name}.in", messages, rate, seed=1_000 + self.sent).run()
        self.sent += messages
        done = wait_committed(consumer(self.bootstrap, f"{name}.workers"), f"{name}.in", self.sent, _LIMIT_S)
        if done < self.sent:
            raise SystemExit(f"not judged in time; logs: {self.deployment.folder}")

    def kept(self) -> float:
        """Messages in the near window."""
        return self.pages["index"].total("window_messages") or 0.0

    def fill(self) -> None:
        """Post until all segments are full, and the open one is half full."""
        self.run(shards=False)
        while (missing := self._full - self.kept()) > 0:
            self.post(max(1_000, int(min(missing, 500_000))))

    def cost(self, messages: int, rate: float | None) -> Cost:
        """What the processes take while this number of messages is judged."""
        before = self._cpu_seconds()
        looks = [self._index_mib()]
        done = threading.Event()

        def look() -> None:
            while not done.wait(_LOOK_S):
                looks.append(self._index_mib())

        looking = in_thread(look)
        self.post(messages, rate)
        done.set()
        looking.join()
        after = self._cpu_seconds()
        cpu = {name: 1e6 * (after[name] - before[name]) / messages for name in after}
        return Cost(cpu, statistics.median(looks), max(looks))

    def _cpu_seconds(self) -> dict[str, float]:
        return {name: cpu_seconds(process.pid) for name, process in self.deployment.processes.items()}

    def _index_mib(self) -> float:
        return memory_mib(self.deployment.processes["index"].pid, "RssAnon")

    def answer_bytes(self) -> float:
        """Bytes of all answers of the shards that run."""
        shards = [pages for name, pages in self.pages.items() if name in _SHARDS]
        return sum(pages.total("shard_answered_bytes_total") or 0.0 for pages in shards)


def _wait(true: Callable[[], bool], otherwise: str) -> None:
    if not poll_until(true, _LIMIT_S):
        raise SystemExit(otherwise)


def cost(bootstrap: str, options: argparse.Namespace) -> None:
    """Print CPU and memory with one segment, with all, and with all and shards."""
    rate = _COST_RATE if options.rate is None else options.rate or None
    print("as fast as each goes" if rate is None else f"{rate:,.0f} messages/s")
    exact = 3 * options.kept
    one = App(bootstrap, "one", options.kept // options.segments, 1, exact)
    one.fill()
    ones = [one.cost(options.messages, rate) for _ in range(options.pairs)]
    for each in ones:
        print(f"one segment: {each}", flush=True)
    one.end()
    one.deployment.close()
    app = App(bootstrap, "many", options.kept, options.segments, exact)
    try:
        start = time.monotonic()
        app.fill()
        print(f"filled: {app.kept():,.0f} kept, {time.monotonic() - start:.0f} s", flush=True)
        app.end()
        alone, shared, ratios = [], [], []
        for pair in range(1, options.pairs + 1):
            app.run(shards=False)
            app.post(2_000)
            alone.append(app.cost(options.messages, rate))
            app.end()
            app.run(shards=True)
            app.post(2_000)
            before = app.answer_bytes()
            shared.append(app.cost(options.messages, rate))
            answers = (app.answer_bytes() - before) / options.messages
            left = app.pages["index"].total("index_left_rows_total")
            taken = app.pages["index"].total("index_answered_rows_total")
            app.end()
            ratios.append(sum(shared[-1].cpu.values()) / sum(alone[-1].cpu.values()))
            print(
                f"pair {pair}: one process {alone[-1]}; shards {shared[-1]}, {answers:.0f} bytes of answers "
                f"a message, {left:,.0f} of {taken:,.0f} rows looked up again",
                flush=True,
            )

        def ratio(of: Callable[[Cost], float]) -> str:
            return f"{statistics.median(map(of, shared)) / statistics.median(map(of, ones)):.2f} ×"

        print(
            f"median: index {ratio(lambda run: run.cpu['index'])} one segment (worker, with the same work: "
            f"{ratio(lambda run: run.cpu['worker'])}), memory {ratio(lambda run: run.usual_mib)}, at most "
            f"{ratio(lambda run: run.most_mib)}; all processes {statistics.median(ratios):.2f} × one process"
        )
    finally:
        app.deployment.close(keep_logs=options.keep_logs)


class Trickle:
    """Posts at a steady rate, and who reads what comes out."""

    def __init__(self, app: App, rate: float) -> None:
        self._app = app
        self.load = Load(app.bootstrap, f"{app.deployment.app}.in", 10_000_000, rate, seed=77)
        self.watcher = Watcher(app.bootstrap, app.deployment.outputs)

    def __enter__(self) -> Trickle:
        # What came out before is read first.
        in_thread(self.watcher.run)
        _wait(lambda: len(self.watcher.seen) >= self._app.sent, "outputs cannot be read")
        self._thread = in_thread(self.load.run)
        _wait(lambda: len(self.load.sent_s) > 2_000, "nothing is written")
        _wait(lambda: self.waiting < 1_000, "nothing comes out")
        return self

    @property
    def waiting(self) -> int:
        """Messages that were written and have not come out."""
        return len(self.load.sent_s.keys() - self.watcher.seen.keys())

    def __exit__(self, *_: object) -> None:
        self.load.stop.set()
        self._thread.join()
        poll_until(lambda: not self.waiting, 120.0)
        self._app.sent += len(self.load.sent_s)
        self.watcher.stop.set()
        output = self._app.deployment.outputs[0]
        before = {place: seen for place, seen in self.watcher.seen.items() if place not in self.load.sent_s}
        if len(before) != self._app.sent - len(self.load.sent_s):
            print(f"EXTRA: {len(before)} messages that were not sent")
        for place in before:
            del self.watcher.seen[place]
        kept = {place for place, seen in before.items() if seen[0].topic == output}
        self.found = judge(self.load, self.watcher, output, kept=kept)

    def silence_s(self, call: Callable[[], object], seconds: float) -> float:
        """The longest silence of the outputs, from the call until this number of seconds after it."""
        self.watcher.longest_gap_s = 0.0
        call()
        time.sleep(seconds)
        _wait(lambda: self.waiting < 1_000, "nothing comes out")
        return self.watcher.longest_gap_s


def pauses(bootstrap: str, options: argparse.Namespace) -> None:
    """Print the longest silence for each thing that happens to shards."""
    app = App(bootstrap, "pauses", options.kept, options.segments)
    deployment = app.deployment

    def leave(member: str) -> None:
        deployment.signal(member, signal.SIGTERM)
        deployment.processes[member].wait(300)

    def restart_all() -> None:
        for member in _SHARDS:
            leave(member)
            app.start(member, "shard")
            _wait(lambda at=member: app.pages[at].total("shard_segments") is not None, member)  # type: ignore[misc]
            time.sleep(5.0)

    def frozen() -> None:
        deployment.signal("s2", signal.SIGSTOP)
        time.sleep(25.0)
        deployment.signal("s2", signal.SIGCONT)

    try:
        app.fill()
        app.end()
        for replicas in (1, 2):
            app.run(shards=True, replicas=replicas)
            with Trickle(app, options.rate or _RATE) as trickle:
                happens: dict[str, tuple[Callable[[], object], float]] = {
                    "nothing": (lambda: None, 30.0),
                    "one leaves": (lambda: leave("s3"), 10.0),
                    "one joins": (lambda: app.start("s3", "shard"), 30.0),
                    "all restart": (restart_all, 20.0),
                    "one is killed": (lambda: deployment.kill("s1"), 30.0),
                    "it comes back": (lambda: app.start("s1", "shard"), 30.0),
                    "one is frozen for 25 s": (frozen, 30.0),
                }
                for name, (call, seconds) in happens.items():
                    silence = trickle.silence_s(call, seconds)
                    print(f"replicas {replicas}, {name}: {silence:.2f} s", flush=True)
            print(f"replicas {replicas}: {trickle.found}", flush=True)
            app.end()
    finally:
        deployment.close(keep_logs=options.keep_logs)


def latency(bootstrap: str, options: argparse.Namespace) -> None:
    """Print times from send to arrival without and with shards, in turn."""
    app = App(bootstrap, "latency", options.kept, options.segments)
    ratios: list[tuple[float, float]] = []
    try:
        app.fill()
        app.end()
        for pair in range(1, options.pairs + 1):
            times = {}
            for shards in (False, True):
                app.run(shards=shards)
                with Trickle(app, options.rate or _RATE):
                    time.sleep(10.0)
                with Trickle(app, options.rate or _RATE) as trickle:
                    time.sleep(30.0)
                found = trickle.found
                times[shards] = found.p50_ms, found.p99_ms
                print(f"pair {pair}, {'shards' if shards else 'alone'}: {found}", flush=True)
                app.end()
            ratios.append((times[True][0] / times[False][0], times[True][1] / times[False][1]))
        p50, p99 = (statistics.median(each) for each in zip(*ratios, strict=True))
        print(f"median: p50 {p50:.2f} ×, p99 {p99:.2f} × those without shards")
    finally:
        app.deployment.close(keep_logs=options.keep_logs)


@contextmanager
def starved(app: App, share: float) -> Iterator[None]:
    """The shard runs for this share of each second."""
    done = threading.Event()

    def starve() -> None:
        while share < 1.0 and not done.is_set():
            shard.send_signal(signal.SIGSTOP)
            done.wait(1.0 - share)
            shard.send_signal(signal.SIGCONT)
            done.wait(share)

    shard = app.deployment.processes[_SHARDS[0]]
    starving = in_thread(starve)
    try:
        yield
    finally:
        done.set()
        starving.join()


def slow(bootstrap: str, options: argparse.Namespace) -> None:
    """Print how long a backlog takes without shards, and with one that gets all or a part of each second; and
    what a fed stream does with it."""
    app = App(bootstrap, "slow", options.kept, options.segments)
    times: dict[float, list[float]] = {}
    try:
        app.fill()
        app.end()
        for pair in range(1, options.pairs + 1):
            for share in _SHARES:
                app.run(shards=share > 0, members=_SHARDS[:1])
                with starved(app, share) if share else nullcontext():
                    began_s = time.monotonic()
                    app.post(options.messages)
                    times.setdefault(share, []).append(time.monotonic() - began_s)
                    print(f"pair {pair}, shards get {share:.0%}: {times[share][-1]:.1f} s", flush=True)
                app.end()
        alone = statistics.median(times[0.0])
        for share in _SHARES:
            print(f"shards get {share:.0%}: median {statistics.median(times[share]) / alone:.2f} × without")
        for share in _SHARES[2:]:
            app.run(shards=True, members=_SHARDS[:1])
            with starved(app, share), Trickle(app, options.rate or _FED) as trickle:
                time.sleep(60.0)
                out = 1 - trickle.waiting / len(trickle.load.sent_s)
            print(f"fed, shards get {share:.0%}: {out:.3f} out at the end; {trickle.found}", flush=True)
            app.end()
    finally:
        app.deployment.close(keep_logs=options.keep_logs)


def verdicts(bootstrap: str, options: argparse.Namespace) -> None:
    """Compare with a plain loop; exit code 1 if a message came out elsewhere, or named another leader."""
    with tempfile.TemporaryDirectory() as folder:
        counter = Path(folder, "counter.jsonl.gz")
        texts = (
            f"第{number}天打卡坚持早起读书学习加油努力，{number % 97}号" for number in range(options.messages)
        )
        counter.write_bytes(gzip.compress(b"".join(orjson.dumps({"text": text}) + b"\n" for text in texts)))
        wrong = [_verdicts(bootstrap, options, file) for file in (counter, *options.posts)]
    raise SystemExit(any(wrong))


def _verdicts(bootstrap: str, options: argparse.Namespace, posts: Path) -> int:
    """Messages of a file whose verdicts differ."""
    name = posts.name.partition(".")[0]
    app = App(bootstrap, name, options.kept, options.segments)
    lines = gzip.decompress(posts.read_bytes()).splitlines()[: options.messages]
    watcher = Watcher(bootstrap, app.deployment.outputs)
    try:
        app.run(shards=True)
        part = Path(app.deployment.folder, "part.jsonl.gz")
        for low in range(0, len(lines), _PART):
            # Shards have each segment before many rows are asked of it.
            _wait(app.is_answered, "shards do not answer for all segments")
            those = lines[low : low + _PART]
            part.write_bytes(gzip.compress(b"\n".join(those)))
            # All into one partition, so that they have one order.
            Load(bootstrap, f"{name}.in", len(those), posts=part, partitions=1).run()
            wait_committed(consumer(bootstrap, f"{name}.workers"), f"{name}.in", low + len(those), _LIMIT_S)
        in_thread(watcher.run)
        _wait(lambda: len(watcher.seen) >= len(lines), "not all came out")
        left = app.pages["index"].total("index_left_rows_total")
        taken = app.pages["index"].total("index_answered_rows_total")
        watcher.stop.set()
    finally:
        app.deployment.close(keep_logs=options.keep_logs)
    settings = Settings.model_validate(app.deployment.settings)
    scheme = judging_scheme_of(settings)
    batch = batch_of(*scheme.read([orjson.loads(line)["text"] for line in lines]))
    plain = BatchSieve(sieve_config(settings, scheme.scheme_id)).judge(batch)
    wrong = 0
    for row in range(len(lines)):
        (seen,) = watcher.seen[0, row]
        leader = (0, int(plain.leaders[row])) if plain.kinds[row] != Kind.UNIQUE else None
        wrong += (seen.topic == app.deployment.outputs[0], seen.leader) != (leader is None, leader)
    unique = int((plain.kinds == Kind.UNIQUE).sum())
    print(
        f"{name}: {len(lines):,} messages, {unique:,} unique, {wrong:,} not as in one "
        f"plain loop; {left:,.0f} of {taken:,.0f} rows (times segments) looked up although answered",
        flush=True,
    )
    return wrong


def main() -> None:
    """Print machine, input and what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["cost", "pauses", "latency", "slow", "verdicts"])
    parser.add_argument("--kept", type=int, default=4_000_000)
    parser.add_argument("--segments", type=int, default=16)
    parser.add_argument(
        "--messages", type=int, default=300_000, help="of each run of cost; at most, of each file of verdicts"
    )
    parser.add_argument(
        "--rate", type=float, help="messages a second: 5,000 for cost (0: as fast as it goes), else 1,000"
    )
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--posts", type=Path, nargs="*", default=[], help="files for verdicts")
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(
        f"{machine_line()}\n{options.kept:,} kept in {options.segments} full segments",
        flush=True,
    )
    with Cluster().start() as cluster:
        parts = {"cost": cost, "pauses": pauses, "latency": latency, "slow": slow, "verdicts": verdicts}
        parts[options.what](cluster.bootstrap, options)


if __name__ == "__main__":
    main()
