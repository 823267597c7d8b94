"""A worker says which fields no message has had so far, with a count, and goes on."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.settings.model import Settings


def _process(folder: Path, **given: object) -> Stepped:
    made = given or {"scope": ["tenat"], "input": {"id_field": "ID"}}
    settings = Settings.model_validate({"app": "t", "state": {"dir": str(folder)}, **made})
    return Stepped(settings, make_scheme(settings), {"posts": 1})


def _write(process: Stepped, count: int, **more: object) -> None:
    posts = ({"text": f"post of number {number}", "tenant": number, **more} for number in range(count))
    process.write(Partition("posts", 0), map(orjson.dumps, posts))


def _told(process: Stepped) -> list[str]:
    told = [notice for notice in process.worker.notices if "has the field" in notice]
    process.worker.notices.clear()
    return told


def test_a_field_that_no_message_has_is_said_with_a_count_and_nothing_stops(tmp_path: Path) -> None:
    process = _process(tmp_path)
    _write(process, 3)
    scope, one = _told(process)
    assert scope == (
        "none of the first 3 messages has the field 'tenat' of scope but 'text', 'tenant', so messages of all "
        "scopes meet; did you mean 'tenant'?"
    )
    assert one.startswith("none of the first 3 messages has the field 'ID' of input.id_field")
    assert len(process.entries("posts.unique")) + len(process.entries("posts.duplicates")) == 3


def test_it_is_said_again_with_every_tenfold_until_a_message_has_the_field(tmp_path: Path) -> None:
    process = _process(tmp_path)
    counts = []
    for count in (1, 1, 7, 1, 50, 60):
        _write(process, count)
        counts.append([line.split()[4] for line in _told(process)])
    assert counts == [["1", "1"], [], [], ["10", "10"], [], ["120", "120"]]
    _write(process, 900, tenat=5)
    (line,) = _told(process)
    assert "'ID' of input.id_field" in line


def test_another_field_of_the_text_is_said_only_if_it_seems_misspelt(tmp_path: Path) -> None:
    process = _process(tmp_path, input={"text_field": ["text", "body"]})
    _write(process, 3)
    assert _told(process) == []
    _write(process, 20, bdoy="b")
    (line,) = _told(process)
    assert "the field 'body' of input.text_field" in line
    assert line.endswith("did you mean 'bdoy'?")
