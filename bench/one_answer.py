"""One file by the command, in Python and on a Kafka broker: what each keeps, and whether it is the same.

    python -m bench.one_answer [--rows 30000 250000] [--posts FILE]

Input is generated posts, or real ones (--posts, gzipped JSON lines), on one partition. Each way has its
default settings; on Kafka those of config/kafka.yaml. Rows are compared byte for byte, in their order. Exit
code 1 if they differ.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import orjson

from bench.machine import machine_line
from tests.broker.cluster import Cluster
from tests.broker.stranger import arrived, producer, reader
from twinsieve import Sieve
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.tools.generate.stream import generate

_ROOT = Path(__file__).resolve().parents[1]
_TWINSIEVE = [sys.executable, "-m", "twinsieve"]
_LIMIT_S = 600.0


def rows_of(posts: Path | None, count: int) -> list[bytes]:
    """The input, a JSON line for each row."""
    if posts is None:
        return [orjson.dumps(post) for post in generate(count, seed=1, rate=20.0)]
    with gzip.open(posts) as lines:
        return [line.rstrip(b"\n") for line in islice(lines, count)]


def by_command(rows: list[bytes], folder: Path) -> list[bytes]:
    """The rows that `twinsieve dedup` keeps."""
    source, kept = folder / "in.jsonl", folder / "out.jsonl"
    source.write_bytes(b"".join(row + b"\n" for row in rows))
    subprocess.run([*_TWINSIEVE, "dedup", "-q", source, "-o", kept], check=True)
    return kept.read_bytes().splitlines()


def in_python(rows: list[bytes]) -> list[bytes]:
    """The rows that `Sieve().dedup` keeps."""
    return list(Sieve().dedup(rows, text=lambda row: orjson.loads(row)["text"]))


def on_kafka(rows: list[bytes], folder: Path, bootstrap: str, app: str) -> list[bytes]:
    """The rows in the output topic when every row has come out."""
    broker = KafkaBroker(KafkaSettings(bootstrap=bootstrap))
    broker.admin().create_topic(NewTopic(f"{app}.in", 1, 1))
    broker.close()
    names = {
        "app": app,
        "input.topics": f"[{app}.in]",
        "output.topic": f"{app}.out",
        "output.duplicates": f"{app}.dup",
        "output.dead_letter": f"{app}.dead",
        "kafka.bootstrap": bootstrap,
        "state.dir": str(folder / "state"),
        "http.listen": "none",
    }
    settings = ["-c", str(_ROOT / "config" / "kafka.yaml")]
    settings += [word for name, value in names.items() for word in ("--set", f"{name}={value}")]
    subprocess.run([*_TWINSIEVE, "topics", "create", *settings], check=True, capture_output=True)
    writer = producer(bootstrap, queue_buffering_max_messages=len(rows) + 1)
    for row in rows:
        writer.produce(f"{app}.in", row)
    writer.flush()
    process = subprocess.Popen([*_TWINSIEVE, "run", *settings, "--member", "one"], stderr=subprocess.DEVNULL)
    try:
        return _out(bootstrap, app, len(rows))
    finally:
        process.terminate()
        process.wait(60)


def _out(bootstrap: str, app: str, rows: int) -> list[bytes]:
    outputs = reader(bootstrap, [f"{app}.{end}" for end in ("out", "dup", "dead")])
    kept, others, deadline = [], 0, time.monotonic() + _LIMIT_S
    while len(kept) + others < rows and time.monotonic() < deadline:
        for message in arrived(outputs):
            if message.topic() == f"{app}.out":
                kept.append(message.value())
            else:
                others += 1
    outputs.close()
    if len(kept) + others != rows:
        raise SystemExit(f"{len(kept) + others:,} of {rows:,} rows came out")
    return kept


def main() -> None:
    """Prints machine, input and a line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[30_000, 250_000])
    parser.add_argument("--posts", type=Path, help="real posts, gzipped JSON lines")
    options = parser.parse_args()
    print(machine_line())
    source = options.posts.name if options.posts else "generated posts, seed 1"
    print(f"input: {source}; one broker, one `run`", flush=True)
    differ = False
    with Cluster().start() as cluster:
        for count in options.rows:
            rows = rows_of(options.posts, count)
            with tempfile.TemporaryDirectory() as name:
                command = by_command(rows, Path(name))
                python = in_python(rows)
                kafka = on_kafka(rows, Path(name), cluster.bootstrap, f"rows{count}")
            same = command == python == kafka
            differ |= not same
            kept = f"command {len(command):,}, Python {len(python):,}, Kafka {len(kafka):,} kept"
            print(f"{len(rows):,} rows: {kept}; {'equal' if same else 'DIFFERENT'}", flush=True)
    sys.exit(differ)


if __name__ == "__main__":
    main()
