"""Which field a start names when no message has a text where the settings say."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from twinsieve.pipeline.messages.other_field import OtherField
from twinsieve.pipeline.settings.model import Settings

POST = "The bridge over the river is closed until Friday"


def _looked(messages: Iterable[object], **source: object) -> OtherField:
    search = OtherField(Settings.model_validate({"input": source}))
    for message in messages:
        search.look(message if isinstance(message, bytes) else json.dumps(message).encode())
    return search


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ({"body": POST, "url": "https://post.example/" + "a" * 200, "lang": "en"}, "body"),
        ({"内容": "今天武汉下雨了", "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e"}, "内容"),
        ({"status": {"full": POST}, "lang": "en"}, "status.full"),
        ({"entries": [{"words": POST}]}, "entries[0].words"),
        ({"Text": "hi", "body": POST}, "Text"),
        ({"a.b": POST}, '["a.b"]'),
        ({"txet": "hi", "body": POST}, "txet"),
        ({"CONTENT": "hi", "body": POST}, "CONTENT"),
        ({"": POST}, '[""]'),
    ],
)
def test_the_field_that_looks_like_a_text_is_named(message: object, named: str) -> None:
    line = _looked([message] * 20, text_field=["text", "content"]).line()
    assert line is not None
    assert f"set input.text_field to {named!r}" in line


@pytest.mark.parametrize(
    "messages",
    [
        [{"body": POST}] * 16 + [{"n": 1}] * 4,
        [{"body": POST}] * 16 + [b'{"body": ', b"\xff"] * 2,
        [{"n": 1, "flag": True, "text": None}] * 20,
        [{"id": "p1", "created_at": "2026-01-05", "tenant": "a"}] * 20,
        [b"[1, 2]", b'"a string alone"', b"{}", b"", b"[" * 100_000] * 4,
        [{"body": POST}] * 19 + [{"text": POST}],
        [{"body": POST}] * 4,
        [],
    ],
    ids=[
        "8 of 10",
        "broken ones count",
        "no strings",
        "in use",
        "no objects",
        "one has a text",
        "too few",
        "none",
    ],
)
def test_in_doubt_no_field_is_named(messages: list[object]) -> None:
    settings = Settings.model_validate({"scope": ["tenant"]})
    search = OtherField(settings)
    for message in messages:
        search.look(message if isinstance(message, bytes) else json.dumps(message).encode())
    assert search.line() is None


def test_nine_of_ten_are_enough() -> None:
    line = _looked([{"body": POST}] * 18 + [b"no JSON"] * 2).line()
    assert line is not None
    assert line.startswith(
        "none of the first 20 messages has a text in 'text', but 'body' holds a string in 18 of 20"
    )


def test_strings_alone_are_another_encoding() -> None:
    line = _looked([b'"hello there"'] * 20).line()
    assert line is not None
    assert "but the message itself is a string in 20 of 20: set input.encoding: text;" in line


def test_names_of_strangers_come_out_escaped_and_short() -> None:
    hostile = "\x1b[31m\n" + "x" * 1_000
    line = _looked([{hostile: POST}] * 20).line()
    assert line is not None
    assert line.isprintable()
    assert len(line) < 500


def test_a_message_with_endless_fields_is_not_noted_as_a_whole() -> None:
    search = _looked([{f"{row}-{number}": "a b" for number in range(5_000)} for row in range(5)])
    assert len(search._found) <= 1_000


@pytest.mark.parametrize("encoding", ["json", "text"])
def test_a_text_by_the_rules_of_the_reader_ends_the_search(encoding: str) -> None:
    search = _looked([{"body": POST}, {"text": ""}], encoding=encoding)
    assert search.has_text
    assert search.line() is None
