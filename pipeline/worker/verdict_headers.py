"""The headers that say why a message was dropped, or what kept it apart from a similar one (docs/WIRE.md)."""

from __future__ import annotations

import numpy as np

from twinsieve.pipeline.broker.records import Header
from twinsieve.pipeline.messages.columns import differing_words, ten_thousandths
from twinsieve.pipeline.wire.headers import DISTANCE, KEPT_APART, LEADER, NOTE, SHARED, SIMILARITY, STAGE
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule

_STAGES = {int(Kind.EXACT): b"exact", int(Kind.NEAR): b"near"}
_NOTED = (Flag.UNCONFIRMED, Flag.ESTIMATED, Flag.CUT_SHORT)
_NOTES = {
    flags: b",".join((flag.name or "").lower().encode() for flag in _NOTED if flags & flag)
    for flags in range(256)
}


def explain_rows(ruling: Ruling, rows: list[int]) -> list[list[Header]]:
    """For each of these rows of a block the headers that explain why it was dropped; all rows are
    duplicates."""
    verdicts = ruling.verdicts.take(np.array(rows))
    columns = (
        verdicts.kinds,
        verdicts.flags,
        verdicts.leaders,
        verdicts.matched,
        verdicts.compared,
        verdicts.distances,
        verdicts.shared,
    )
    explained: list[list[Header]] = []
    values = zip(*(column.tolist() for column in columns), strict=True)
    for kind, flags, leader, matched, compared, distance, shared in values:
        headers: list[Header] = [(STAGE, _STAGES[kind])]
        explained.append(headers)
        if leader != NO_LEADER:
            headers.append((LEADER, _place(leader, ruling.topics)))
        if compared:
            share = divmod(ten_thousandths(matched, compared), SIMILARITY_SCALE)
            headers.append((SIMILARITY, b"%d.%04d" % share))
        if distance >= 0 and kind == Kind.NEAR:
            headers.append((DISTANCE, b"%d" % distance))
        if shared >= 0 and kind == Kind.NEAR:
            headers.append((SHARED, b"%d" % shared))
        if _NOTES[flags]:
            headers.append((NOTE, _NOTES[flags]))
    return explained


def _place(packed: int, topics: dict[int, str]) -> bytes:
    position = unpack_position(packed)
    name = topics.get(position.topic_number, f"topic-{position.topic_number}")
    return f"{name}[{position.partition}]@{position.offset}".encode()


_APART_BYTES = 200


def apart_headers(verdicts: Verdicts) -> list[list[Header]]:
    """For each kept message a list with the header that names the difference which kept it apart from a
    similar message; an empty list if there is none.

    >>> verdicts = Verdicts.blank(2, fill={"reasons": Rule.NUMBER})
    >>> verdicts.details = np.array([[[ord("9")], [ord("8")]]], np.uint32)
    >>> verdicts.detail_rows[1] = 0
    >>> apart_headers(verdicts)
    [[('twinsieve-kept-apart', b'number')], [('twinsieve-kept-apart', b'number 9/8')]]
    """
    headers: list[list[Header]] = []
    for row, reason in enumerate(verdicts.reasons.tolist()):
        if not reason:
            headers.append([])
            continue
        text = Rule(reason).words
        if (words := differing_words(verdicts, row)) is not None:
            text += f" {'/'.join(map(_escaped, words))}"
        headers.append([(KEPT_APART, _cut(text.encode()))])
    return headers


def _escaped(text: str) -> str:
    """The text with an escape sequence in place of each character that is not printable."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def _cut(text: bytes) -> bytes:
    """The first `_APART_BYTES` bytes of a UTF-8 text, cut between characters."""
    return text if len(text) <= _APART_BYTES else text[:_APART_BYTES].decode(errors="ignore").encode()
