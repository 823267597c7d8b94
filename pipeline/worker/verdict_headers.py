"""The headers that say why a message was dropped, or what kept it apart from a similar one (docs/WIRE.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from twinsieve.pipeline.broker.records import Header
from twinsieve.pipeline.broker.redriven import held_by
from twinsieve.pipeline.messages.verdict_values import differing_words, ten_thousandths
from twinsieve.pipeline.wire.headers import DISTANCE, KEPT_APART, LEADER, NOTE, SHARED, SIMILARITY, STAGE
from twinsieve.pipeline.wire.positions import (
    MAX_OFFSETS,
    MAX_PARTITIONS,
    MAX_TOPICS,
    source_parts,
    sources_and_offsets,
)
from twinsieve.pipeline.wire.ruling import Ruling
from twinsieve.stages.contract import NO_LEADER, SIMILARITY_SCALE, Flag, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule

_STAGES: dict[int, Header] = {int(Kind.EXACT): (STAGE, b"exact"), int(Kind.NEAR): (STAGE, b"near")}
_NOTED = (Flag.UNCONFIRMED, Flag.ESTIMATED, Flag.CUT_SHORT)
_NOTES = {
    flags: b",".join((flag.name or "").lower().encode() for flag in _NOTED if flags & flag)
    for flags in range(256)
}
_LONGEST_NUMBER = b"9" * 20
"""No int64 and no similarity has more digits."""


def explain_rows(ruling: Ruling, rows: Sequence[int]) -> list[list[Header]]:
    """For each of these rows of a block a new list of the headers that explain why it was dropped; all rows
    are duplicates."""
    verdicts = ruling.verdicts.take(np.array(rows))
    columns = (
        verdicts.kinds.tolist(),
        verdicts.flags.tolist(),
        _leaders(verdicts.leaders, ruling.topics),
        verdicts.matched.tolist(),
        verdicts.compared.tolist(),
        verdicts.distances.tolist(),
        verdicts.shared.tolist(),
    )
    explained: list[list[Header]] = []
    for kind, flags, leader, matched, compared, distance, shared in zip(*columns, strict=True):
        headers: list[Header] = [_STAGES[kind]]
        explained.append(headers)
        if leader is not None:
            headers.append((LEADER, leader))
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


def longest_explanation(ruling: Ruling) -> list[Header]:
    """Headers that together have at least as many bytes as those that `explain_rows` gives any row, and are
    at least as many."""
    topic = max([*ruling.topics.values(), f"topic-{MAX_TOPICS}"], key=len)
    return [
        _STAGES[Kind.EXACT],
        (LEADER, f"{topic}[{MAX_PARTITIONS}]@{MAX_OFFSETS}".encode()),
        (SIMILARITY, _LONGEST_NUMBER),
        (DISTANCE, _LONGEST_NUMBER),
        (SHARED, _LONGEST_NUMBER),
        (NOTE, max(_NOTES.values(), key=len)),
    ]


def _leaders(packed: NDArray[np.int64], topics: Mapping[int, str]) -> list[bytes | None]:
    """The positions as text; None for NO_LEADER."""
    sources, offsets = sources_and_offsets(packed)
    named = {}
    for source in np.unique(sources).tolist():
        number, partition = source_parts(source)
        topic = held_by(topics.get(number, f"topic-{number}"))
        named[source] = f"{topic}[{partition}]@".encode()
    return [
        named[source] + b"%d" % offset if whole != NO_LEADER else None
        for whole, source, offset in zip(packed.tolist(), sources.tolist(), offsets.tolist(), strict=True)
    ]


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
