"""The plain loop: one message at a time, compared with every kept one, exactly as design section 1 says.

Slow on purpose and free of NumPy arithmetic, bands, filters and caches, so that it can be read against
the design line by line. Everything fast must give the same verdicts. Its exact stage is the ideal one
(what `trie` promises): keys are compared themselves, so nothing is ever taken at a filter's word.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import isqrt

from rapidfuzz.distance import LCSseq

from tests.stages.differ.asked import bodies_of, have_other_tails, reason
from twinsieve.stages.contract import (
    MIN_NEAR_LENGTH,
    NO_LEADER,
    NO_TIME,
    OFF,
    SIMILARITY_SCALE,
    STORED_LENGTH,
    Batch,
    Flag,
    Kind,
    SieveConfig,
    Window,
)
from twinsieve.stages.differ.rules import Rule


@dataclass(frozen=True)
class Row:
    """One message, its text already normalised; times in ms, NO_TIME for none; id and scope 0 for none.

    key: what the exact stage compares; None stands for the body
    own_length: characters of the body before a shared card; None stands for all of them
    simhash: 64 bits, hamming mode only; None where no feature was found
    part_hashes: of the method signatures; none where the text has no signature
    word_starts: for each character of the body whether a word begins there; none given: nowhere
    stream_ms: stream time after it, if somebody else decides that
    sketch: bytes of the whole body's sketch, by which bodies beyond STORED_LENGTH are estimated; none given:
        they are compared whole
    """

    body: str
    key: Hashable = None
    own_length: int | None = None
    exact_only: bool = False
    time_ms: int = NO_TIME
    arrival_ms: int = NO_TIME
    stream_ms: int = NO_TIME
    id: int = 0
    scope: int = 0
    simhash: int | None = None
    part_hashes: frozenset[int] = frozenset()
    position: int = 0
    word_starts: tuple[int, ...] = ()
    sketch: tuple[int, ...] = ()

    @property
    def exact_key(self) -> Hashable:
        return self.body if self.key is None else self.key

    @property
    def own_words(self) -> str:
        return self.body if self.own_length is None else self.body[: self.own_length]

    @property
    def has_card(self) -> bool:
        return len(self.own_words) < len(self.body)

    @property
    def starts(self) -> tuple[int, ...]:
        return self.word_starts or (0,) * len(self.body)


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
    shared: int = -1
    reason: Rule = Rule.NONE
    apart_from: int = NO_LEADER


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


def estimate(a: Row, b: Row) -> tuple[int, int]:
    """(matched, compared) of two rows with sketches, from these and the first STORED_LENGTH characters.

    Equal sketch bytes give the share of common 4-grams: J is known from (256 equal - n) / 255 n, as one byte in
    256 agrees by chance, and 2J / (1 + J) is the share. It is at most what the heads leave possible; where the
    heads differ, edits are scattered, and the square root of the share is nearer, up to what the heads share.
    No estimate says that two bodies are equal.
    """
    head_matched, head_compared = indel(a.body[:STORED_LENGTH], b.body[:STORED_LENGTH])
    compared = len(a.body) + len(b.body)
    count = len(a.sketch)
    equal = sum(one == other for one, other in zip(a.sketch, b.sketch, strict=True))
    above, below = max(0, 256 * equal - count), 255 * count
    share = 2 * above * SIMILARITY_SCALE // (above + below)
    if head_matched < head_compared:
        scattered = isqrt(share * SIMILARITY_SCALE)
        share = max(share, min(head_matched * SIMILARITY_SCALE // head_compared, scattered))
    share = min(share, SIMILARITY_SCALE - 1)
    most = head_matched + 2 * (compared - head_compared)
    return min(share * compared // SIMILARITY_SCALE, most), compared


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

    def __init__(self, config: SieveConfig) -> None:
        self.config = config
        self.kept: list[Kept] = []
        self.stream_time_ms = NO_TIME
        self.now_ms = NO_TIME

    def judge(self, row: Row) -> Judgement:
        """The verdict: stream time moves on, look for an exact leader, then a near one; else keep the row."""
        late = self._advance(row)
        judgement = self._exact(row) or self._near(row)
        if judgement.kind is Kind.UNIQUE:
            if late:
                return replace(judgement, flags=judgement.flags | Flag.LATE)
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
        self.now_ms = self.stream_time_ms
        if row.time_ms == NO_TIME:
            return False
        message_time = row.time_ms
        if row.arrival_ms != NO_TIME:
            message_time = min(message_time, row.arrival_ms + time.max_ahead_ms)
        moved = message_time if row.stream_ms == NO_TIME else row.stream_ms
        if self.stream_time_ms == NO_TIME:
            # What was kept before any time was known counts as kept now.
            self.kept = [replace(kept, time_ms=moved) for kept in self.kept]
        self.stream_time_ms = max(self.stream_time_ms, moved)
        # A row that somebody leaves ahead of stream time is late, and its windows end at its own time.
        self.now_ms = max(self.stream_time_ms, message_time)
        is_late = self.stream_time_ms - message_time > time.late_after_ms or self.now_ms > self.stream_time_ms
        return time.late == "judge" and is_late

    def _inside(self, kept: Kept, window: Window) -> bool:
        if len(self.kept) - kept.index > window.messages:
            return False
        return window.age_ms is None or self.now_ms - kept.time_ms <= window.age_ms

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
        """The best leader that no rule keeps apart, else UNIQUE with the reason of the best one that one does."""
        near = self.config.near
        best: Judgement | None = None
        apart: Judgement | None = None
        if near.method == "none" or row.exact_only:
            return Judgement(Kind.UNIQUE)
        if (near.method == "hamming" and row.simhash is None) or (
            near.method == "signatures" and len(row.part_hashes) < near.share
        ):
            return Judgement(Kind.UNIQUE, Flag.NO_FEATURES)
        alike = {"text": self._alike, "hamming": self._hamming, "signatures": self._signatures}[near.method]
        for kept in self.kept:
            other = kept.row
            if not self._inside(kept, near.window) or other.exact_only or other.scope != row.scope:
                continue
            found = alike(row, other)
            if found is None:
                continue
            reason = self._kept_apart(row, other)
            if reason:
                # Of the most alike that are kept apart, the newest is named.
                if apart is None or not _better(apart, found):
                    apart = replace(found, reason=reason)
            elif best is None or _better(found, best):
                best = found
        if best is not None:
            return best
        if apart is not None:
            return Judgement(Kind.UNIQUE, reason=apart.reason, apart_from=apart.leader)
        return Judgement(Kind.UNIQUE)

    def _alike(self, row: Row, other: Row) -> Judgement | None:
        flags = Flag.NONE
        matched, compared = indel(row.body, other.body)
        if max(len(row.body), len(other.body)) > STORED_LENGTH:
            flags = Flag.ESTIMATED
            if row.sketch and other.sketch:
                matched, compared = estimate(row, other)
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

    def _signatures(self, row: Row, other: Row) -> Judgement | None:
        shared = len(row.part_hashes & other.part_hashes)
        if shared < self.config.near.share:
            return None
        return Judgement(Kind.NEAR, leader=other.position, shared=shared)

    def _kept_apart(self, row: Row, other: Row) -> Rule:
        """The first rule that speaks against calling the two near duplicates; differences are those of texts."""
        near = self.config.near
        if near.same_id == "pass" and row.id != 0 and row.id == other.id:
            return Rule.SAME_ID
        if near.method != "text" or near.differences.level == OFF:
            return Rule.NONE
        bodies = bodies_of([row.body, other.body], [row.starts, other.starts])
        why = reason(bodies, 0, 1, near.differences)
        if why == Rule.NONE and row.sketch and other.sketch and have_other_tails(bodies, 0, 1):
            return Rule.TAIL
        if why == Rule.NONE and card_guard(row, other, near.similarity):
            return Rule.CARD
        return why


def _better(found: Judgement, best: Judgement) -> bool:
    """Whether a later kept message is the better leader: strictly more alike; ties stay with the oldest."""
    if found.distance >= 0:
        return found.distance < best.distance
    if found.shared >= 0:
        return found.shared > best.shared
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
                stream_ms=int(batch.stream_ms[i]),
                id=int(batch.ids[i]),
                scope=int(batch.scopes[i]),
                simhash=int(prints.simhashes[i, 0]) if prints.has_simhash[i] else None,
                part_hashes=frozenset(prints.part_hashes[i].tolist()) - {0},
                position=int(batch.positions[i]),
                word_starts=tuple(bodies.word_starts[bodies.starts[i] : bodies.starts[i + 1]].tolist()),
                sketch=tuple(prints.sketches[prints.sketch_rows[i]].tolist())
                if prints.sketch_rows[i] >= 0
                else (),
            )
        )
    return rows
