"""Rebuilds the answer from the raw topics alone, by one plain loop over the fingerprint log.

It shares nothing with the roles but the decoding of blocks and decisions: offsets are sets of ints, the sieve
is a list of texts. What retention took is still known here, so that copies which come out because their record is
gone can be told from all others (`Truth.copies`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.driver import (
    DEAD,
    DUPLICATES,
    LOG,
    NO_TEXTS,
    OUTPUT,
    SCHEME,
    SEEDED,
    Taken,
    World,
    origin_of,
)
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.wire.block import Block, BlockFlag, RowKind, decode_block
from twinsieve.pipeline.wire.frame import ForeignSchemeError, ForeignVersionError, What
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.pipeline.wire.ruling import Result, Ruling, Source, decode_ruling
from twinsieve.stages.contract import NO_LEADER, Kind

Place = tuple[bytes, int, int]
"""Topic id, partition, offset."""


@dataclass
class PlainPartition:
    """judged: offset → the block that said so; began: where the session began, -1 once it has gone on.

    anew: open, and judged again since, for the record was gone: nothing says that the first verdict came out
    """

    session: int = 0
    covered: int = 0
    began: int = -1
    judged: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)
    anew: set[int] = field(default_factory=set)


class Kept(NamedTuple):
    """A kept message: `block` is where it was judged; `passed` the block from which on it leads nobody."""

    text: str
    place: Place
    block: int
    passed: int = -1

    @property
    def leads(self) -> bool:
        """Whether no session has passed it over."""
        return self.passed < 0


class Judgement(NamedTuple):
    """What one block said of one message; `leader` where it is a duplicate."""

    block: int
    kind: Kind
    leader: Place | None


@dataclass
class Truth:
    """What the raw topics say: each judged message's kind and leader, by place.

    judgements: all that hold; more than one only where retention took the record of those before
    copies: uniques that are equal to a message whose record retention took, with the block that says so
    given_up: judged and passed over before it came out, and the last block that tells; judged anew if an operator
        moves the offset back
    """

    kinds: dict[Place, Kind] = field(default_factory=dict)
    judgements: dict[Place, list[Judgement]] = field(default_factory=dict)
    copies: dict[Place, int] = field(default_factory=dict)
    partitions: dict[tuple[bytes, int], PlainPartition] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)
    given_up: dict[Place, int] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    rulings: list[Ruling] = field(default_factory=list)

    def forgotten(self, block: int, at: int) -> bool:
        """Whether whoever judged block `at` may have known nothing of an earlier block any more."""
        return any(each.before > block and each.decided <= at for each in self.taken)


def rebuild(world: World, *, window: int = 1_000, judge: bool = True) -> Truth:
    """One plain loop over the log; asserts that every recorded decision equals it.

    judge: False takes kinds from the decisions (where the configuration changed on the way)
    """
    decisions: dict[int, Ruling] = {}
    recorded = [*world.decision_entries(), *world.lost_decisions]
    for n, entry in enumerate(recorded):
        ruling = decode_ruling(What.DECISION, entry.value or b"", SCHEME, f"decision {n}")
        assert ruling.log_offset not in decisions, f"block {ruling.log_offset} was decided twice"
        decisions[ruling.log_offset] = ruling
    in_order = list(decisions)[: len(recorded) - len(world.lost_decisions)]
    assert in_order == sorted(in_order), "decisions are not in log order"
    truth = Truth(taken=world.taken)
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
        _replay(truth, block, decisions[offset], kept, window, judge=judge)
        truth.rulings.append(decisions[offset])
    return truth


def _replay(
    truth: Truth, block: Block, ruling: Ruling, kept: list[Kept], window: int, *, judge: bool
) -> None:
    now = ruling.log_offset
    assert (block.session, block.first, block.end) == (ruling.session, ruling.first, ruling.end), (
        f"block {now}: the decision is another block's"
    )
    key = (block.topic_id, block.number)
    known = truth.partitions.get(key)
    result = _result(truth, block, known)
    # Whoever has lost a part of the record may see a session otherwise than who has it all.
    assert ruling.result is result or truth.forgotten(-1, now), (
        f"block {ruling.log_offset}: recorded {ruling.result!r}, plain loop {result!r}"
    )
    if ruling.result is not Result.JUDGED:
        assert len(ruling) == 0
        return
    truth.names.setdefault(block.topic_id, block.topic)
    part = truth.partitions.setdefault(key, PlainPartition())
    if block.flags & BlockFlag.START:
        part.session, part.covered, part.began = block.session, block.first, block.first
    reported = range(block.emitted_from, block.emitted_to)
    part.judged |= dict.fromkeys(reported, now)
    part.open.difference_update(reported)
    part.anew.difference_update(reported)
    if not block.flags & BlockFlag.START and part.began >= 0:
        _pass_over(truth, key, {at for at in part.open if at < part.began}, kept, now)
        part.began = -1
        for other, old in truth.partitions.items():
            if other[0] != key[0] and truth.names[other[0]] == block.topic:
                old.session = 0
                _pass_over(truth, other, set(old.open), kept, now, deleted=True)
    if not block.flags & BlockFlag.START:
        asked = set(range(block.first, block.end)) - set(block.offsets.tolist())
        _pass_over(truth, key, part.open & asked, kept, now)
    texts = [block.batch.bodies.text(row) for row in range(len(block.batch))]
    for row, at in enumerate(block.offsets.tolist()):
        place: Place = (*key, at)
        text = texts.pop(0) if block.kinds[row] == RowKind.READABLE else ""
        kind, source = Kind(int(ruling.verdicts.kinds[row])), Source(int(ruling.sources[row]))
        again = at in part.judged and source is Source.NEW
        assert not again or truth.forgotten(part.judged[at], now), f"{place}: judged again"
        if again and at in part.open:
            part.anew.add(at)
        if at not in part.judged or again:
            assert source is Source.NEW, f"{place}: {source!r} although it was never judged"
            leader = _leader(truth, ruling, row, text, kept)
            if judge:
                _check_judgement(truth, Judgement(now, kind, leader), block, row, text, kept, window)
            if kind is Kind.UNIQUE and block.kinds[row] == RowKind.READABLE:
                if any(each.text == text and each.leads for each in kept[-window:]):
                    truth.copies[place] = now
                kept.append(Kept(text, place, now))
            truth.kinds[place] = kind
            truth.judgements.setdefault(place, []).append(Judgement(now, kind, leader))
            part.open.add(at)
        elif at in part.open and source is Source.REPLAYED:
            block_of = truth.judgements[place][-1].block
            assert truth.forgotten(block_of, now), f"{place}: replayed, although it is not known to be out"
        elif at in part.open:
            assert source is Source.STORED, f"{place}: {source!r} although its verdict is stored"
            assert kind is truth.kinds[place], f"{place}: stored verdict changed"
        else:
            assert source is Source.REPLAYED, f"{place}: {source!r} although it is out"
            assert kind is Kind.REPLAYED
    part.judged |= {at: now for at in range(block.first, block.end) if at not in part.judged}
    part.covered = block.end


def _pass_over(
    truth: Truth, key: tuple[bytes, int], gone: set[int], kept: list[Kept], now: int, *, deleted: bool = False
) -> None:
    """What is passed over was never judged, and leads nobody."""
    part = truth.partitions[key]
    part.open -= gone
    places = {(*key, at) for at in gone}
    truth.given_up |= dict.fromkeys(places, now)
    for place in places:
        del part.judged[place[2]]
        if deleted:
            continue  # nobody knows which of the last ones came out
        truth.judgements[place].pop()
        if truth.judgements[place] and place[2] not in part.anew:
            truth.kinds[place] = truth.judgements[place][-1].kind
        else:
            del truth.kinds[place]
        if not truth.judgements[place]:
            del truth.judgements[place]
    part.anew -= gone
    kept[:] = [each._replace(passed=now) if each.leads and each.place in places else each for each in kept]


def _result(truth: Truth, block: Block, known: PlainPartition | None) -> Result:
    if not block.flags & BlockFlag.START:
        joins = known is not None and known.session == block.session and known.covered == block.first
        return Result.JUDGED if joins else Result.SUPERSEDED
    if known is not None and block.flags & BlockFlag.FRESH:
        skipped = range(known.covered, block.first)
        if known.judged or any(at >= block.beginning for at in skipped):
            return Result.OFFSETS_MISSING
    if block.flags & BlockFlag.FIRST:
        same = [part for (topic_id, _), part in truth.partitions.items() if topic_id == block.topic_id]
        if any(part.judged for part in same):
            return Result.OFFSETS_MISSING
    if known is not None and known.judged:
        return Result.SHORTENED if block.stable_end <= max(known.judged) else Result.JUDGED
    judged_ids = {topic_id for (topic_id, _), part in truth.partitions.items() if part.judged}
    others = any(truth.names[topic_id] == block.topic for topic_id in judged_ids)
    if block.topic_id not in truth.names and others and not block.flags & BlockFlag.CERTIFIED:
        return Result.RECREATED
    return Result.JUDGED


def _check_judgement(
    truth: Truth, said: Judgement, block: Block, row: int, text: str, kept: list[Kept], window: int
) -> None:
    """A readable message is a duplicate of the oldest equal one among the last `window` kept that leads, and unique
    if there is none. What may be forgotten counts or does not count."""
    where = f"block {said.block}, row {row}"
    if block.kinds[row] != RowKind.READABLE:
        wanted = Kind.UNREADABLE if block.kinds[row] == RowKind.UNREADABLE else Kind.UNIQUE
        assert (said.kind, said.leader) == (wanted, None), f"{where}: {said}"
        return
    known = {each for each in kept if not truth.forgotten(each.block, said.block)}
    sure = [each for each in kept[-window:] if each.text == text and each in known and each.leads]
    perhaps = [
        each.place
        for n, each in enumerate(kept)
        if truth.taken
        and each.text == text
        and each not in sure
        and (each.leads or truth.forgotten(each.passed, said.block))
        and sum(later in known for later in kept[n + 1 :]) < window
    ]
    if said.kind is Kind.UNIQUE:
        assert not sure, f"{where}: recorded as unique, plain loop: equal to {sure[0].place}"
        return
    assert said.kind is Kind.EXACT, f"{where}: {said}"
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


@dataclass
class Fates:
    """Where each message ended, by its origin header: (topic name, partition, offset) → topics it went to."""

    went: dict[tuple[str, int, int], list[str]] = field(default_factory=dict)


def check_output(world: World, truth: Truth, *, in_order: bool = True) -> Fates:
    """Output = exactly the uniques, duplicates the duplicates, dead letters the unreadable ones: once each.

    A message keeps the number of its partition where both topics have as many.

    in_order: offsets of a partition ascend in the output (they need not where an operator moved them)
    """
    fates = Fates()
    kind_of: dict[tuple[str, int, int], list[Kind]] = {}
    for (topic_id, partition, offset), said in truth.judgements.items():
        held = kind_of.setdefault((truth.names[topic_id], partition, offset), [])
        held += [each.kind for each in said]
    topics = {OUTPUT: {Kind.UNIQUE}, DUPLICATES: {Kind.EXACT, Kind.NEAR}, DEAD: {Kind.UNREADABLE}}
    for topic, kinds in topics.items():
        for number, log in enumerate(world.cluster.topics[topic].logs):
            last: dict[tuple[str, int], int] = {}
            for _, entry in log.visible():
                name, partition, offset = origin_of(entry)
                assert name != SEEDED, (
                    f"{topic}: {name}[{partition}]@{offset} was seeded, and comes out again"
                )
                source = (name, partition)
                as_many = len(world.cluster.topics[name].logs) == len(world.cluster.topics[topic].logs)
                assert partition == number or not as_many, "a message changed its partition"
                if in_order:
                    assert offset > last.get(source, -1), f"{topic}[{number}]: {offset} after {last[source]}"
                    last[source] = offset
                fates.went.setdefault((name, partition, offset), []).append(topic)
                assert set(kind_of.get((name, partition, offset), ())) & kinds, (
                    f"{topic}: wrong verdict for {name}@{offset}"
                )
    for at, went in fates.went.items():
        assert len(went) <= len(kind_of[at]), f"{at} was emitted {len(went)} times: {went}"
    return fates


def check_complete(world: World, truth: Truth, fates: Fates) -> None:
    """Every message that was judged, and not passed over, went somewhere; whoever was dropped has a leader that
    leads."""
    current = {world.cluster.topics[name].topic_id for name in world.topic_ids}
    for topic_id, partition, offset in truth.kinds:
        if topic_id not in current:
            continue  # the originals went with their topic
        at = (truth.names[topic_id], partition, offset)
        assert at in fates.went, f"{at} was judged and never emitted"
    _check_leaders(truth, fates)


def _check_leaders(truth: Truth, fates: Fates) -> None:
    """The leader of every duplicate came out, or was passed over after the duplicate was judged; then nothing could
    be done."""
    for place, said in truth.judgements.items():
        for block, _, leader in said:
            if leader is None:
                continue
            passed = truth.given_up.get(leader, -1)
            excused = passed > block or (passed >= 0 and truth.forgotten(passed, block))
            assert excused or _came(truth, fates, leader) or _equal_came(truth, fates, leader), (
                f"{place} was dropped for {leader}, which never came out"
            )


def _came(truth: Truth, fates: Fates, place: Place) -> bool:
    """What was seeded is out: it was read from an output."""
    return truth.names[place[0]] == SEEDED or OUTPUT in fates.went.get(
        (truth.names[place[0]], *place[1:]), ()
    )


def _equal_came(truth: Truth, fates: Fates, place: Place) -> bool:
    """Whether retention took the record of a kept message, which then was judged anew and dropped for an equal one
    that came out."""
    kept, *again = truth.judgements.get(place, [])
    return any(
        each.leader is not None
        and truth.forgotten(kept.block, each.block)
        and _came(truth, fates, each.leader)
        for each in again
    )


def check_seeded(world: World, truth: Truth, ends: Mapping[Partition, int]) -> None:
    """Everything that a finished seed was to read, and that retention left, was judged."""
    topic = world.cluster.topics[SEEDED]
    for at, end in ends.items():
        for offset, _ in topic.logs[at.number].visible():
            judged = (topic.topic_id, at.number, offset) in truth.kinds
            assert judged or offset >= end, f"{at}@{offset}: the seed is done, and it was never judged"


def check_all_judged(world: World, truth: Truth) -> None:
    """Every message the input topics still hold was judged."""
    for name in world.topic_ids:
        topic = world.cluster.topics[name]
        for number, log in enumerate(topic.logs):
            for offset, _ in log.visible():
                assert (topic.topic_id, number, offset) in truth.kinds, (
                    f"{name}[{number}]@{offset}: never judged"
                )


def check_no_text(world: World, truth: Truth, fates: Fates) -> None:
    """Messages whose values hold no text, by these values alone: they came out as they came, and led nobody."""
    leaders = {each.leader for said in truth.judgements.values() for each in said}
    values = {
        origin_of(entry): entry.value
        for log in world.cluster.topics[OUTPUT].logs
        for _, entry in log.visible()
    }
    for name, topic_ids in world.topic_ids.items():
        topic = world.cluster.topics[name]
        for number, log in enumerate(topic.logs):
            for offset, entry in log.visible():
                if entry.value is not None and entry.value not in NO_TEXTS:
                    continue
                place, at = (topic.topic_id, number, offset), (name, number, offset)
                assert place not in leaders, f"{at} has no text and leads"
                said = {(each.kind, each.leader) for each in truth.judgements[place]}
                assert said == {(Kind.UNIQUE, None)}, f"{at} has no text: {said}"
                # Of a topic that was made again the places of both count.
                if len(topic_ids) == 1:
                    assert set(fates.went[at]) == {OUTPUT}, f"{at} has no text and went to {fates.went[at]}"
                    assert values[at] == entry.value
