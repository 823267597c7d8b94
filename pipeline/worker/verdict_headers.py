"""The headers that say why a message was dropped, or what kept it apart from a similar one (docs/WIRE.md)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.broker.redriven import held_by
from twinsieve.pipeline.messages.verdict_values import differing_words, ten_thousandths
from twinsieve.pipeline.wire.headers import DISTANCE, KEPT_APART, LEADER, NOTE, SHARED, SIMILARITY, STAGE
from twinsieve.pipeline.wire.positions import source_parts, sources_and_offsets
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.pipeline.worker.added_headers import HeaderTable
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.rows.record_copies import NONE

_STAGES = {Kind.EXACT: b"exact", Kind.NEAR: b"near"}
_NOTED = (Flag.UNCONFIRMED, Flag.ESTIMATED, Flag.CUT_SHORT)
_NOTES = [
    b",".join((flag.name or "").lower().encode() for flag in _NOTED if flags & flag) or None
    for flags in range(256)
]
_DECIMALS = len(str(SIMILARITY_SCALE)) - 1


def add_explanation(table: HeaderTable, ruling: Ruling, rows: NDArray[np.int64]) -> None:
    """Add the headers that explain why these rows of a block were dropped; all rows are duplicates.

    table: of as many messages as there are rows
    """
    verdicts = ruling.verdicts.take(rows)
    is_near = verdicts.kinds == Kind.NEAR
    near, exact = (table.number_of(_STAGES[kind]) for kind in (Kind.NEAR, Kind.EXACT))
    table.add(STAGE, texts=np.where(is_near, near, exact).astype(np.int32))
    sources, offsets = sources_and_offsets(verdicts.leaders)
    is_led = verdicts.leaders != NO_LEADER
    named, which = np.unique(sources, return_inverse=True)
    topics = table.numbers_of([_place_of(source, ruling.topics) for source in named.tolist()])
    table.add(LEADER, texts=np.where(is_led, topics[which], NONE), numbers=np.where(is_led, offsets, NONE))
    matched, compared = verdicts.matched.astype(np.int64), verdicts.compared.astype(np.int64)
    shares = ten_thousandths(matched, np.maximum(compared, 1))
    table.add(SIMILARITY, numbers=np.where(compared > 0, shares, NONE), decimals=_DECIMALS)
    table.add(DISTANCE, numbers=np.where(is_near, verdicts.distances, NONE))
    table.add(SHARED, numbers=np.where(is_near, verdicts.shared, NONE))
    table.add(NOTE, texts=table.numbers_of(_NOTES)[verdicts.flags])


def _place_of(source: int, topics: Mapping[int, str]) -> bytes:
    """The partition of a leader, as it stands before the offset."""
    number, partition = source_parts(source)
    return f"{held_by(topics.get(number, f'topic-{number}'))}[{partition}]@".encode()


_APART_BYTES = 200


def add_apart(table: HeaderTable, verdicts: Verdicts) -> None:
    """Add the header that names the difference which kept a message apart from a similar one, to the messages
    that have one.

    verdicts: on the messages of the table

    >>> verdicts, table = Verdicts.blank(2, fill={"reasons": Rule.NUMBER}), HeaderTable(2)
    >>> verdicts.details = np.array([[[ord("9")], [ord("8")]]], np.uint32)
    >>> verdicts.detail_rows[1] = 0
    >>> add_apart(table, verdicts)
    >>> table.headers().listed()
    [[('twinsieve-kept-apart', b'number')], [('twinsieve-kept-apart', b'number 9/8')]]
    """
    why: list[bytes | None] = []
    for row, reason in enumerate(verdicts.reasons.tolist()):
        if not reason:
            why.append(None)
            continue
        text = Rule(reason).words
        if (words := differing_words(verdicts, row)) is not None:
            text += f" {'/'.join(map(_escaped, words))}"
        why.append(_cut(text.encode()))
    table.add(KEPT_APART, texts=table.numbers_of(why))


def _escaped(text: str) -> str:
    """The text with an escape sequence in place of each character that is not printable."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _cut(text: bytes) -> bytes:
    """The first `_APART_BYTES` bytes of a UTF-8 text, cut between characters."""
    return text if len(text) <= _APART_BYTES else text[:_APART_BYTES].decode(errors="ignore").encode()
