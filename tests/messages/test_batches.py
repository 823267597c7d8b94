"""A batch of messages reads as its messages, one by one."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings

_TEXT = st.text(max_size=6) | st.sampled_from(["\0", "\ud800", '𐍈é"\\/\b\f\n\r\t'])
_TIMES = st.sampled_from(
    ["2024-02-29T08:00:00+08:00", "2024-02-29", "1709164800", "soon", "", "2024-02-29\n"]
)


@given(st.lists(st.tuples(_TEXT | st.integers(0, 9).map(str), _TIMES | _TEXT), max_size=6))
def test_a_batch_whose_ids_and_times_are_strings_reads_as_its_rows(rows: list[tuple[str, str]]) -> None:
    messages: list[bytes | None] = [
        json.dumps({"id": name, "created_at": time, "text": "a"}).encode() for name, time in rows
    ]
    reader = MessageReader(Settings())
    whole, ones = reader.read(messages), [reader.read([message]) for message in messages]
    assert list(whole.ids) == [name for name, _ in rows] == [one.ids[0] for one in ones]
    assert whole.id_hashes.tolist() == [int(one.id_hashes[0]) for one in ones]
    assert whole.times_ms.tolist() == [int(one.times_ms[0]) for one in ones]
    assert whole.bad_times == sum(one.bad_times for one in ones)


def test_a_batch_with_rows_of_all_kinds_reads_as_its_rows() -> None:
    some = [
        b'{"id":1,"text":"a"}',
        b"no JSON",
        None,
        b'{"id":"x","text":null}',
        b"[1]",
        b'{"id":1.50,"text":"b"}',
    ]
    reader = MessageReader(Settings(), passes_null=True)
    whole = reader.read(some * 2)
    ones = [reader.read([message]) for message in some * 2]
    assert whole.texts == [text for one in ones for text in one.texts]
    assert [str(id_) for id_ in whole.ids] == [str(id_) for one in ones for id_ in one.ids]
    assert whole.id_hashes.tolist() == [int(each) for one in ones for each in one.id_hashes]
    for name in ("unreadable", "no_text"):
        found = [(bad.row, bad.reason, bad.detail) for bad in getattr(whole, name)]
        plain = [(row, bad.reason, bad.detail) for row, one in enumerate(ones) for bad in getattr(one, name)]
        assert found == plain
