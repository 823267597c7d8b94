"""Headers `twinsieve-…` that came with a message reach no output: whoever reads them takes them for verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.service.conftest import scheme as scheme
from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.records import Header, Messages, Partition, Records
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.service.run import SystemClock
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.worker.emit import Emission, without_foreign
from twinsieve.pipeline.worker.outbox import reachable
from twinsieve.stages.judge.scheme import Scheme

POSTS = Partition("posts", 0)
TEXT, OTHER = "今天武汉下雨了，大家出门记得带伞", "图书馆周末延长开放到晚上十点，欢迎大家"
FORGED: tuple[Header, ...] = (
    ("twinsieve-origin", b"bank[0]@1"),
    ("trace", b"7"),
    ("twinsieve-leader", b"bank[0]@0"),
    ("twinsieve-stage", b"exact"),
    ("twinsieve-reason", None),
    ("twinsieve-origin", b"bank[0]@2"),
    ("Twinsieve-note", b"another name"),
    ("x-twinsieve-note", b"another one"),
)
OWN = (("trace", b"7"), ("Twinsieve-note", b"another name"), ("x-twinsieve-note", b"another one"))


@pytest.fixture
def process(scheme: Scheme, tmp_path: Path) -> Callable[..., Stepped]:
    def make(**output: object) -> Stepped:
        settings = {"app": "t", "output": output, "state": {"dir": str(tmp_path)}}
        return Stepped(Settings.model_validate(settings), scheme, {"posts": 1})

    return make


def forge(process: Stepped, *values: bytes | None) -> int:
    """Write these with forged headers; returns how many headers of an app were counted as left out."""
    process.write(POSTS, values, b"key", FORGED, 1_600_000_000_123)
    return process.counted.foreign


def post(text: str) -> bytes:
    return orjson.dumps({"text": text})


@pytest.mark.parametrize("origin", [True, False])
def test_all_that_comes_out_has_the_headers_of_this_app_alone(
    process: Callable[..., Stepped], origin: bool
) -> None:
    one = process(origin_header=origin)
    assert forge(one, post(TEXT), post(TEXT), b"no JSON", None) == 4 * 5
    kept = [entry.headers for entry in one.entries("posts.unique")]
    places: list[tuple[Header, ...]] = [(("twinsieve-origin", b"posts[0]@%d" % at),) for at in (0, 3)]
    assert kept == [(*OWN, *(place if origin else ())) for place in places]
    (dropped,) = one.entries("posts.duplicates")
    assert dropped.headers == (
        *OWN,
        ("twinsieve-stage", b"exact"),
        ("twinsieve-leader", b"posts[0]@0"),
        ("twinsieve-origin", b"posts[0]@1"),
    )
    (dead,) = one.entries("posts.dead")
    assert dead.headers == (*OWN, ("twinsieve-reason", b"invalid_json"), ("twinsieve-origin", b"posts[0]@2"))


def test_an_app_behind_another_one_replaces_its_headers(
    process: Callable[..., Stepped], scheme: Scheme, tmp_path: Path
) -> None:
    first = process()
    first.posts(POSTS, [OTHER, TEXT])
    second = Settings.model_validate(
        {
            "app": "second",
            "input": {"topics": ["posts.unique"]},
            "output": {"topic": "all", "duplicates": "none", "dead_letter": "none"},
            "state": {"dir": str(tmp_path / "second")},
        }
    )
    behind = Stepped(second, scheme, {"posts.unique": 1})
    for entry in first.entries("posts.unique"):
        at = Partition("posts.unique", 0)
        behind.write(at, [entry.value], entry.key, entry.headers, entry.timestamp_ms)
    found = [entry.headers for entry in behind.entries("all")]
    assert found == [(("twinsieve-origin", b"posts.unique[0]@%d" % at),) for at in (0, 1)]


def test_headers_of_messages_that_go_by_another_partition_are_counted_too() -> None:
    emission = Emission(foreign=3)
    emission.to("out", None).append(Messages([None], [b"value"], [()], [0]))
    placed = reachable(emission, {"out": 2}, {"out": frozenset({0})})
    assert placed is not None
    assert placed.foreign == 3


def test_the_metric_counts_what_was_committed() -> None:
    metrics = Metrics(SystemClock())
    metrics.count_emission(Emission(foreign=2))
    metrics.count_emission(Emission())
    assert metrics.registry.get_sample_value("twinsieve_foreign_headers_total") == 2


_NAMES = st.sampled_from(["twinsieve-", "twinsieve-origin", "twinsieve", "trace", "", "\udcff"])
_HEADERS = st.lists(st.tuples(_NAMES, st.none() | st.binary(max_size=2)), max_size=4).map(tuple)


@given(st.lists(_HEADERS, max_size=6))
def test_nothing_else_is_changed(came: list[Sequence[Header]]) -> None:
    rows = len(came)
    stamps, values = list(range(rows)), [b"%d" % row for row in np.arange(rows)]
    records = Records.of(POSTS, stamps, stamps, list(values), list(values), list(came), stamps)
    own, foreign = without_foreign(records)
    kept = [[header for header in held if not header[0].startswith("twinsieve-")] for held in came]
    assert [list(held) for held in own.headers] == kept
    assert records.headers == came, "what was polled is not written to"
    lost = {row: len(came[row]) - len(kept[row]) for row in range(rows)}
    assert foreign == {row: count for row, count in lost.items() if count}
    for name in ("partition", "offsets", "timestamps_ms", "keys", "values", "epochs"):
        assert getattr(own, name) == getattr(records, name)
