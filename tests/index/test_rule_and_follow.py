"""Whoever follows the recorded rulings knows what the index knows that made them, whatever was passed over."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from typing import Literal

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.driver import SCHEME
from tests.examples import examples
from tests.twins import HashSieve, TinyScheme, batch_of, ruled
from twinsieve.pipeline.index.ledger import GivenUp, ledger_from_bytes, ledger_to_bytes
from twinsieve.pipeline.index.state import Asked, IndexState
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind, decode_block, encode_block
from twinsieve.pipeline.wire.frame import What
from twinsieve.pipeline.wire.ruling import Result, Source, decode_ruling, encode_ruling

TOPICS = ((b"1" * 16, "in"), (b"2" * 16, "in"), (b"3" * 16, "other"), (b"4" * 16, "in"))
"""Ids and names: the first, second and last are one topic, which was deleted and created again."""
ARRIVAL_MS = 1 << 40

Row = tuple[int, RowKind, str]
"""Unused offsets before it, kind, text."""


@dataclass(frozen=True)
class Start:
    """A session begins. emitted: it reports what lies so far before its first offset"""

    topic: int
    number: int
    first: int
    emitted: int


@dataclass(frozen=True)
class Ask:
    """The session goes on. emitted: it reports this number of offsets behind where it began"""

    topic: int
    number: int
    rows: tuple[Row, ...]
    unused: int
    emitted: int


@dataclass(frozen=True)
class Gone:
    """The index that judges finds that nobody reads the topic."""

    topic: int


Event = Start | Ask | Gone | Literal["restore", "take over"]

places = {"topic": st.integers(0, len(TOPICS) - 1), "number": st.integers(0, 1)}
rows = st.tuples(st.sampled_from([0, 0, 0, 1, 3]), st.sampled_from(RowKind), st.sampled_from("abcdef"))
asks = st.builds(
    Ask,
    **places,
    rows=st.lists(rows, max_size=6).map(tuple),
    unused=st.integers(0, 3),
    emitted=st.integers(0, 6),
)
starts = st.builds(Start, **places, first=st.integers(0, 9), emitted=st.integers(0, 3))
events = st.lists(
    st.one_of(asks, asks, asks, starts, starts, st.builds(Gone, topic=places["topic"]),
              st.sampled_from(["restore", "take over"])),
    max_size=25,
)  # fmt: skip


@dataclass
class Session:
    """What a worker knows of its session."""

    number: int
    began: int
    covered: int


def known(state: IndexState) -> tuple[bytes, list[tuple[int, int, int]], int]:
    """All that a state knows."""
    assert isinstance(state.sieve, HashSieve)
    return ledger_to_bytes(state.ledger), state.sieve.kept, state.next_offset


def restored(state: IndexState) -> IndexState:
    """The same from a snapshot."""
    saved = BytesIO()
    state.sieve.freeze().write(saved)
    saved.seek(0)
    ledger = ledger_from_bytes(ledger_to_bytes(state.ledger), "here")
    return IndexState(HashSieve().load(saved), ledger, state.next_offset)


@dataclass
class Pair:
    """One state that judges, one that follows."""

    judge: IndexState = field(default_factory=lambda: IndexState(HashSieve()))
    follower: IndexState = field(default_factory=lambda: IndexState(HashSieve()))
    sessions: dict[tuple[int, int], Session] = field(default_factory=dict)
    gone: set[bytes] = field(default_factory=set)
    given_up: Counter[GivenUp] = field(default_factory=Counter)
    asked: list[tuple[bytes, int, tuple[bytes, ...]]] = field(default_factory=list)
    """Each block, its offset in the log, and the topics that were given up with it."""
    rulings: list[tuple[bytes, bytes]] = field(default_factory=list)

    def play(self, event: Event) -> None:
        if event == "restore":
            self.follower = restored(self.follower)
        elif event == "take over":
            self.judge, self.follower = self.follower, self.judge
            self.gone.clear()
        elif isinstance(event, Gone):
            self.gone.add(TOPICS[event.topic][0])
        elif isinstance(event, Start):
            session = Session(self.judge.next_offset + 1, event.first, event.first)
            self.sessions[event.topic, event.number] = session
            self.send(event, session, max(0, event.first - event.emitted), event.first, [], event.first)
        elif (event.topic, event.number) in self.sessions:
            session = self.sessions[event.topic, event.number]
            reported = min(session.began + event.emitted, session.covered)
            ends = (session.covered + np.cumsum([unused + 1 for unused, _, _ in event.rows])).astype(int)
            end = int(max([session.covered, *ends])) + event.unused
            self.send(event, session, session.began, reported, (ends - 1).tolist(), end)
            session.covered = end

    def played(self, events: list[Event]) -> Pair:
        """This pair, after all of these."""
        for event in events:
            self.play(event)
        return self

    def send(
        self,
        event: Start | Ask,
        session: Session,
        reported_from: int,
        reported: int,
        offsets: list[int],
        end: int,
    ) -> None:
        rows = event.rows if isinstance(event, Ask) else ()
        texts = [text for _, kind, text in rows if kind is RowKind.READABLE]
        starts = isinstance(event, Start)
        block = Block(
            TOPICS[event.topic][0], event.number, 0, session.number,
            BlockFlag.START | BlockFlag.CERTIFIED | BlockFlag.RESET if starts else BlockFlag.NONE,
            session.covered, end, reported_from, reported, stable_end=1_000, topic=TOPICS[event.topic][1],
            offsets=np.array(offsets, np.int64), kinds=np.array([kind for _, kind, _ in rows], np.uint8),
            batch=batch_of(*TinyScheme().read(texts)),
        )  # fmt: skip
        data = encode_block(block, SCHEME)
        at = self.judge.next_offset
        before = self.judge.ledger.given_up.copy()
        asks = self.judge.asks(block)
        ruling = ruled(
            self.judge, decode_block(data, SCHEME, "log"), at, ARRIVAL_MS, self.gone - {block.topic_id}
        )
        if not ruling.given_up and ruling.result is Result.JUDGED:
            is_new = (ruling.sources == Source.NEW) & (block.kinds == RowKind.READABLE)
            assert asks == is_new.any(), "whoever asks waits for answers"
        elif ruling.result is not Result.JUDGED:
            assert not asks
        self.asked.append((data, at, tuple(sorted(self.gone - {block.topic_id}))))
        self.rulings.append(encode_ruling(ruling, SCHEME))
        self.given_up += self.judge.ledger.given_up - before
        self.gone -= set(ruling.given_up)
        recorded = decode_ruling(What.DECISION, encode_ruling(ruling, SCHEME)[0], SCHEME, "decisions")
        self.follower.follow([(decode_block(data, SCHEME, "log"), recorded)])


@settings(max_examples=examples(300))
@given(played=events)
def test_a_state_that_follows_equals_the_one_that_judges(played: list[Event]) -> None:
    pair = Pair()
    for event in played:
        pair.play(event)
        assert known(pair.follower) == known(pair.judge), event
    assert known(restored(pair.judge)) == known(pair.judge)


_A, _B, _X = ((0, RowKind.READABLE, text) for text in "abx")
_AT_ONCE = [25] * 25
_NEED_EARLIER_VERDICTS: list[list[Event]] = [
    # The second block of a session passes over what was judged just before: the new session begins behind it.
    [Start(0, 0, 0, 0), Ask(0, 0, (_A,), 0, 0), Start(0, 0, 5, 0), Ask(0, 0, (_B,), 0, 0)],
    # A copy of a message that compaction has deleted comes before the block that shows that.
    [
        *(Start(0, 0, 0, 0), Ask(0, 0, (_A, _B), 0, 0), Start(0, 1, 0, 0), Ask(0, 1, (_X,), 0, 0)),
        *(Start(0, 0, 0, 0), Ask(0, 0, (), 0, 0), Ask(0, 1, (_A,), 0, 0)),
        Ask(0, 0, ((1, RowKind.READABLE, "b"),), 0, 0),
    ],
    # A topic was created again: of the old one a message was judged just before. The second start parts the
    # first from what follows.
    [
        *(Start(0, 0, 0, 0), Ask(0, 0, (), 0, 0), Start(1, 0, 0, 0), Start(0, 1, 0, 0)),
        *(Ask(0, 0, (_X,), 0, 0), Ask(1, 0, (_X,), 0, 0)),
    ],
    # A topic is given up of which a message was judged just before.
    [Start(0, 0, 0, 0), Ask(0, 0, (), 0, 0), Start(2, 0, 0, 0), Ask(2, 0, (), 0, 0), Ask(2, 0, (_X,), 0, 0), Gone(2),
     Ask(0, 0, (_X,), 0, 0)],
]  # fmt: skip


@settings(max_examples=examples(300))
@given(
    played=events.map(lambda played: [event for event in played if event != "take over"]),
    counts=st.lists(st.integers(1, 25), min_size=25, max_size=25),
)
@example(_NEED_EARLIER_VERDICTS[0], _AT_ONCE)
@example(_NEED_EARLIER_VERDICTS[1], _AT_ONCE)
@example(_NEED_EARLIER_VERDICTS[2], _AT_ONCE)
@example(_NEED_EARLIER_VERDICTS[3], _AT_ONCE)
def test_blocks_judged_together_get_the_rulings_of_blocks_judged_one_by_one(
    played: list[Event], counts: list[int]
) -> None:
    pair = Pair().played(played)
    together, rulings, left = IndexState(HashSieve()), [], list(pair.asked)
    for count in counts:
        now, left = left[:count], left[count:]
        asked = [Asked(decode_block(data, SCHEME, "log"), at, ARRIVAL_MS, gone) for data, at, gone in now]
        rulings += [encode_ruling(ruling, SCHEME) for ruling in together.rule(asked)]
    assert rulings == pair.rulings
    assert known(together) == known(pair.judge)


@settings(max_examples=examples(300))
@given(played=events, counts=st.lists(st.integers(1, 25), min_size=25, max_size=25))
@example(_NEED_EARLIER_VERDICTS[0], _AT_ONCE)
@example(_NEED_EARLIER_VERDICTS[1], _AT_ONCE)
@example(_NEED_EARLIER_VERDICTS[2], _AT_ONCE)
@example(_NEED_EARLIER_VERDICTS[3], _AT_ONCE)
def test_rulings_followed_together_leave_what_rulings_followed_one_by_one_leave(
    played: list[Event], counts: list[int]
) -> None:
    pair = Pair().played(played)
    together = IndexState(HashSieve())
    blocks = [decode_block(data, SCHEME, "log") for data, _, _ in pair.asked]
    rulings = [decode_ruling(What.DECISION, decision, SCHEME, "decisions") for decision, _ in pair.rulings]
    left = list(zip(blocks, rulings, strict=True))
    for count in counts:
        together.follow(left[:count])
        left = left[count:]
    assert known(together) == known(pair.follower)


@settings(max_examples=examples(300))
@given(played=events)
def test_only_what_is_open_or_came_out_leads(played: list[Event]) -> None:
    """A message that leads has a verdict that stands, or was reported as emitted."""
    pair = Pair()
    for event in played:
        pair.play(event)
        ledger, sieve = pair.judge.ledger, pair.judge.sieve
        assert isinstance(sieve, HashSieve)
        for position, digest, _ in sieve.kept:
            number, partition, offset = position >> 56, position >> 40 & 0xFFFF, position & (1 << 40) - 1
            judged = ledger.books[number, partition].judged.contain(np.array([offset]))[0]
            assert digest == -1 or judged, (
                f"{TOPICS[number]}[{partition}]@{offset} leads and was never judged"
            )


def test_every_cause_is_met_and_counted() -> None:
    """Retention is told from a reset by where the partition began; the rest is what the random runs play."""
    pair = Pair()
    readable = tuple((0, RowKind.READABLE, text) for text in "abcdef")
    for event in (
        Start(0, 0, 0, 0), Ask(0, 0, readable, 0, 0),
        # The first row is skipped, the second one refused, the third compacted.
        Start(0, 0, 1, 0), Ask(0, 0, ((0, RowKind.REFUSED, "b"), (1, RowKind.READABLE, "d")), 0, 0),
        Start(2, 1, 0, 0), Ask(2, 1, ((0, RowKind.READABLE, "x"),), 0, 0), Gone(2),
        # Created again: d, e, f are left.
        Start(1, 1, 0, 0), Ask(1, 1, readable[:1], 0, 0),
    ):  # fmt: skip
        pair.play(event)  # type: ignore[arg-type]
    assert pair.given_up == {
        GivenUp.RESET: 1, GivenUp.REFUSED: 1, GivenUp.COMPACTED: 1, GivenUp.GONE: 1, GivenUp.RECREATED: 4,
    }  # fmt: skip
    assert known(pair.follower) == known(pair.judge)
