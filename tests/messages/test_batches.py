"""A batch of messages reads as its messages, one by one; large batches are scanned, small ones are decoded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.pipeline.messages.documents import WORTH_SCANNING
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.settings.model import Settings

_TEXT = st.text(max_size=6) | st.sampled_from(["\0", "\ud800", '𐍈é"\\/\b\f\n\r\t'])
_TIMES = st.sampled_from(
    ["2024-02-29T08:00:00+08:00", "2024-02-29", "1709164800", "soon", "", "2024-02-29\n"]
)


@pytest.mark.parametrize(("least", "most"), [(0, 6), (WORTH_SCANNING, 40)])
@given(st.data())
def test_a_batch_whose_ids_and_times_are_strings_reads_as_its_rows(
    least: int, most: int, data: st.DataObject
) -> None:
    row = st.tuples(_TEXT | st.integers(0, 9).map(str), _TIMES | _TEXT)
    rows = data.draw(st.lists(row, min_size=least, max_size=most))
    messages: list[bytes | None] = [
        json.dumps({"id": name, "created_at": time, "text": "a"}, separators=(",", ":")).encode()
        for name, time in rows
    ]
    reader = MessageReader(Settings())
    whole, ones = reader.read(messages), [reader.read([message]) for message in messages]
    assert list(whole.ids) == [name for name, _ in rows] == [one.ids[0] for one in ones]
    assert whole.id_hashes.tolist() == [int(one.id_hashes[0]) for one in ones]
    assert whole.times_ms.tolist() == [int(one.times_ms[0]) for one in ones]
    assert len(whole.bad_times) == sum(len(one.bad_times) for one in ones)


@pytest.mark.parametrize("times", [2, 9])
def test_a_batch_with_rows_of_all_kinds_reads_as_its_rows(times: int) -> None:
    some = [
        b'{"id":1,"text":"a"}',
        b"no JSON",
        None,
        b'{"id":"x","text":null}',
        b"[1]",
        b'{"id":1.50,"text":"b"}',
    ]
    reader = MessageReader(Settings(), passes_null=True)
    whole = reader.read(some * times)
    ones = [reader.read([message]) for message in some * times]
    assert whole.texts == [text for one in ones for text in one.texts]
    assert [str(id_) for id_ in whole.ids] == [str(id_) for one in ones for id_ in one.ids]
    assert whole.id_hashes.tolist() == [int(each) for one in ones for each in one.id_hashes]
    for name in ("unreadable", "no_text"):
        found = [(bad.row, bad.reason, bad.detail) for bad in getattr(whole, name)]
        plain = [(row, bad.reason, bad.detail) for row, one in enumerate(ones) for bad in getattr(one, name)]
        assert found == plain
