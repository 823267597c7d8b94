"""One input partition of four has no leader for a while: what does that cost the other three?

    python -m bench.kafka_leaderless

Three brokers, generated posts at a steady rate, two processes with both roles. First all is calm; then, for
as long, the broker is dead that has one input partition and nothing else. Exit code 1 if the other partitions
deliver less than 90 % of their messages in that time, if their p99 is more than three times that of the calm,
or if a message is lost or doubled.
"""

from __future__ import annotations

import argparse
import sys
import time

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as RawTopic

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.deployment import Deployment, Findings, Watcher, in_thread, judge, poll_until
from tests.broker.load import PARTITIONS, Load
from twinsieve.pipeline.operate.topic_plan import internal_topic, plan_of
from twinsieve.pipeline.settings.model import Settings

_LONELY = 3
"""Number of the broker that has one input partition and nothing else."""
_DEAD = PARTITIONS - 1
_SETTLE_S = 120.0
_MAX_RATIO = 3.0
_LEAST_SHARE = 0.9


def place_topics(deployment: Deployment, bootstrap: str) -> None:
    """Makes every topic; the lonely broker gets the last input partition, the others all the rest."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    settings = Settings.model_validate(
        {**deployment.settings, "topics": {"replication": 2, "min_in_sync": 1}}
    )
    compacted = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "min.insync.replicas": "1"}
    wanted = [_spread(name, 4, compacted) for name in ("__consumer_offsets", "__transaction_state")]
    for need in plan_of(settings).internal:
        topic = internal_topic(settings, need)
        wanted.append(_spread(topic.name, topic.partitions, dict(topic.settings)))
    wanted += [_spread(name, PARTITIONS, {"min.insync.replicas": "1"}) for name in deployment.outputs]
    wanted.append(
        RawTopic(
            f"{deployment.app}.in",
            PARTITIONS,
            replica_assignment=[[_LONELY] if n == _DEAD else [1 + n % 2] for n in range(PARTITIONS)],
            config={"min.insync.replicas": "1"},
        )
    )
    for answer in admin.create_topics(wanted).values():
        answer.result(30)


def _spread(name: str, partitions: int, config: dict[str, str]) -> RawTopic:
    return RawTopic(
        name,
        partitions,
        replica_assignment=[[1 + n % 2, 2 - n % 2] for n in range(partitions)],
        config=config,
    )


def _span(load: Load, watcher: Watcher, since_s: float, until_s: float) -> tuple[float, float]:
    """(share that came out by `until_s`, p99 in ms) of what was sent to the other partitions in that time."""
    sent = {place: at for place, at in load.sent_s.items() if place[0] != _DEAD and since_s <= at < until_s}
    came = {place: watcher.seen[place][0].at_s for place in sent if place in watcher.seen}
    times = sorted(at_s - sent[place] for place, at_s in came.items())
    # What was sent in the last moments is still on its way at the end.
    share = sum(at_s <= until_s for at_s in came.values()) / max(1, len(sent))
    return share, times[int(0.99 * len(times))] * 1000 if times else float("inf")


def leaderless(
    client: str, rate: float, seconds: float, *, keep_logs: bool = False
) -> tuple[Findings, tuple[float, float], tuple[float, float]]:
    """What the checker found; (share, p99 ms) of the calm, and of the time without a leader."""
    with Cluster(3, {"min.insync.replicas": "1"}, apart=True).start() as cluster:
        app = f"lone-{client[:2]}"
        deployment = Deployment(cluster.bootstrap, client, app, snapshot_every="5m")
        place_topics(deployment, cluster.bootstrap)
        load = Load(cluster.bootstrap, f"{app}.in", int((3 * seconds + 300) * rate), rate)
        watcher = Watcher(cluster.bootstrap, deployment.outputs)
        found = None
        try:
            deployment.start("a")
            deployment.start("b")
            watching, loading = in_thread(watcher.run), in_thread(load.run)
            poll_until(lambda: len(load.sent_s) - rate < len(watcher.seen) > 10 * rate, _SETTLE_S)
            calm_s = time.monotonic()
            time.sleep(seconds)
            dead_s = time.monotonic()
            cluster.nodes[_LONELY - 1].kill()
            time.sleep(seconds)
            back_s = time.monotonic()
            cluster.restart(_LONELY - 1)
            load.stop.set()
            loading.join(_SETTLE_S)
            poll_until(lambda: load.sent_s.keys() <= watcher.seen.keys(), _SETTLE_S)
            watcher.stop.set()
            watching.join(10.0)
            found = judge(load, watcher, deployment.outputs[0])
            return found, _span(load, watcher, calm_s, dead_s), _span(load, watcher, dead_s, back_s)
        finally:
            watcher.stop.set()
            load.stop.set()
            deployment.close(keep_logs=keep_logs or found is None or not found.good)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", action="append", choices=["kafka-python", "confluent"])
    parser.add_argument("--rate", type=float, default=1_000.0, help="messages a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="of calm, and of the time without")
    parser.add_argument("--keep-logs", action="store_true")
    options = parser.parse_args()
    print(machine_line())
    good = True
    for client in options.client or ["kafka-python", "confluent"]:
        found, calm, dead = leaderless(client, options.rate, options.seconds, keep_logs=options.keep_logs)
        print(f"{client}: {options.rate:g} generated posts/s, {options.seconds:g} s each")
        print(f"calm: p99 {calm[1]:.0f} ms; one partition of four without a leader: ", end="")
        print(f"the others deliver {dead[0]:.1%}, p99 {dead[1]:.0f} ms, {dead[1] / calm[1]:.2f} of the calm")
        print(found, flush=True)
        good = good and found.good and dead[0] >= _LEAST_SHARE and dead[1] <= _MAX_RATIO * calm[1]
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
