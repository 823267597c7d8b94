"""`[*]`: each item of a list in a row is a message, and kept rows come out with the kept items."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calling import SMALL, Run, setting
from tests.row_files import read_lines, write_rows
from twinsieve.pipeline.files.format import RowChunk
from twinsieve.pipeline.files.formats.json_elements import as_written, elements_of
from twinsieve.pipeline.files.rows import Rows
from twinsieve.pipeline.messages.paths import path_of
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings

_A, _B, _C = "The bakery opens at six on Sundays", "Storks nest on the tower", "Lost: one grey umbrella"
_PAGES: list[dict[str, Any]] = [
    {"data": [{"id": "1", "text": _A}, {"id": "2", "text": _B}], "meta": {"n": 1.50}},
    {"data": [{"id": "3", "text": f"{_A}!"}, {"id": "4", "text": _C}], "meta": {"n": 2}},
    {"data": [{"id": "5", "text": _B}, {"id": "6", "text": f"{_B}!"}], "meta": {"n": 3}},
    {"meta": {"n": 4}},
    {"data": [], "meta": {"n": 5}},
]
_STAR = ("--text-field", "data[*].text")


@pytest.mark.parametrize("count", [1, 20])
def test_each_item_is_a_message_and_rows_come_out_with_the_kept_ones(
    tmp_path: Path, run: Run, count: int
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [json.dumps(page).replace("1.5", "1.50") for page in _PAGES]
    fill = [json.dumps({"data": [{"text": f"Only row {n} says {n}"}]}) for n in range(count)]
    source.write_text("\n".join([*rows, *fill]) + "\n")
    files = ("--duplicates", tmp_path / "d", "--clusters", tmp_path / "c", "--stats", tmp_path / "s")
    ran = run("dedup", "-q", source, "-o", out, *files, *_STAR, *SMALL)
    assert (ran.code, ran.err) == (0, "")
    kept = [rows[0], rows[1].replace(json.dumps(_PAGES[1]["data"][0]) + ", ", ""), *rows[3:], *fill]
    assert out.read_text().splitlines() == kept
    told = json.loads((tmp_path / "s").read_bytes())
    assert (told["rows"], told["no_text"], told["exact"] + told["near"]) == (8 + count, 2, 3)
    names = ("position", "id", "line", "element", "duplicate_of_id", "leader_line", "leader_element")
    assert [tuple(one[name] for name in names) for one in read_lines(tmp_path / "d")] == [
        (3, "3", 2, 0, "1", 1, 0),
        (5, "5", 3, 0, "2", 1, 1),
        (6, "6", 3, 1, "2", 1, 1),
    ]
    assert [(one["ids"], one["lines"], one["elements"]) for one in read_lines(tmp_path / "c")] == [
        (["1", "3"], [1, 2], [0, 0]),
        (["2", "5", "6"], [1, 3, 3], [1, 0, 1]),
    ]
    again = tmp_path / "again.jsonl"
    assert run("dedup", "-q", out, "-o", again, *_STAR, *SMALL).code == 0
    assert again.read_bytes() == out.read_bytes()


def test_fields_of_the_row_are_at_hand(tmp_path: Path, run: Run) -> None:
    rows = [
        {"shop": "a", "at": "2020-01-01", "x": {"posts": [{"t": _A}, {"t": _B, "kind": "n"}], "lang": "en"}},
        {"shop": "b", "at": "2020-01-02", "x": {"posts": [{"t": _A}, {"t": _B}], "lang": "en"}},
        {"shop": "a", "at": "2020-01-03", "x": {"posts": [{"t": _A}, {"t": _B}], "lang": "de"}},
    ]
    source, out = write_rows(tmp_path / "in.jsonl", rows), tmp_path / "out.jsonl"
    words = ("--text-field", "x.posts[*].t", "--time-field", "at", *SMALL)
    scoped = setting("scope=[shop, x.lang, 'x.posts[*].kind']")
    assert run("dedup", "-q", source, "-o", out, *words, *scoped).code == 0
    assert read_lines(out) == rows
    drops = ("--duplicates", tmp_path / "d")
    assert run("dedup", "-q", source, "-o", out, *words, *drops, *setting("scope=[shop]")).code == 0
    assert read_lines(out) == rows[:2]
    assert {one["time_ms"] for one in read_lines(tmp_path / "d")} == {1578009600000}


@pytest.mark.parametrize("keep", ["last", "longest", "none"])
def test_items_are_read_twice_for_keep(tmp_path: Path, run: Run, keep: str) -> None:
    source, out = write_rows(tmp_path / "in.jsonl", _PAGES), tmp_path / "out.jsonl"
    assert run("dedup", "-q", source, "-o", out, "--keep", keep, *_STAR, *SMALL).code == 0
    ids = [item["id"] for row in read_lines(out) for item in row.get("data", [])]
    assert ids == {"last": ["3", "4", "6"], "longest": ["3", "4", "6"], "none": ["4"]}[keep]


@pytest.mark.parametrize("indent", [None, 1])
def test_an_export_of_a_chat_comes_out_whole_without_its_copies(
    tmp_path: Path, run: Run, indent: int | None
) -> None:
    pieces = ["The bakery opens ", {"type": "bold", "text": "at six"}, " on Sundays"]
    messages = [
        {"id": 1, "text": _A},
        {"id": 2, "text": pieces},
        {"id": 3, "text": _B},
        {"id": 4, "type": "x"},
    ]
    chat = {"name": "Town", "id": 77, "messages": messages}
    source, out = tmp_path / "result.json", tmp_path / "out.json"
    source.write_text(json.dumps(chat, indent=indent))
    words = ("--text-field", "messages[*].text", "--duplicates", tmp_path / "d")
    assert run("dedup", "-q", source, "-o", out, *words, *SMALL).code == 0
    (found,) = [json.loads(out.read_text())] if indent is None else json.loads(out.read_text())
    assert found == {**chat, "messages": [messages[0], *messages[2:]]}
    assert [one["id"] for one in read_lines(tmp_path / "d")] == [2]


def test_items_that_are_texts_and_items_that_are_none(tmp_path: Path, run: Run) -> None:
    source, out, dead = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "dead"
    source.write_text(json.dumps({"t": [_A, 5, f"{_A}!", _B]}) + '\n{"t": ["a"\n\n')
    ran = run("dedup", source, "-o", out, "--text-field", "t[*]", "--dead-letter", dead, *SMALL)
    assert (ran.code, "in.jsonl:1[1]" in ran.err) == (0, True)
    assert read_lines(out) == [{"t": [_A, _B]}]
    assert [(one["line"], one["element"], one["raw"]) for one in read_lines(dead)] == [
        (1, 1, "5"),
        (2, None, '{"t": ["a"'),
    ]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--text-field", "data.text"), ["2", "data[*].text"]),
        (("--text-field", "text"), ["2", "data[*].text"]),
        (("--text-field", "data"), ["2", "data[*].text"]),
        ((*_STAR, "--mark"), ["--mark", "[*]"]),
        (("--text-field", "data[*].x[*]"), ["[*]", "once"]),
        (("--id-field", "data[*].id"), ["input.id_field", "data[*].id", "input.text_field"]),
        ((*_STAR, *setting("scope=['meta[*].n']")), ["scope", "meta[*].n", "input.text_field"]),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    tmp_path: Path, run: Run, words: tuple[str, ...], facts: list[str]
) -> None:
    source = write_rows(tmp_path / "in.jsonl", _PAGES[:2])
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *words, *SMALL)
    assert ran.code in (1, 2)
    assert [fact for fact in facts if fact not in ran.err] == []
    assert "data[0]" not in ran.err
    assert not (tmp_path / "out.jsonl").exists()


def test_a_table_has_no_such_items(tmp_path: Path, run: Run) -> None:
    source = write_rows(tmp_path / "in.parquet", _PAGES[:2])
    ran = run("dedup", "-q", source, "-o", tmp_path / "out.parquet", *_STAR, *SMALL)
    assert (ran.code, "data[*].text" in ran.err) == (2, True)


def test_many_items_with_a_long_id_are_too_large(tmp_path: Path, run: Run) -> None:
    row = {"id": "x" * 9_000, "data": [{"text": f"{n}"} for n in range(900)]}
    source, dead = write_rows(tmp_path / "in.jsonl", [row, {"data": [{"text": _A}]}]), tmp_path / "dead"
    words = (*_STAR, "--id-field", "id", "--dead-letter", dead, *setting("input.max_bytes=32KiB"))
    assert run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *words, *SMALL).code == 0
    assert [one["reason"] for one in read_lines(dead)] == ["too_large"]
    assert len(read_lines(tmp_path / "out.jsonl")) == 1


@pytest.mark.parametrize(
    ("item", "reason"), [("1", "too_large"), ('{"text":"a"}', "too_large"), ('{"text":"two words"}', None)]
)
def test_a_row_of_very_many_small_items_is_too_large(
    tmp_path: Path, run: Run, item: str, reason: str | None
) -> None:
    source, dead = tmp_path / "in.jsonl", tmp_path / "dead"
    source.write_text(
        f'{{"data":[{",".join([item] * (32_000 // (len(item) + 1)))}]}}\n{{"data":[{{"text":"{_A}"}}]}}\n'
    )
    words = (*_STAR, "--dead-letter", dead, *setting("input.max_bytes=32KiB"))
    assert run("dedup", "-q", source, "-o", tmp_path / "out.jsonl", *words, *SMALL).code == 0
    assert [one["reason"] for one in read_lines(dead)] == ([reason] if reason else [])
    assert len(read_lines(tmp_path / "out.jsonl")) == (1 if reason else 2)


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\[]{},: 你'), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(_VALUES, max_size=5),
    st.dictionaries(st.text(max_size=2), _VALUES, max_size=2),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.data(),
)
def test_a_row_with_some_of_its_items_is_the_row_that_json_writes(
    items: list[Any], others: dict[str, Any], deep: bool, indent: int | None, data: st.DataObject
) -> None:
    document = {**others, "list": {"in": items, **others} if deep else items, "id": 5}
    row = json.dumps(document, indent=indent).encode()
    each = path_of("list.in" if deep else "list")
    rows = elements_of(Rows([row], 1), each, {"list", "id"}, 1 << 20)
    assert len(rows) == max(len(items), 1)
    if items:
        payloads = [json.loads(payload or b"") for payload in rows.rows]
        lists = [payload["list"]["in"] if deep else payload["list"] for payload in payloads]
        assert lists == [[item] for item in items]
        assert all(set(payload) == {"list", "id"} for payload in payloads)
        assert [json.loads(rows.raw(place)[0]) for place in range(len(items))] == items
    kept = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    chunk, numbers = as_written(RowChunk("f", rows, MessageReader(Settings()).columns([], {})), kept)
    assert numbers == ([0] if kept else [])
    found = json.loads(chunk.rows.raw(0)[0])
    expected = [items[place] for place in kept] if kept and items else items
    assert (found["list"]["in"] if deep else found["list"]) == expected
    assert {key: value for key, value in found.items() if key != "list"} == {
        key: value for key, value in document.items() if key != "list"
    }
    if len(kept) == len(rows):
        assert chunk.rows.raw(0)[0] == row


def test_why_and_audit_show_the_item_and_are_asked_by_it(tmp_path: Path, run: Run) -> None:
    texts = ["some words of a row", "quite other things", "some words of a row", "quite other things"]
    items = [{"id": f"t{at}", "text": text} for at, text in enumerate(texts)]
    source, dropped, table = tmp_path / "a.jsonl", tmp_path / "d.jsonl", tmp_path / "x.csv"
    source.write_text("\n" + json.dumps({"data": items}) + "\n")
    named = ("--text-field", "data[*].text")
    run("dedup", "-q", source, "-o", tmp_path / "o.jsonl", "--duplicates", dropped, *named, *SMALL)
    said = run("why", "--id", "t2", "--duplicates", dropped, *named, *SMALL)
    assert (said.code, f"{source}:2[2] " in said.out, f"{source}:2[0] " in said.out) == (0, True, True)
    for asked, ids in (("2[2]", ["t2"]), ("2[3]", ["t3"]), ("2", ["t2", "t3"]), ("2[1]", []), ("1[2]", [])):
        found = run("audit", dropped, "--position", f"{source}:{asked}")
        assert found.code == (0 if ids else 1)
        assert [f"(id {each})" in found.out for each in ("t2", "t3")] == [
            each in ids for each in ("t2", "t3")
        ]
    led = run("audit", dropped, "--leader", f"{source}:2[1]").out
    assert ("(id t3)" in led, "(id t2)" in led) == (True, False)
    for wrong in ("2[x]", "2[", "2[]", "[2]", "2[1]2"):
        assert run("audit", dropped, "--position", f"{source}:{wrong}").code == 2
    assert run("audit", dropped, "--csv", table).code == 0
    with table.open() as lines:
        rows = [*csv.DictReader(lines)]
    assert [(row["line"], row["element"], row["leader_element"]) for row in rows] == [
        ("2", "2", "0"),
        ("2", "3", "1"),
    ]


@pytest.mark.parametrize("of_kafka", [True, False])
def test_lint_names_every_field_of_items_where_messages_come_from_kafka(
    tmp_path: Path, run: Run, of_kafka: bool
) -> None:
    settings = tmp_path / "s.yaml"
    topics = "  topics: [posts]\n" if of_kafka else "\n"
    settings.write_text(
        f"input:\n{topics}  text_field: ['data[*].text', 'data[*].title']\n  id_field: 'data[*].id'\n"
        "scope: ['data[*].lang']\n"
    )
    ran = run("lint", settings)
    named = [line for line in ran.out.splitlines() if "[*]" in line]
    assert ran.code == (2 if of_kafka else 0)
    places = [
        (f"{settings}:{line}:", name)
        for line, name in zip([3, 3, 4, 5], ["text", "title", "id", "lang"], strict=True)
    ]
    if not of_kafka:
        places = []
    assert len(named) == len(places)
    for line, (place, name) in zip(named, places, strict=True):
        assert line.startswith(place)
        assert f"'data[*].{name}'" in line
