"""Holds every recorded decision against one plain loop over the fingerprint log, and the outputs against the decisions.

It shares nothing with the roles but the decoding of blocks and decisions; the sieve is a list of texts. It keeps no book
of sessions: which kept messages lead follows from what became of them (`tests/model/raw.py`). One that was never lost
leads, and so does one that the group's offset had passed when it was lost; any other one may lead or not, and that
it does not for ever is what `missing_texts` finds out. What retention took of the record is still known here, so that
copies which come out because their record is gone can be told from all others (`Truth.copies`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from tests.driver import DEAD, DUPLICATES, LOG, OUTPUT, SCHEME, SEEDED, Taken, World
from tests.model.history import Cause, Loss, Place
from tests.model.raw import Raw, Same, check_dropped, check_once, check_order, check_standing
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.wire.block import Block, RowKind, decode_block
from twinsieve.pipeline.wire.frame import ForeignSchemeError, ForeignVersionError, What
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source, decode_ruling
from twinsieve.stages.contract import NO_LEADER, Kind


class Kept(NamedTuple):
    """A kept message; `block` is where it was judged."""

    text: str
    place: Place
    block: int


class Judgement(NamedTuple):
    """What one block said of one message; `leader` where it is a duplicate."""

    block: int
    kind: Kind
    leader: Place | None


@dataclass
class Truth:
    """What the record says of each message, by place.

    judgements: more than one of a message that was lost and came back, or whose record retention took
    copies: uniques that are equal to a message whose record retention took, with the block that says so
    misread: messages of a topic that was made again, judged under the id of the one before
    asked: judged blocks so far with their log offsets, by topic id and partition
    """

    raw: Raw
    judgements: dict[Place, list[Judgement]] = field(default_factory=dict)
    copies: dict[Place, int] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    rulings: list[Ruling] = field(default_factory=list)
    misread: set[Place] = field(default_factory=set)
    asked: defaultdict[tuple[bytes, int], list[tuple[int, Block]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def kinds(self) -> dict[Place, Kind]:
        """What was said last."""
        return {place: said[-1].kind for place, said in self.judgements.items()}

    @property
    def given_up(self) -> set[Place]:
        """Judged, and lost before they came out."""
        return {place for place in self.judgements if self.lost(place) and not self.raw.fates[place]}

    def lost(self, place: Place, by_ms: float = inf) -> bool:
        """Whether the message was lost before this moment of the wall clock, in a way that leaves it open whether it
        leads."""
        if place not in self.raw.messages:
            return True  # misread: its topic was gone already
        return any(
            not loss.passed or loss.cause in (Cause.DELETED, Cause.TAKEN_OUT)
            for loss in self._losses(place, by_ms)
        )

    def compacted(self, place: Place, by_ms: float) -> bool:
        """Whether compaction took the message before this moment of the wall clock."""
        return any(loss.cause is Cause.COMPACTION for loss in self._losses(place, by_ms))

    def skipped(self, place: Place, by_ms: float) -> bool:
        """Whether workers were free to skip the batch of the message before this moment of the wall clock, and one did:
        after the message was judged it asked for the offsets around it, and not for the message."""
        unreadable = any(loss.cause is Cause.UNREADABLE for loss in self._losses(place, by_ms))
        judged, (topic_id, number, offset) = self.judgements[place][-1].block, place
        return unreadable and any(
            at > judged and block.first <= offset < block.end and offset not in block.offsets
            for at, block in self.asked[topic_id, number]
        )

    def _losses(self, place: Place, by_ms: float) -> list[Loss]:
        losses = self.raw.losses(self.raw.messages[place])
        return [loss for loss in losses if loss.at_s is None or self.raw.world.wall_ms(loss.at_s) <= by_ms]

    def limited(self, place: Place, by_ms: float) -> bool:
        """Whether an output refused such a message, from a moment before this one on."""
        history, wall_ms = self.raw.world.history, self.raw.world.wall_ms
        began = any(wall_ms(at_s) <= by_ms for at_s in history.limited_s)
        return began and history.may_refuse(self.raw.messages[place].entry)

    def place_of(self, read: Place) -> Place:
        """Where the message stands that was read at this place.

        A worker compares the ids of topics once a second, so it may read what a topic has that was just made again
        under the id of the one that was deleted.
        """
        if read in self.raw.messages:
            return read
        place = self.raw.place_in_later_topic(read, self.names[read[0]])
        assert place is not None, f"{read}: judged, and never was such a message"
        self.misread.add(place)
        return place

    def forgotten(self, block: int, at: int) -> bool:
        """Whether whoever judged block `at` may have known nothing of an earlier block any more."""
        return any(each.before > block and each.decided <= at for each in self.taken)


def rebuild(world: World, *, window: int = 1_000, judge: bool = True) -> Truth:
    """One plain loop over the log; asserts that every recorded decision equals it.

    judge: False takes kinds from the decisions (where the configuration changed on the way)
    """
    decisions: dict[int, Ruling] = {}
    decided_ms: dict[int, int] = {}
    recorded = [*world.decision_entries(), *world.lost_decisions]
    for n, entry in enumerate(recorded):
        ruling = decode_ruling(What.DECISION, entry.value or b"", SCHEME, f"decision {n}")
        assert ruling.log_offset not in decisions, f"block {ruling.log_offset} was decided twice"
        decisions[ruling.log_offset], decided_ms[ruling.log_offset] = ruling, entry.timestamp_ms
    in_order = list(decisions)[: len(recorded) - len(world.lost_decisions)]
    assert in_order == sorted(in_order), "decisions are not in log order"
    truth = Truth(Raw(world), taken=world.taken)
    kept: list[Kept] = []
    for offset, entry in sorted(world.log_entries().items()):
        if offset not in decisions:
            # Where decisions were deleted, nobody can say what was judged: an index begins behind the log then.
            passed_over = offset in world.trimmed_log or world.trimmed_decisions
            assert passed_over or offset > max(decisions, default=-1), f"block {offset}: no decision"
            continue
        try:
            block = decode_block(entry.value or b"", SCHEME, f"{LOG}@{offset}")
        except (ForeignSchemeError, ForeignVersionError):
            assert decisions[offset].result is Result.FOREIGN
            continue
        # What was lost before the ruling may have been passed over, however long the block waited for it.
        by_ms = max(entry.timestamp_ms, decided_ms[offset])
        _replay(truth, by_ms, block, decisions[offset], kept, window, judge=judge)
        truth.rulings.append(decisions[offset])
    return truth


def _replay(
    truth: Truth, by_ms: int, block: Block, ruling: Ruling, kept: list[Kept], window: int, *, judge: bool
) -> None:
    now = ruling.log_offset
    assert (block.session, block.first, block.end) == (ruling.session, ruling.first, ruling.end), (
        f"block {now}: the decision is another block's"
    )
    if ruling.result is not Result.JUDGED:
        assert len(ruling) == 0
        return
    truth.names.setdefault(block.topic_id, block.topic)
    truth.asked[block.topic_id, block.number].append((now, block))
    texts = [block.batch.bodies.text(row) for row in range(len(block.batch))]
    for row, at in enumerate(block.offsets.tolist()):
        read: Place = (block.topic_id, block.number, at)
        place = truth.place_of(read)
        text = texts.pop(0) if block.kinds[row] == RowKind.READABLE else ""
        kind, source = Kind(int(ruling.verdicts.kinds[row])), Source(int(ruling.sources[row]))
        refused = block.kinds[row] == RowKind.REFUSED
        _check_source(truth, place, kind, source, now, by_ms, refused=refused)
        if source is not Source.NEW:
            continue
        said = Judgement(now, kind, _leader(truth, ruling, row, text, kept))
        if judge:
            _check_judgement(truth, by_ms, said, block, row, text, kept, window)
        if kind is Kind.UNIQUE and block.kinds[row] == RowKind.READABLE:
            if any(each.text == text and not truth.lost(each.place, by_ms) for each in kept[-window:]):
                truth.copies[place] = now
            kept.append(Kept(text, read, now))
        truth.judgements.setdefault(place, []).append(said)


def _check_source(
    truth: Truth, place: Place, kind: Kind, source: Source, now: int, by_ms: int, *, refused: bool
) -> None:
    """A message is judged once, unless it was lost, retention took the record, or the output's limit was lowered and
    refuses it now (`refused`); asked again it has its verdict again, or none where it is out."""
    before = truth.judgements.get(place, [])
    if source is Source.NEW:
        again = not before or truth.lost(place, by_ms) or truth.forgotten(before[-1].block, now)
        again = again or place in truth.misread or (refused and truth.limited(place, by_ms))
        assert again, f"{place}: judged again by block {now}"
    elif source is Source.STORED:
        assert before, f"{place}: {source!r} although it was never judged"
        assert kind is before[-1].kind or truth.forgotten(-1, now), f"{place}: stored verdict changed"
    else:
        assert kind is Kind.REPLAYED
        # Where it went may be nowhere, as duplicates and dead letters are without a topic of theirs.
        is_out = truth.raw.fates[place] or not before or before[-1].kind is not Kind.UNIQUE
        out = is_out or truth.raw.messages[place].name == SEEDED
        # A worker found it gone, which closes its verdict; another one, that had read it before, asks later.
        out = out or truth.compacted(place, by_ms)
        # A worker skipped it, which closes its verdict too: it stays lost when it can be read again.
        out = out or truth.skipped(place, by_ms)
        assert out or truth.forgotten(-1, now), f"{place}: replayed, although it never came out"


def _check_judgement(
    truth: Truth,
    by_ms: int,
    said: Judgement,
    block: Block,
    row: int,
    text: str,
    kept: list[Kept],
    window: int,
) -> None:
    """A readable message is a duplicate of the oldest equal one among the last `window` kept that leads, and unique
    if there is none. What may be forgotten, or may have been passed over, counts or does not count."""
    where = f"block {said.block}, row {row}"
    if block.kinds[row] != RowKind.READABLE:
        wanted = Kind.UNIQUE if block.kinds[row] == RowKind.NO_TEXT else Kind.UNREADABLE
        assert (said.kind, said.leader) == (wanted, None), f"{where}: {said}"
        return
    known = {each for each in kept if not truth.forgotten(each.block, said.block)}
    sure = [
        each
        for each in kept[-window:]
        if each.text == text and each in known and not truth.lost(each.place, by_ms)
    ]
    if said.kind is Kind.UNIQUE:
        assert not sure, f"{where}: recorded as unique, plain loop: equal to {sure[0].place}"
        return
    perhaps = [
        each.place
        for n, each in enumerate(kept)
        if each.text == text
        and each not in sure
        and (truth.lost(each.place, by_ms) or truth.taken)
        and sum(later in known for later in kept[n + 1 :]) < window
    ]
    assert said.kind is truth.raw.world.copies_are, f"{where}: {said}"
    assert said.leader in [*perhaps, *(each.place for each in sure[:1])], (
        f"{where}: leader {said.leader}, plain loop {sure or 'unique'}"
    )


def _leader(truth: Truth, ruling: Ruling, row: int, text: str, kept: list[Kept]) -> Place | None:
    """The leader that a decision names. A name may stand for several topics, one made after the other was
    deleted: of these the one with such a message."""
    packed = int(ruling.verdicts.leaders[row])
    if packed == NO_LEADER:
        return None
    at = unpack_position(packed)
    named = (ruling.topics[at.topic_number], at.partition, at.offset)
    meant = [each for each in kept if (truth.names[each.place[0]], *each.place[1:]) == named]
    assert meant, f"block {ruling.log_offset}, row {row}: leader {named} was not kept"
    equal = [each for each in meant if each.text.lower() == text.lower()]
    return (equal or meant)[-1].place


def check_output(world: World, truth: Truth, *, in_order: bool = True) -> Raw:
    """Output = exactly the uniques, duplicates the duplicates, dead letters the unreadable ones and those that an output
    does not take: once for each judgement.

    A message keeps the number of its partition where both topics have as many, and never had others.

    in_order: offsets of a partition ascend in the output (they need not where an operator moved them)
    returns: what came out
    """
    raw = truth.raw
    kinds_of = {OUTPUT: {Kind.UNIQUE}, DUPLICATES: {Kind.EXACT, Kind.NEAR}, DEAD: set(Kind)}
    for place, fates in raw.fates.items():
        message, said = raw.messages[place], truth.judgements.get(place, [])
        for fate in fates:
            where = f"{fate.topic}[{fate.number}]@{fate.offset}"
            assert {each.kind for each in said} & kinds_of[fate.topic], f"{where}: wrong for {message.at}"
            counts = world.cluster.counts[message.name], world.cluster.counts[fate.topic]
            as_many = counts[0] == counts[1] and len(counts[0]) == 1
            assert fate.number == place[1] or not as_many, f"{where}: {message.at} changed its partition"
        assert len(fates) <= len(said), (
            f"{message.at} was judged {len(said)} times, and came out {len(fates)} times"
        )
    check_once(raw)
    if in_order:
        check_order(raw)
    return raw


def check_complete(world: World, truth: Truth, raw: Raw, same: Same = str) -> None:
    """Every message that was judged, and not lost, went somewhere; whoever was dropped has an equal text that came out."""
    for place in truth.judgements:
        message = raw.messages[place]
        owed = message.stands and place not in world.left_out
        assert raw.fates[place] or not owed, f"{message.at} was judged and never emitted"
    check_dropped(raw, same)


def check_seeded(world: World, truth: Truth, ends: Mapping[Partition, int]) -> None:
    """Everything that a finished seed was to read, and that retention left, was judged."""
    topic = world.cluster.topics[SEEDED]
    for at, end in ends.items():
        for offset, _ in topic.logs[at.number].visible():
            judged = (topic.topic_id, at.number, offset) in truth.judgements
            assert judged or offset >= end, f"{at}@{offset}: the seed is done, and it was never judged"


def check_all_judged(world: World, truth: Truth) -> None:
    """Every message the input topics still hold was judged, and is somewhere."""
    for message in truth.raw.messages.values():
        judged = message.place in truth.judgements or not message.stands
        assert judged or message.place in world.left_out, f"{message.at}: never judged"
    check_standing(truth.raw)


def check_settled(world: World, *, in_order: bool = True) -> Truth:
    """Let the world settle. The record equals the plain loop, the outputs equal the record, nothing of the input is
    missing, and no process stopped."""
    world.settle()
    truth = rebuild(world)
    check_complete(world, truth, check_output(world, truth, in_order=in_order))
    check_all_judged(world, truth)
    assert world.stops == []
    return truth
