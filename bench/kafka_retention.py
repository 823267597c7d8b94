"""Three brokers, topics without replicas, and retention that takes everything older than two minutes.

    python -m bench.kafka_retention --seconds 600

Under a steady load of generated posts, as in `bench.kafka_soak` processes are killed, frozen and join. Here a
broker that dies takes the leaders of its partitions along: of input, outputs, log, decisions and answers.
Half way the index is away for longer than retention keeps anything; two workers go on. Then it comes back.

The checker knows nothing of how twinsieve works. Every input message comes out exactly once, in order,
dropped ones for a leader that came out. Only a message whose record retention took before it was judged may
be missing, and there must be as many of those as the workers say they counted. No process ends by itself,
but one that another one has displaced. Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from tests.broker.load import PARTITIONS, Load, Place
from tests.broker.soak import Soak
from tests.broker.stranger import AdminClient, KafkaException, TopicPartition, admin, consumer
from tests.service.scraped import Pages

_SETTLE_S = 240.0
_KEPT_S = 120.0
_LOOK_S = 3.0
_BROKER = {
    # Topics without replicas take writes while they have their one broker.
    "min.insync.replicas": "1",
    "transaction.state.log.min.isr": "1",
}
_TRIMMED = re.compile(r"worker: \S+: retention deleted (\d+) messages before they were judged")
"""Said when it is counted. The metric says the same, but dies with the process."""
_ASKED = (0, -signal.SIGKILL, -signal.SIGTERM)
"""Exit codes of what the soak itself has ended; by the signal while the program is still being loaded."""
_DISPLACED = "another process"


@dataclass
class Retention:
    """Deletes messages older than `kept_s`, as a broker with small segments does."""

    bootstrap: str
    topics: dict[str, int]
    kept_s: float = _KEPT_S
    begins: dict[tuple[str, int], int] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Until stopped; a partition without a leader has to wait for the next look."""
        reader = consumer(self.bootstrap, "bench-retention")
        operator = admin(self.bootstrap)
        ends: list[tuple[float, tuple[str, int], int]] = []
        while not self.stop.wait(_LOOK_S):
            now = time.monotonic()
            for topic, count in self.topics.items():
                for number in range(count):
                    try:
                        end = reader.get_watermark_offsets(TopicPartition(topic, number), 1.0)[1]
                    except KafkaException:
                        continue
                    ends.append((now, (topic, number), end))
            due = {place: end for at, place, end in ends if at <= now - self.kept_s}
            ends = [each for each in ends if each[0] > now - self.kept_s]
            self._delete(
                operator, {place: end for place, end in due.items() if end > self.begins.get(place, 0)}
            )
        reader.close()

    def _delete(self, operator: AdminClient, before: dict[tuple[str, int], int]) -> None:
        if not before:
            return
        wanted = [TopicPartition(*place, end) for place, end in before.items()]
        for partition, answer in operator.delete_records(wanted, request_timeout=5).items():
            try:
                begin = answer.result(10).low_watermark
            except KafkaException:
                continue
            self.begins[partition.topic, partition.partition] = begin


class ClusterSoak(Soak):
    """Instead of the only broker one of three dies, and takes the leaders of its partitions along."""

    def __init__(
        self, cluster: Cluster, deployment: Deployment, seed: int, pause_s: float, rate: float
    ) -> None:
        super().__init__(cluster, deployment, seed, pause_s)
        self._rate = rate
        self._noted: set[int] = set()
        self.by_themselves: list[str] = []

    def _troubles(self) -> list[tuple[Callable[[], None], int]]:
        return [(self._kill, 4), (self._kill_both, 1), (self._zombie, 2), (self._visitor, 1), (self._node, 4)]

    def _node(self) -> None:
        self._restart(self._random.randrange(len(self._cluster.nodes)), 3.0, 15.0)

    def supervise(self) -> bool:
        """As for any soak; ends that nobody asked for are noted with the last line of their log."""
        for name, process in self._deployment.processes.items():
            if process.poll() not in (*_ASKED, None) and process.pid not in self._noted:
                self._noted.add(process.pid)
                self.by_themselves.append(f"{name}: {last_line(self._deployment, name)}")
        return super().supervise()

    def index_away(self, seconds: float) -> None:
        """Two workers and no index for `seconds`, then an index; returns when the workers no longer lag."""
        for slot in ("a", "b"):
            for name in self._living(slot):
                self._deployment.kill(name)
        workers = [self._deployment.start_shown(slot, "worker") for slot in ("a", "b")]
        self.done.append((time.monotonic(), "index_away"))
        time.sleep(seconds)
        self._deployment.start("index", role="index")
        for worker in workers:
            self._wait_for_worker(worker)

    def _wait_for_worker(self, worker: Pages) -> None:
        def caught_up() -> bool:
            lag = worker.total("lag_messages")
            return lag is not None and lag < _LOOK_S * self._rate

        poll_until(caught_up, _SETTLE_S)


def last_line(deployment: Deployment, name: str) -> str:
    """The last thing that a process said."""
    lines = deployment.log(name).read_text(errors="replace").splitlines()
    return lines[-1] if lines else "said nothing"


@dataclass(frozen=True)
class Outcome:
    """trimmed: messages that retention took before they were judged; counted: what the workers say of that

    ended: processes that ended by themselves, each with its last words
    """

    found: Findings
    trimmed: int
    counted: int
    ended: list[str]
    done: str

    @property
    def wrong_ends(self) -> list[str]:
        """Those that no other process had displaced."""
        return [line for line in self.ended if _DISPLACED not in line]

    @property
    def good(self) -> bool:
        return self.found.good and self.trimmed == self.counted and not self.wrong_ends


def retention(seconds: float, rate: float, seed: int, *, keep_logs: bool = False) -> Outcome:
    """What the checker found."""
    with Cluster(3, _BROKER, mortal=True).start() as cluster:
        app = "kept"
        deployment = Deployment(
            cluster.bootstrap,
            app,
            source={"trimmed": "continue"},
            poll_messages=1_000,
            pending_messages=2_000,
        )
        deployment.create_topics()
        load = Load(cluster.bootstrap, f"{app}.in", int((seconds + 900) * rate), rate, seed)
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        short = Retention(cluster.bootstrap, _topics(deployment))
        trouble = ClusterSoak(cluster, deployment, seed, 4.0, rate)
        outcome = None
        try:
            trouble.supervise()
            threads = [in_thread(call) for call in (watcher.run, load.run, short.run)]
            poll_until(lambda: len(load.sent_s) - rate < len(watcher.seen) > 0, 120.0)
            start_s = time.monotonic()
            away_s = _KEPT_S + 45.0
            trouble.run((seconds - away_s) / 2)
            poll_until(lambda: trouble.supervise() and not _behind(load, watcher, rate), _SETTLE_S)
            trouble.index_away(away_s)
            for name in ("a", "b", "index"):
                deployment.kill(name)
            trouble.run((seconds - away_s) / 2)
            load.stop.set()
            threads[1].join(120.0)
            short.stop.set()
            threads[2].join(30.0)

            def missing() -> set[Place]:
                return {
                    (number, offset)
                    for number, offset in load.sent_s.keys() - watcher.seen.keys()
                    if offset >= short.begins.get((load.topic, number), 0)
                }

            poll_until(lambda: trouble.supervise() and not missing(), _SETTLE_S)
            watcher.stop.set()
            threads[0].join(10.0)
            lost = missing()
            trimmed = load.sent_s.keys() - watcher.seen.keys() - lost
            for place in trimmed:
                del load.sent_s[place]
            # Dropped before retention took their leader: nobody knew then.
            for place, seen in list(watcher.seen.items()):
                watcher.seen[place] = [
                    replace(one, leader=None) if one.leader in trimmed else one for one in seen
                ]
            found = judge(load, watcher, deployment.outputs[0], start_s)
            said = "".join(log.read_text(errors="replace") for log in deployment.folder.glob("*.log"))
            counted = sum(map(int, _TRIMMED.findall(said)))
            kinds = [name for _, name in trouble.done]
            done = ", ".join(f"{kinds.count(kind)} × {kind}" for kind in sorted(set(kinds)))
            outcome = Outcome(found, len(trimmed), counted, trouble.by_themselves, done)
            return outcome
        finally:
            for thing in (watcher, load, short):
                thing.stop.set()
            deployment.close(keep_logs=keep_logs or outcome is None or not outcome.good)


def _topics(deployment: Deployment) -> dict[str, int]:
    """Partitions of each topic that retention works on."""
    app = deployment.app
    return {f"{app}.in": PARTITIONS, f"{app}.fingerprints": 1, f"{app}.decisions": 1, f"{app}.verdicts": 4}


def _behind(load: Load, watcher: Watcher, rate: float) -> bool:
    return len(load.sent_s) - len(watcher.seen) > 2 * rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=500.0, help="messages a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    outcome = retention(options.seconds, options.rate, options.seed, keep_logs=options.keep_logs)
    print(
        f"seed {options.seed}, {options.rate:g} generated posts/s, {options.seconds:g} s, "
        f"retention {_KEPT_S:g} s: {outcome.done}"
    )
    print(outcome.found)
    print(f"retention took {outcome.trimmed} messages never judged; workers counted {outcome.counted}")
    for line in outcome.wrong_ends:
        print(f"ENDED BY ITSELF: {line}")
    print("OK" if outcome.good else "WRONG")
    sys.exit(0 if outcome.good else 1)


if __name__ == "__main__":
    main()
