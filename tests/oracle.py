"""The plain loop: one message at a time, compared with every kept one, exactly as design section 1 says.

Slow on purpose and free of NumPy arithmetic, bands, filters and caches, so that it can be read against
the design line by line. Everything fast must give the same verdicts. Its exact stage is the ideal one
(what `trie` promises): keys are compared themselves, so nothing is ever taken at a filter's word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from rapidfuzz.distance import LCSseq

from tests.unicode_twin import CURRENCY, DIGIT
from twinsieve.stages.contract import (
    MIN_NEAR_LENGTH,
    NO_LEADER,
    NO_TIME,
    SIMILARITY_SCALE,
    STORED_LENGTH,
    Batch,
    Flag,
    Kind,
    SieveConfig,
    Window,
)


@dataclass(frozen=True)
class Row:
    """One message, its text already normalised; times in ms, NO_TIME for none; id and scope 0 for none.

    key: what the exact stage compares; None stands for the body
    own_length: characters of the body before a shared card; None stands for all of them
    simhash: 64 bits, hamming mode only; None where no feature was found
    """

    body: str
    key: Hashable = None
    own_length: int | None = None
    exact_only: bool = False
    time_ms: int = NO_TIME
    arrival_ms: int = NO_TIME
    id: int = 0
    scope: int = 0
    simhash: int | None = None
    position: int = 0

    @property
    def exact_key(self) -> Hashable:
        return self.body if self.key is None else self.key

    @property
    def own_words(self) -> str:
        return self.body if self.own_length is None else self.body[: self.own_length]

    @property
    def has_card(self) -> bool:
        return len(self.own_words) < len(self.body)


@dataclass(frozen=True)
class Kept:
    """A kept message: how many were kept before it, and stream time when it came."""

    row: Row
    index: int
    time_ms: int


@dataclass(frozen=True)
class Judgement:
    """What the loop says of one row; the fields mean what they mean in `Verdicts`."""

    kind: Kind
    flags: Flag = Flag.NONE
    leader: int = NO_LEADER
    matched: int = 0
    compared: int = 0
    distance: int = -1


Estimate = Callable[[Row, Row], tuple[int, int]]
"""(matched, compared) of two rows of which at least one body exceeds STORED_LENGTH characters."""


def indel(a: str, b: str) -> tuple[int, int]:
    """(matched, compared): twice the longest common subsequence, and both lengths together.

    source: Indel similarity is 1 - (insertions + deletions) / (len a + len b) = matched / compared

    >>> indel("abcd", "abxd")
    (6, 8)
    """
    return 2 * LCSseq.similarity(a, b), len(a) + len(b)


def is_near(matched: int, compared: int, similarity: int) -> bool:
    """Whether matched / compared >= similarity / 10,000, in integers.

    >>> is_near(17, 20, 8_500), is_near(16, 20, 8_500), is_near(0, 0, 8_500)
    (True, False, False)
    """
    return compared > 0 and matched * SIMILARITY_SCALE >= similarity * compared


_NUMBER = re.compile(rf"[-<>≤≥{CURRENCY}]*[{DIGIT}]+(?:[.,:/+*-][{DIGIT}]+)*")
"""Decimal digits of any script; a body holds the other marks only where they belong to a number."""


def digit_runs(body: str) -> list[tuple[str, str, str]]:
    """(character before, the number with prefixes and separators, character after) of each number in a body.

    The empty string stands for the start or end of the body.

    >>> digit_runs("新增1.5万例12"), digit_runs("气温-5度<$3")
    ([('增', '1.5', '万'), ('例', '12', '')], [('温', '-5', '度'), ('度', '<$3', '')])
    """
    return [
        (
            body[run.start() - 1 : run.start()] if run.start() else "",
            run.group(),
            body[run.end() : run.end() + 1],
        )
        for run in _NUMBER.finditer(body)
    ]


def number_guard(a: str, b: str) -> bool:
    """Whether a number was replaced in the same context, so that the two bodies report different things.

    >>> number_guard("新增确诊12例", "新增确诊15例")
    True
    >>> number_guard("新增12例共15例", "共15例新增12例"), number_guard("新增12例", "又增15例")
    (False, True)
    >>> number_guard("新增12例", "新增病例15例"), number_guard("第1集", "第1季第2集")
    (False, False)
    >>> number_guard("最高气温-5度", "最高气温5度"), number_guard("年龄>35岁", "年龄<35岁")
    (True, True)
    """
    runs_a, runs_b = digit_runs(a), digit_runs(b)
    values_a = {value for _, value, _ in runs_a}
    values_b = {value for _, value, _ in runs_b}
    return any(
        before_a == before_b and after_a == after_b and value_a not in values_b and value_b not in values_a
        for before_a, value_a, after_a in runs_a
        for before_b, value_b, after_b in runs_b
    )


def card_guard(a: Row, b: Row, similarity: int) -> bool:
    """Whether the two share a card (a poll, an article) but say different things of their own about it.

    >>> poll = "你支持哪一个选项"
    >>> card_guard(Row("支持" + poll, own_length=2), Row("反对" + poll, own_length=2), 8_500)
    True
    >>> card_guard(Row("支持" + poll, own_length=2), Row("支持" + poll), 8_500)
    False
    """
    if not (a.has_card and b.has_card):
        return False
    if min(len(a.own_words), len(b.own_words)) < MIN_NEAR_LENGTH:
        return a.own_words != b.own_words
    return not is_near(*indel(a.own_words, b.own_words), similarity)


class Oracle:
    """Judges rows in order; `kept` is all it remembers, oldest first.

    estimate: how to compare bodies of which one exceeds STORED_LENGTH; by default their whole texts

    >>> oracle = Oracle(SieveConfig())
    >>> [oracle.judge(Row(text)).kind.name for text in ("今天天气很好我们出去玩", "今天天气很好我们出去玩",
    ...                                                  "今天天气很好我们出去玩吧", "另外一句完全不同的话")]
    ['UNIQUE', 'EXACT', 'NEAR', 'UNIQUE']
    """

    def __init__(self, config: SieveConfig, estimate: Estimate | None = None) -> None:
        self.config = config
        self.kept: list[Kept] = []
        self.stream_time_ms = NO_TIME
        self._estimate = estimate

    def judge(self, row: Row) -> Judgement:
        """The verdict: stream time moves on, look for an exact leader, then a near one; else keep the row."""
        late = self._advance(row)
        judgement = self._exact(row) or self._near(row)
        if judgement.kind is Kind.UNIQUE:
            if late:
                return Judgement(Kind.UNIQUE, judgement.flags | Flag.LATE)
            self.kept.append(Kept(row, len(self.kept), self.stream_time_ms))
        return judgement

    def forget(self, positions: set[int]) -> None:
        """Kept messages at these positions lead nobody any more; they still count as kept."""
        for kept in self.kept:
            if kept.row.position in positions:
                self.kept[kept.index] = replace(kept, row=replace(kept.row, exact_only=True, key=object()))

    def _advance(self, row: Row) -> bool:
        """Move stream time on; True if the row comes too late to become a leader."""
        time = self.config.time
        if row.time_ms == NO_TIME:
            return False
        message_time = row.time_ms
        if row.arrival_ms != NO_TIME:
            message_time = min(message_time, row.arrival_ms + time.max_ahead_ms)
        if self.stream_time_ms == NO_TIME:
            # What was kept before any time was known counts as kept now.
            self.kept = [replace(kept, time_ms=message_time) for kept in self.kept]
        self.stream_time_ms = max(self.stream_time_ms, message_time)
        return time.late == "judge" and self.stream_time_ms - message_time > time.late_after_ms

    def _inside(self, kept: Kept, window: Window) -> bool:
        if len(self.kept) - kept.index > window.messages:
            return False
        return window.age_ms is None or self.stream_time_ms - kept.time_ms <= window.age_ms

    def _exact(self, row: Row) -> Judgement | None:
        if self.config.exact.method == "none":
            return None
        for kept in self.kept:
            if (
                self._inside(kept, self.config.exact.window)
                and kept.row.scope == row.scope
                and kept.row.exact_key == row.exact_key
            ):
                return Judgement(Kind.EXACT, leader=kept.row.position)
        return None

    def _near(self, row: Row) -> Judgement:
        """The best leader that no rule keeps apart, else UNIQUE with the flags of the rules that spoke."""
        near = self.config.near
        best: Judgement | None = None
        apart = Flag.NONE
        if near.method == "none" or row.exact_only:
            return Judgement(Kind.UNIQUE)
        for kept in self.kept:
            other = kept.row
            if not self._inside(kept, near.window) or other.exact_only or other.scope != row.scope:
                continue
            found = self._hamming(row, other) if near.method == "hamming" else self._alike(row, other)
            if found is None:
                continue
            reason = self._kept_apart(row, other)
            if reason:
                apart |= reason
            elif best is None or _better(found, best):
                best = found
        return best or Judgement(Kind.UNIQUE, apart)

    def _alike(self, row: Row, other: Row) -> Judgement | None:
        flags = Flag.NONE
        matched, compared = indel(row.body, other.body)
        if max(len(row.body), len(other.body)) > STORED_LENGTH:
            flags = Flag.ESTIMATED
            if self._estimate is not None:
                matched, compared = self._estimate(row, other)
        if not is_near(matched, compared, self.config.near.similarity):
            return None
        return Judgement(Kind.NEAR, flags, other.position, matched, compared)

    def _hamming(self, row: Row, other: Row) -> Judgement | None:
        """A leader if at most k bits differ, k being that of the shorter body's length."""
        if row.simhash is None or other.simhash is None:
            return None
        shorter = min(len(row.body), len(other.body))
        limits = [k for from_length, k in self.config.near.distances if from_length <= shorter]
        distance = (row.simhash ^ other.simhash).bit_count()
        if not limits or distance > limits[-1]:
            return None
        return Judgement(Kind.NEAR, leader=other.position, distance=distance)

    def _kept_apart(self, row: Row, other: Row) -> Flag:
        """The first rule that speaks against calling the two near duplicates; guards read texts."""
        near = self.config.near
        if near.same_id == "pass" and row.id != 0 and row.id == other.id:
            return Flag.SAME_ID
        if near.method == "hamming":
            return Flag.NONE
        if near.number_guard and number_guard(row.body, other.body):
            return Flag.NUMBER_GUARD
        if near.card_guard and card_guard(row, other, near.similarity):
            return Flag.CARD_GUARD
        return Flag.NONE


def _better(found: Judgement, best: Judgement) -> bool:
    """Whether a later kept message is the better leader: strictly more alike; ties stay with the oldest."""
    if found.distance >= 0:
        return found.distance < best.distance
    return found.matched * best.compared > best.matched * found.compared


def rows_of(batch: Batch, key_is_text: bool = True) -> list[Row]:
    """The rows of a columnar batch, as the plain loop reads them.

    key_is_text: keys are the key texts; else the digests (of `exact.fields`)
    """
    bodies, prints = batch.bodies, batch.fingerprints
    rows = []
    for i in range(len(batch)):
        part = bodies.chars[bodies.starts[i] : bodies.starts[i + 1]]
        text = part.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        digest = (int(prints.digests[i, 0]), int(prints.digests[i, 1]))
        rows.append(
            Row(
                body=text,
                key=text if key_is_text else digest,
                own_length=int(bodies.own_lengths[i]),
                exact_only=bool(bodies.exact_only[i]),
                time_ms=int(batch.times_ms[i]),
                arrival_ms=int(batch.arrivals_ms[i]),
                id=int(batch.ids[i]),
                scope=int(batch.scopes[i]),
                simhash=int(prints.simhashes[i, 0]) if prints.has_simhash[i] else None,
                position=int(batch.positions[i]),
            )
        )
    return rows
