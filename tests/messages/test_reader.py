"""Raw messages as columns: each one read alone gives the same, and times, ids and keys mean what they say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from twinsieve.pipeline.messages.fields import as_bytes, time_ms
from twinsieve.pipeline.messages.paths import MISSING, name_of, path_of
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import NO_TIME
from twinsieve.stages.errors import UsageError

_VALUE = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.text(max_size=4)
    | st.just([1])
    | st.just({"t": "x"})
)
_DOCUMENT = st.dictionaries(st.sampled_from(["text", "id", "created_at", "u"]), _VALUE) | _VALUE
_MESSAGE = st.none() | st.binary(max_size=5) | _DOCUMENT.map(lambda one: json.dumps(one).encode())


@given(st.lists(_MESSAGE, max_size=8), st.booleans(), st.booleans())
def test_a_batch_says_what_single_messages_say(
    messages: list[bytes | None], scoped: bool, keyed: bool
) -> None:
    tree: dict[str, Any] = {"scope": ["u.t"] if scoped else [], "exact": {"fields": ["id"] if keyed else []}}
    reader = MessageReader(Settings.model_validate(tree))
    whole = reader.read(messages)
    assert sorted([*whole.rows, *(bad.row for bad in whole.unreadable)]) == list(range(len(messages)))
    ones = [reader.read([message]) for message in messages]
    readable = [one for one in ones if len(one)]
    assert whole.texts == [one.texts[0] for one in readable]
    assert whole.ids == [one.ids[0] for one in readable]
    assert whole.times_ms.tolist() == [one.times_ms[0] for one in readable]
    assert whole.id_hashes.tolist() == [one.id_hashes[0] for one in readable]
    assert whole.scopes.tolist() == [one.scopes[0] for one in readable]
    assert (whole.keys or []) == [one.keys[0] for one in readable if one.keys]
    assert [bad.reason for bad in whole.unreadable] == [
        one.unreadable[0].reason for one in ones if one.unreadable
    ]
    assert len(whole.bad_times) == sum(len(one.bad_times) for one in ones)


@given(st.lists(_VALUE | st.just(MISSING), max_size=3), st.lists(_VALUE | st.just(MISSING), max_size=3))
def test_other_values_are_other_bytes(left: list[Any], right: list[Any]) -> None:
    def plain(values: list[Any]) -> list[Any]:
        return [
            (type(one).__name__, json.dumps(one)) if one is not MISSING and one is not None else None
            for one in values
        ]

    same = b"".join(map(as_bytes, left)) == b"".join(map(as_bytes, right))
    assert same == (plain(left) == plain(right))


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1)),
    st.sampled_from(["iso", "zulu", "s", "ms", "text"]),
)
def test_a_time_is_read_however_it_is_written(moment: datetime, how: str) -> None:
    moment = moment.replace(microsecond=0, tzinfo=UTC)
    seconds = int(moment.timestamp())
    # Text of eight digits is a date.
    assume(how != "text" or seconds >= 10**8)
    written: object = {
        "iso": moment.replace(tzinfo=None).isoformat(),
        "zulu": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "s": seconds,
        "ms": max(seconds * 1000, 10**11),
        "text": str(seconds),
    }[how]
    assert time_ms(written) == (max(seconds * 1000, 10**11) if how == "ms" else seconds * 1000)


def test_eight_digits_as_text_are_a_date() -> None:
    assert time_ms("20200212") == time_ms("2020-02-12")
    assert time_ms("20209912") == time_ms(20209912)


@pytest.mark.parametrize(
    "value", ["yesterday", -5, 10**15, float("inf"), True, [1], {"a": 1}, "9999999999999999999999"]
)
def test_what_is_no_time_is_none(value: object) -> None:
    assert time_ms(value) is None


@pytest.mark.parametrize("value", [None, "", MISSING])
def test_a_missing_time_is_no_time(value: object) -> None:
    assert time_ms(value) == NO_TIME


def test_a_path_goes_inside_and_a_backslash_keeps_a_dot() -> None:
    assert path_of("text") == ("text",)
    assert path_of("a.b.c") == ("a", "b", "c")
    assert path_of(r"a\.b.c\\") == ("a.b", "c\\")
    assert path_of(r"a\x") == ("a\\x",)
    reader = MessageReader(Settings.model_validate({"input": {"text_field": [r"status.full\.text"]}}))
    assert reader.read([b'{"status": {"full.text": "x"}}']).texts == ["x"]


def test_the_number_7_and_the_text_7_are_one_id() -> None:
    columns = MessageReader(Settings()).read(
        [b'{"text":"a","id":7}', b'{"text":"a","id":"7"}', b'{"text":"a"}']
    )
    assert columns.id_hashes[0] == columns.id_hashes[1] != 0
    assert columns.id_hashes[2] == 0
    assert columns.ids == [7, "7", None]


@pytest.mark.parametrize("encoding", ["json", "text"])
def test_a_message_over_the_limit_is_too_large(encoding: str) -> None:
    settings = Settings.model_validate({"input": {"max_bytes": "20B", "encoding": encoding}})
    columns = MessageReader(settings).read([b'{"text":"ok"}', b'{"text":"' + b"x" * 20 + b'"}', None])
    assert columns.rows == [0]
    assert [(bad.row, bad.reason) for bad in columns.unreadable] == [(1, "too_large"), (2, "null")]


def test_text_is_not_asked_for_where_fields_alone_decide() -> None:
    tree = {"exact": {"fields": ["id"]}, "near": {"method": "none"}}
    columns = MessageReader(Settings.model_validate(tree)).read(
        [b'{"id":1}', b'{"id":null}', b'{"id":1,"text":5}']
    )
    assert (columns.rows, columns.keyless, columns.unreadable) == ([0, 1, 2], [1], [])
    assert columns.keys is not None
    assert columns.keys[0] == columns.keys[2]


@pytest.mark.parametrize("digits", [21, 400, 5_000])
@pytest.mark.parametrize("text", ["plain", "\\ud800"])
def test_a_number_of_any_length_is_a_number(digits: int, text: str) -> None:
    message = f'{{"text":"{text}","id":7,"created_at":{"9" * digits}}}'.encode()
    columns = MessageReader(Settings()).read([message])
    assert (columns.rows, columns.unreadable, columns.bad_times) == ([0], [], [0])
    assert columns.times_ms.tolist() == [NO_TIME]


@pytest.mark.parametrize("name", ["id", "tenant", "order", "created_at", "other"])
@pytest.mark.parametrize("levels", [100, 300, 1_000, 5_000])
@pytest.mark.parametrize("text", ["a", "\\ud800 ]]", '[[\\"'])
def test_values_nested_too_deeply_are_refused_where_they_would_be_written(
    name: str, levels: int, text: str
) -> None:
    tree: dict[str, Any] = {"scope": ["tenant"], "exact": {"fields": ["order"]}}
    fields = {"text": f'"{text}"', "order": "1", "tenant": "1", name: "[" * levels + "]" * levels}
    message = ("{" + ",".join(f'"{key}":{value}' for key, value in fields.items()) + "}").encode()
    columns = MessageReader(Settings.model_validate(tree)).read([b'{"text":"b","order":2}', message])
    written = name in tree["scope"] + tree["exact"]["fields"] + ["id"]
    refused = levels > (500 if "\\ud800" in text else 1_024) or (written and levels > 200)
    assert columns.rows == ([0] if refused else [0, 1])
    assert [bad.reason for bad in columns.unreadable] == (["invalid_json"] if refused else [])


_NAME = st.text(min_size=1, max_size=5) | st.sampled_from(["a.b", "a[0]", '"', "\\", "]", "..", "0"])


@given(_NAME | st.just(""), st.lists(_NAME | st.just("") | st.integers(0, 99), max_size=3))
def test_every_path_has_a_name_that_spells_it(first: str, more: list[str | int]) -> None:
    assert path_of(name_of((first, *more))) == (first, *more)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("entities[0].text", ("entities", 0, "text")),
        ("m[1][2]", ("m", 1, 2)),
        ('["a.b"]', ("a.b",)),
        ("['a.b'].c", ("a.b", "c")),
        ('user["a.b"][3]["c"]', ("user", "a.b", 3, "c")),
        (r"a\[0\]", ("a[0]",)),
        (r'["\u0061\""]', ('a"',)),
        ("正文.标题", ("正文", "标题")),
    ],
)
def test_members_and_elements_are_named_as_in_other_tools(name: str, path: tuple[str | int, ...]) -> None:
    assert path_of(name) == path
    document: Any = "here"
    for part in reversed(path):
        document = {part: document} if isinstance(part, str) else [None] * part + [document]
    reader = MessageReader(Settings.model_validate({"input": {"text_field": name}}))
    assert reader.read([json.dumps(document).encode()]).texts == ["here"]
    assert reader.read([b'{"entities":[],"m":[[],[1]],"user":{"a.b":[]},"a.b":[]}']).texts == []


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("a[x]", 2),
        ("a.", 3),
        (".a", 1),
        ("a..b", 3),
        ("a[0]b", 5),
        ("a[", 2),
        ("a]", 2),
        ("[0].a", 1),
        ('a["b]', 2),
    ],
)
@pytest.mark.parametrize(
    "setting", ["input.text_field", "input.id_field", "input.time_field", "scope", "exact.fields"]
)
def test_a_name_that_is_no_path_is_refused_with_its_column(name: str, column: int, setting: str) -> None:
    tree: Any = {"scope": [name]} if setting == "scope" else {}
    if setting != "scope":
        section, _, key = setting.partition(".")
        tree = {section: {key: [name] if key == "fields" else name}}
    settings = Settings.model_validate(tree)
    with pytest.raises(UsageError) as refused:
        MessageReader(settings)
    assert str(refused.value).startswith(f"{setting}: {name!r}, column {column}: ")
    MessageReader(settings, flat=True)


def test_several_text_fields_are_one_text_a_line_each() -> None:
    reader = MessageReader(Settings.model_validate({"input": {"text_field": ["title", "post.body"]}}))
    rows: list[Any] = [
        {"title": "a", "post": {"body": "b"}},
        {"title": "a"},
        {"title": None, "post": {"body": "b"}},
        {"title": "", "post": {"body": "b"}},
        {"title": ""},
        {"post": {}},
        {"title": None},
        {"title": "a", "post": {"body": 5}},
        5,
    ]
    columns = reader.read([json.dumps(row).encode() for row in rows])
    assert columns.texts == ["a\nb", "a", "b", "b", ""]
    assert [(bad.row, bad.reason, bad.detail) for bad in columns.unreadable] == [
        (5, "missing_field", "has no field 'title' or 'post.body'"),
        (6, "not_text", "field 'title' is null, not text"),
        (7, "not_text", "field 'post.body' is a number, not text"),
        (8, "not_an_object", "is a number, not an object"),
    ]


def test_a_plain_text_is_the_field_that_settings_call_text() -> None:
    tree = {"input": {"encoding": "text", "text_field": "a.b[0]"}, "exact": {"fields": ["a.b[0]"]}}
    columns = MessageReader(Settings.model_validate(tree)).read([b"one", b"two", b"one"])
    assert columns.texts == ["one", "two", "one"]
    assert columns.keys is not None
    assert columns.keys[0] == columns.keys[2] != columns.keys[1]
