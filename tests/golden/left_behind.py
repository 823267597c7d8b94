"""What a process left behind that was killed in the middle of a transaction, as a file for each format version.

`python -m tests.golden.left_behind` writes the file of the version that the program has now. The others stand for
older programs, and nothing can write them again.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import orjson
import zstandard

from tests.memory.broker import ManualClock, MemoryCluster
from tests.memory.log import Entry, Outcome, Transaction
from tests.service.test_changed_settings import Deployment, base, deployment, posts
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.records import Committed, Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.wire.frame import VERSION
from twinsieve.stages.judge.scheme import Scheme

FOLDER = Path(__file__).parent
COUNT = 60


def file_of(version: int, name: str = "left_behind") -> Path:
    """Where the file of a format version is. name: "older_snapshots": its snapshots have format 4"""
    return FOLDER / f"version_{version}" / f"{name}.zst"


def golden_scheme() -> Scheme:
    """Today's scheme under a name of its own: a newer Python has newer Unicode tables, and another name."""
    scheme = make_scheme(base("unused"))
    scheme.scheme_id = "golden"
    return scheme


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _dump(world: Deployment, folder: Path) -> bytes:
    topics = {}
    for name, topic in world.cluster.topics.items():
        topics[name] = [
            [
                log.beginning,
                [
                    [
                        entry.timestamp_ms,
                        _text(entry.key),
                        _text(entry.value),
                        [[header, _text(value)] for header, value in entry.headers],
                        entry.transaction.outcome.value if entry.transaction else None,
                        entry.control,
                    ]
                    for entry in log.entries
                ],
            ]
            for log in topic.logs
        ]
    groups = {
        name: [[*at, offset.offset, offset.metadata] for at, offset in group.offsets.items()]
        for name, group in world.cluster.groups.items()
    }
    snapshots = {path.name: _text(path.read_bytes()) for path in sorted((folder / "t").iterdir())}
    left = {"topics": topics, "groups": groups, "snapshots": snapshots, "now_ms": world.clock.now_ms()}
    return zstandard.compress(orjson.dumps(left), 19)


def restored(version: int, folder: Path, scheme: Scheme, name: str = "left_behind") -> Deployment:
    """The deployment as a program of a format version left it, a while later; its snapshots lie in `folder`."""
    left: dict[str, Any] = orjson.loads(zstandard.decompress(file_of(version, name).read_bytes()))
    clock = ManualClock(left["now_ms"] + 60_000)
    cluster = MemoryCluster(clock, session_timeout_s=6.0, transaction_timeout_s=8.0)
    for name, logs in left["topics"].items():
        cluster.create(NewTopic(name, len(logs)))
        for log, (beginning, entries) in zip(cluster.topics[name].logs, logs, strict=True):
            log.beginning = beginning
            for stamp, key, value, headers, outcome, control in entries:
                # What was open has timed out since.
                ended = {"open": Outcome.ABORTED, None: None}.get(outcome, Outcome(outcome or "aborted"))
                within = None if ended is None else Transaction(0.0, ended)
                pairs = [(header, _bytes(each)) for header, each in headers]
                log.entries.append(Entry(stamp, _bytes(key), _bytes(value), pairs, within, control))
    for name, offsets in left["groups"].items():
        held = cluster.group(name).offsets
        for topic, number, offset, metadata in offsets:
            held[Partition(topic, number)] = Committed(offset, metadata)
    (folder / "t").mkdir(parents=True)
    for name, content in left["snapshots"].items():
        (folder / "t" / name).write_bytes(_bytes(content) or b"")
    return Deployment(cluster, clock, scheme)


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        scheme, settings = golden_scheme(), base(folder)
        world = deployment(settings, scheme)
        world.produce(posts(1, COUNT))
        world.crash_at, world.left = "worker.sent", 5
        if world.run(settings, 200):
            raise SystemExit("it was to crash")
        file_of(VERSION).write_bytes(_dump(world, Path(folder)))


if __name__ == "__main__":
    main()
