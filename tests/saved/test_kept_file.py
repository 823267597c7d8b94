"""A damaged byte of a piece is noticed, wherever it is."""

from __future__ import annotations

import io

import pytest

from tests.generated_posts import generate
from tests.property.streams import batch_of
from twinsieve.pipeline.saved import UnreadableError
from twinsieve.pipeline.saved.kept_file import KeptFile, messages_of, read_records, record_of
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.kept_messages import KeptMessages


@pytest.fixture(scope="module")
def kept() -> KeptMessages:
    """A few kept messages."""
    got: list[KeptMessages] = []
    sieve = BatchSieve(SieveConfig())
    sieve.on_kept = lambda first, messages: got.append(messages)
    sieve.judge(batch_of([(post["text"], number, 0, 0) for number, post in enumerate(generate(6, seed=3))]))
    return KeptMessages.concat(got)


def test_no_byte_can_change_unnoticed(kept: KeptMessages) -> None:
    """Also of the numbers of the end, which no checksum of a record covers."""
    stream = io.BytesIO()
    file = KeptFile(stream, "scheme", 5)
    for low in range(0, len(kept), 2):
        file.add(record_of(5 + low, kept.slice(low, low + 2)))
    file.finish()
    content = stream.getvalue()
    assert len(list(read_records(io.BytesIO(content), "here", "scheme", file.digest))) == 2
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 1 << at % 8
        with pytest.raises(UnreadableError, match=r"^here: "):
            list(read_records(io.BytesIO(changed), "here", "scheme", file.digest))
    for end in range(len(content)):
        with pytest.raises(UnreadableError, match=r"^here: "):
            list(read_records(io.BytesIO(content[:end]), "here", "scheme", file.digest))


def test_columns_that_are_no_messages_are_damage(kept: KeptMessages) -> None:
    """Of a record that somebody made with a right checksum."""
    record = record_of(0, kept)
    for harmed in (record._replace(messages=len(kept) + 1), record._replace(data=record.data[:-1])):
        with pytest.raises(UnreadableError, match=r"^here: is damaged or cut"):
            messages_of(harmed, "here")
