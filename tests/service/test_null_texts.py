"""On Kafka a message whose text is null or missing goes where the settings say, and leads nobody there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.calling import Run
from tests.memory.broker import ManualClock
from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.service.metrics import Metrics
from twinsieve.pipeline.settings.model import Settings

_VALUES: list[bytes | None] = [
    b'{"text": null}',
    b'{"text": "the ferry was late this morning"}',
    b'{"other": 1}',
    None,
    b'{"text": null}',
    b'{"text": "the ferry was late this morning"}',
    b'{"text": 5}',
    b"null",
]
_NULLS = [b'{"text": null}', b'{"other": 1}', b'{"text": null}']


def _process(folder: Path, **tree: Any) -> Stepped:
    settings = Settings.model_validate({"app": "t", "state": {"dir": str(folder)}, **tree})
    return Stepped(settings, make_scheme(settings), {"posts": 1})


def _feed(process: Stepped, key: bytes | None = b"k") -> None:
    process.write(Partition("posts", 0), _VALUES, key, (("h", b"1"),), process.clock.now_ms())


def _reasons(process: Stepped) -> list[bytes | None]:
    return [dict(entry.headers)["twinsieve-reason"] for entry in process.entries("posts.dead")]


@pytest.mark.parametrize("policy", ["auto", "dead_letter"])
def test_they_are_dead_letters_where_a_topic_for_those_is_named(tmp_path: Path, policy: str) -> None:
    process = _process(tmp_path, input={"null_text": policy})
    _feed(process)
    assert [entry.value for entry in process.entries("posts.unique")] == [_VALUES[1], None]
    assert _reasons(process) == [b"not_text", b"missing_field", b"not_text", b"not_text", b"not_an_object"]


@pytest.mark.parametrize(
    ("policy", "topic"), [("pass", "posts.dead"), ("pass", None), ("auto", None)], ids=str
)
def test_they_pass_as_they_came_and_are_counted(tmp_path: Path, policy: str, topic: str | None) -> None:
    process = _process(tmp_path, input={"null_text": policy}, output={"dead_letter": topic})
    _feed(process)
    out = process.entries("posts.unique")
    assert [entry.value for entry in out] == [*_VALUES[:1], _VALUES[1], *_VALUES[2:5]]
    assert {(entry.key, entry.headers[0]) for entry in out} == {(b"k", ("h", b"1"))}
    assert [dict(entry.headers)["twinsieve-origin"] for entry in out] == [
        b"posts[0]@%d" % offset for offset in range(5)
    ]
    assert process.texts("posts.duplicates") == ["the ferry was late this morning"]
    metrics = Metrics(ManualClock())
    metrics.count_emission(process.counted)
    counts = {"unique": 1, "exact": 1, "no_text": 4, "unreadable": 2}
    said = {
        verdict: metrics.registry.get_sample_value("twinsieve_messages_total", {"verdict": verdict})
        for verdict in counts
    }
    assert said == counts
    if topic is not None:
        assert _reasons(process) == [b"not_text", b"not_an_object"]


def test_after_a_restart_they_are_neither_lost_nor_doubled_and_lead_nobody(tmp_path: Path) -> None:
    process = _process(tmp_path, input={"null_text": "pass"})
    for _ in range(3):
        process.again()
        _feed(process)
    values = [entry.value for entry in process.entries("posts.unique")]
    assert [value for value in values if value in _NULLS] == _NULLS * 3
    assert values.count(None) == 3
    assert process.sieve.stats().kept == 1


def test_a_message_without_the_key_that_holds_its_text_has_none(tmp_path: Path) -> None:
    process = _process(tmp_path, input={"null_text": "pass", "part": "key", "encoding": "text"})
    _feed(process, key=None)
    assert len(process.entries("posts.unique")) == len(_VALUES)
    assert process.sieve.stats().kept == 0


def test_a_text_field_that_no_message_has_is_said(tmp_path: Path) -> None:
    process = _process(tmp_path, input={"null_text": "pass", "text_field": "txt"})
    _feed(process)
    (told,) = [line for line in process.worker.notices if "input.text_field" in line]
    assert told.endswith(
        "has the field 'txt' of input.text_field but 'text', 'other', so nothing of it is compared; "
        "did you mean 'text'?"
    )


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (("input.null_text=fail",), "is fail, which is for files alone; use pass or dead_letter"),
        (
            ("input.null_text=dead_letter", "output.dead_letter=none"),
            "is dead_letter, but output.dead_letter is none; name a topic, or use pass",
        ),
    ],
)
def test_what_goes_on_files_alone_is_refused_before_anything_connects(
    run: Run, said: tuple[str, ...], why: str
) -> None:
    flags = [word for one in said for word in ("--set", one)]
    for command in ("run", "seed"):
        topic = ["--topic", "old"] if command == "seed" else []
        ran = run(command, *topic, *flags)
        assert (ran.code, ran.err) == (2, f"settings: input.null_text {why}\n")
    linted = run("lint", *flags)
    assert (linted.code, f"refused on Kafka: input.null_text {why}\n" in linted.out) == (0, True)
