"""What saving holds beside the sieve is bounded by what is counted."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

import pytest

from tests.stored import storage_at
from twinsieve.pipeline.saved.journal import RECORD_MESSAGES, Journal
from twinsieve.pipeline.saved.piece_bytes import largest_piece_bytes
from twinsieve.pipeline.sizing.process_memory import saving_bytes
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.stages.contract import ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve, worst_case_bytes
from twinsieve.stages.judge.kept_messages import KeptMessages
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig


def _bytes(messages: KeptMessages) -> int:
    return sum(getattr(messages, field.name).nbytes for field in fields(messages))


def test_a_kept_message_of_the_greatest_length_takes_what_is_counted() -> None:
    """A block holds the first 512 characters of a text; they are all kept."""
    texts = [
        "".join(chr(0x4E00 + (number * 7 + place * 13) % 3_000) for place in range(512))
        for number in range(50)
    ]
    sieve, got = BatchSieve(SieveConfig()), list[KeptMessages]()
    sieve.on_kept = lambda _, messages: got.append(messages)
    sieve.judge(batch_of(*Scheme(SchemeConfig()).read(texts)))
    (messages,) = got
    assert (
        largest_piece_bytes(sieve.config) * 0.8
        < _bytes(messages) / len(messages)
        < largest_piece_bytes(sieve.config)
    )


@pytest.mark.parametrize("method", ["bloom", "trie"])
def test_what_is_small_of_a_sieve_is_within_what_is_counted(method: Literal["bloom", "trie"]) -> None:
    config = SieveConfig(
        ExactConfig(method, window=Window(3_000_000)), NearConfig(window=Window(1_000)), scheme_id="s"
    )
    sieve = BatchSieve(config)
    bodies, prints = Scheme(SchemeConfig()).read(["one text"])
    sieve.judge(batch_of(bodies, prints))
    frozen = sieve.freeze()
    small = sum(section.nbytes for section in frozen.sections.values())
    assert small < 2_000
    copied = sum(
        array.nbytes
        for name, read in frozen.parts.items()
        if name.startswith(("bits-", "head-"))
        for array in read().values()
    )
    assert small + copied < saving_bytes(config)
    if method == "bloom":
        assert copied > worst_case_bytes(config)["bloom"] // 20


def test_records_that_wait_for_a_disk_are_bounded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that writes hangs, and the sieve keeps a hundred records."""
    from threading import Event

    from twinsieve.pipeline.saved import patience

    flows = Event()
    monkeypatch.setattr(Journal, "_write", lambda *_: flows.wait())
    held = Journal(storage_at(str(tmp_path)), "", 1_000, patience_s=0.01)
    messages = KeptMessages.blank(RECORD_MESSAGES)
    for number in range(100):
        held.take(number * len(messages), messages)
    try:
        assert held._writer._work_queue.qsize() <= patience.WAITING
        assert held._count == 0
        assert held._complete_from == 100 * len(messages), "what found no room is known to be missing"
    finally:
        flows.set()
        held.close()
