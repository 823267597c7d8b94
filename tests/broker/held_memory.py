"""Peak memory of a process with both roles that takes hostile input, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random

import orjson

from tests.broker.services import written_settings
from tests.broker.stranger import producer
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.commands.kafka.connect import connect_by_settings
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.service.run import run_service
from twinsieve.pipeline.settings.model import Settings

_MB = 1_000_000
_MAX_BYTES = 4 << 20
_WARM = 5


def batches() -> Iterator[list[bytes]]:
    """Twenty batches of fifteen messages: 58 MB each, nearly all of it in a field that nobody reads."""
    for batch in range(20):
        yield [orjson.dumps({"text": f"{batch} {row}", "more": "x" * 3_900_000}) for row in range(15)]


def growing() -> Iterator[list[bytes]]:
    """Eight messages of 1.5 MB whose texts have 9 million characters each, in one batch."""
    yield [orjson.dumps({"text": f"{row} " + "\ufdfa" * 500_000}) for row in range(8)]


def large() -> Iterator[list[bytes]]:
    """Several full polls of messages that are as large as may be, and that no compression makes smaller."""
    for row in range(60):
        yield [orjson.dumps({"text": f"{row}", "more": Random(row).randbytes((_MAX_BYTES - 300) // 2).hex()})]


CASES: Mapping[str, Callable[[], Iterator[list[bytes]]]] = {
    "batches": batches,
    "growing": growing,
    "large": large,
}


def settings_of(bootstrap: str, folder: Path, **kafka: object) -> Settings:
    """Small windows, so that what is measured is what passes through."""
    made = written_settings(bootstrap, folder, id_field="none")
    made["kafka"] = {"bootstrap": bootstrap, "transaction_timeout": "60s", **kafka}
    return Settings.model_validate(made)


def fill(settings: Settings, made: Iterator[list[bytes]]) -> int:
    """Write these to the input, a list a batch; returns how many messages that were."""
    topic, count = settings.input.topics[0], 0
    refused: list[object] = []
    sends = producer(
        settings.kafka.bootstrap,
        compression_type="zstd",
        message_max_bytes=70 * _MB,
        batch_size=64 * _MB,
        linger_ms=10_000,
        queue_buffering_max_kbytes=2 * _MB,
    )
    for values in made:
        for value in values:
            sends.produce(topic, value, b"k", 0, on_delivery=lambda error, _: refused.append(error))
            count += 1
        assert sends.flush(120) == 0
    assert not any(refused), refused
    return count


def peak_bytes() -> int:
    """The most memory that this process has had."""
    # Not getrusage, which counts what the parent held before.
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def child(settings: Settings, count: int, limit_s: float) -> None:
    """Runs the service until `count` messages are out; prints its growth since the first few were."""
    stop, errors = threading.Event(), []

    def serve() -> None:
        try:
            run_service(settings, connect_by_settings, member="one", stop=stop)
        except BaseException as error:  # noqa: BLE001 - told to the parent
            errors.append(repr(error))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    admin = KafkaBroker(settings.kafka).admin()
    at, base, began = Partition(settings.input.topics[0], 0), 0, time.monotonic()
    while not errors and time.monotonic() - began < limit_s:
        held = admin.group_offsets(Names(settings.app).workers, stable=False).get(at)
        done = held.offset if held is not None else 0
        if not base and done >= _WARM:
            base = peak_bytes()
            print("warm", flush=True)
        if done >= count:
            break
        time.sleep(0.2)
    else:
        errors.append(f"{done} of {count} out after {limit_s:g} s")
    stop.set()
    thread.join(60)
    print(json.dumps([peak_bytes() - base, base, time.monotonic() - began, errors]), flush=True)


def measure(settings: Settings, case: str, limit_s: float = 300.0) -> tuple[int, int, float, list[str]]:
    """Growth in bytes, what there was before, seconds, and what went wrong."""
    admin = KafkaBroker(settings.kafka).admin()
    admin.create_topic(NewTopic(settings.input.topics[0], 1, 1, {"max.message.bytes": str(8 << 20)}))
    create(settings, admin)
    fill(settings, iter([[orjson.dumps({"text": f"message {row}"}) for row in range(_WARM)]]))
    made = list(CASES[case]())
    count = _WARM + sum(map(len, made))
    given = settings.model_dump_json(by_alias=False)
    ran = subprocess.Popen(
        [sys.executable, "-m", "tests.broker.held_memory", given, str(count), str(limit_s)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert ran.stdout is not None
    assert ran.stdout.readline() == "warm\n"
    fill(settings, iter(made))
    growth, base, took, errors = orjson.loads(ran.stdout.read())
    ran.wait()
    return growth, base, took, errors


if __name__ == "__main__":
    child(Settings.model_validate_json(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
