"""Rebuilds the answer from the raw topics alone, by one plain loop over the fingerprint log.

It shares nothing with the roles but the decoding of blocks and decisions: offsets are sets of ints, the sieve
is a list of texts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.driver import DEAD, DECISIONS, DUPLICATES, LOG, OUTPUT, SCHEME, World
from twinsieve.pipeline.blocks import Block, BlockFlag, RowKind, decode_block
from twinsieve.pipeline.blocks_frame import What
from twinsieve.pipeline.blocks_positions import unpack_position
from twinsieve.pipeline.blocks_verdicts import Result, Ruling, Source, decode_ruling
from twinsieve.pipeline.memory_log import Entry
from twinsieve.pipeline.ports import Partition
from twinsieve.stages.contract import NO_LEADER, Kind

Place = tuple[bytes, int, int]
"""Topic id, partition, offset."""


@dataclass
class PlainPartition:
    session: int = 0
    covered: int = 0
    judged: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)


@dataclass
class Truth:
    """What the raw topics say: each judged message's kind and leader, by place."""

    kinds: dict[Place, Kind] = field(default_factory=dict)
    partitions: dict[tuple[bytes, int], PlainPartition] = field(default_factory=dict)
    names: dict[bytes, str] = field(default_factory=dict)
    given_up: set[Place] = field(default_factory=set)
    rulings: list[Ruling] = field(default_factory=list)


def rebuild(world: World, *, window: int = 1_000, judge: bool = True) -> Truth:
    """One plain loop over the log; asserts that every recorded decision equals it.

    judge: False takes kinds from the decisions (where the configuration changed on the way)
    """
    decisions = {}
    for offset, entry in world.cluster.log(DECISIONS).visible():
        ruling = decode_ruling(What.DECISION, entry.value or b"", SCHEME, f"decision {offset}")
        assert ruling.log_offset not in decisions, f"block {ruling.log_offset} was decided twice"
        decisions[ruling.log_offset] = ruling
    assert list(decisions) == sorted(decisions), "decisions are not in log order"
    truth = Truth()
    kept: list[tuple[str, Place]] = []
    for offset, entry in sorted(world.log_entries().items()):
        if offset not in decisions:
            assert offset in world.trimmed_log or offset > max(decisions, default=-1), (
                f"block {offset}: no decision"
            )
            continue
        block = decode_block(entry.value or b"", SCHEME, f"{LOG}@{offset}")
        _replay(truth, block, decisions[offset], kept, window, judge=judge)
        truth.rulings.append(decisions[offset])
    return truth


def _replay(
    truth: Truth, block: Block, ruling: Ruling, kept: list[tuple[str, Place]], window: int, *, judge: bool
) -> None:
    key = (block.topic_id, block.number)
    known = truth.partitions.get(key)
    result = _result(truth, block, known)
    assert ruling.result is result, (
        f"block {ruling.log_offset}: recorded {ruling.result!r}, plain loop {result!r}"
    )
    if result is not Result.JUDGED:
        assert len(ruling) == 0
        return
    truth.names.setdefault(block.topic_id, block.topic)
    part = truth.partitions.setdefault(key, PlainPartition())
    if block.flags & BlockFlag.START:
        part.session, part.covered = block.session, block.first
    reported = set(range(block.emitted_from, block.emitted_to))
    part.judged |= reported
    part.open -= reported
    if block.flags & BlockFlag.START:
        gone = {at for at in part.open if at < block.beginning}
        truth.given_up |= {(*key, at) for at in gone}
        part.open -= gone
    texts = [block.readable.bodies.text(row) for row in range(len(block.readable))]
    for row, at in enumerate(block.offsets.tolist()):
        place: Place = (*key, at)
        text = texts.pop(0) if block.kinds[row] == RowKind.READABLE else ""
        kind, source = Kind(int(ruling.verdicts.kinds[row])), Source(int(ruling.sources[row]))
        if at not in part.judged:
            assert source is Source.NEW, f"{place}: {source!r} although it was never judged"
            wanted, leader = _judge(block, row, text, place, kept, window)
            if judge:
                assert kind is wanted, f"{place}: recorded {kind!r}, plain loop {wanted!r}"
                _same_leader(truth, ruling, row, leader)
            elif kind is Kind.UNIQUE and block.kinds[row] == RowKind.READABLE:
                kept.append((text, place))
            truth.kinds[place] = kind
            part.open.add(at)
        elif at in part.open:
            assert source is Source.STORED
            assert kind is truth.kinds[place], f"{place}: stored verdict changed"
        else:
            assert source is Source.REPLAYED
            assert kind is Kind.REPLAYED
    part.judged |= set(range(block.first, block.end))
    part.covered = block.end


def _result(truth: Truth, block: Block, known: PlainPartition | None) -> Result:
    if not block.flags & BlockFlag.START:
        joins = known is not None and known.session == block.session and known.covered == block.first
        return Result.JUDGED if joins else Result.SUPERSEDED
    if known is not None and known.judged:
        if block.flags & BlockFlag.FRESH:
            return Result.OFFSETS_MISSING
        return Result.SHORTENED if block.stable_end <= max(known.judged) else Result.JUDGED
    judged_ids = {topic_id for (topic_id, _), part in truth.partitions.items() if part.judged}
    others = any(truth.names[topic_id] == block.topic for topic_id in judged_ids)
    if block.topic_id not in truth.names and others and not block.flags & BlockFlag.CERTIFIED:
        return Result.RECREATED
    return Result.JUDGED


def _judge(
    block: Block, row: int, text: str, place: Place, kept: list[tuple[str, Place]], window: int
) -> tuple[Kind, Place | None]:
    if block.kinds[row] == RowKind.UNREADABLE:
        return Kind.UNREADABLE, None
    if block.kinds[row] == RowKind.TOMBSTONE:
        return Kind.UNIQUE, None
    for other, leader in kept[-window:]:
        if other == text:
            return Kind.EXACT, leader
    kept.append((text, place))
    return Kind.UNIQUE, None


def _same_leader(truth: Truth, ruling: Ruling, row: int, leader: Place | None) -> None:
    packed = int(ruling.verdicts.leaders[row])
    if leader is None:
        assert packed == NO_LEADER
        return
    at = unpack_position(packed)
    named = (ruling.topics[at.topic_number], at.partition, at.offset)
    wanted = (truth.names[leader[0]], *leader[1:])
    assert named == wanted, f"block {ruling.log_offset}: leader {named}, plain loop {wanted}"


@dataclass
class Fates:
    """Where each message ended, by its origin header: (topic name, partition, offset) → topics it went to."""

    went: dict[tuple[str, int, int], list[str]] = field(default_factory=dict)


def check_output(world: World, truth: Truth, *, in_order: bool = True, once: bool = True) -> Fates:
    """Output = exactly the uniques, duplicates the duplicates, dead letters the unreadable ones: once each.

    A message keeps the number of its partition where both topics have as many.

    in_order: offsets of a partition ascend in the output (they need not where an operator moved them)
    once: False where `delivery: at-least-once` lets some come out again
    """
    fates = Fates()
    kind_of: dict[tuple[str, int, int], list[Kind]] = {}
    for (topic_id, partition, offset), kind in truth.kinds.items():
        kind_of.setdefault((truth.names[topic_id], partition, offset), []).append(kind)
    topics = {OUTPUT: {Kind.UNIQUE}, DUPLICATES: {Kind.EXACT, Kind.NEAR}, DEAD: {Kind.UNREADABLE}}
    for topic, kinds in topics.items():
        for number, log in enumerate(world.cluster.topics[topic].logs):
            last: dict[tuple[str, int], int] = {}
            for _, entry in log.visible():
                name, partition, offset = origin_of(entry)
                source = (name, partition)
                as_many = len(world.cluster.topics[name].logs) == len(world.cluster.topics[topic].logs)
                assert partition == number or not as_many, "a message changed its partition"
                if in_order:
                    assert offset > last.get(source, -1), f"{topic}[{number}]: {offset} after {last[source]}"
                    last[source] = offset
                fates.went.setdefault((name, partition, offset), []).append(topic)
                assert set(kind_of[(name, partition, offset)]) & kinds, (
                    f"{topic}: wrong verdict for {name}@{offset}"
                )
    for at, went in fates.went.items():
        assert not once or len(went) <= len(kind_of[at]), f"{at} was emitted {len(went)} times: {went}"
    return fates


def check_complete(world: World, truth: Truth, fates: Fates) -> None:
    """Every message that was judged went somewhere, but for those that retention took before they were
    emitted."""
    current = {world.cluster.topics[name].topic_id for name in world.topic_ids}
    given_up = {(truth.names[its], partition, at) for its, partition, at in truth.given_up if its in current}
    for topic_id, partition, offset in truth.kinds:
        if topic_id not in current:
            continue  # the originals went with their topic
        at = (truth.names[topic_id], partition, offset)
        held = offset >= world.cluster.log(Partition(at[0], partition)).beginning
        assert at in fates.went or at in given_up, f"{at} was judged and never emitted"
        assert not (held and at in given_up), f"{at} was given up, but retention has not taken it"


def check_all_judged(world: World, truth: Truth) -> None:
    """Every message the input topics still hold was judged."""
    for name in world.topic_ids:
        topic = world.cluster.topics[name]
        for number, log in enumerate(topic.logs):
            for offset, _ in log.visible():
                assert (topic.topic_id, number, offset) in truth.kinds, (
                    f"{name}[{number}]@{offset}: never judged"
                )


def origin_of(entry: Entry) -> tuple[str, int, int]:
    """Topic, partition and offset of the origin header."""
    origin = dict(entry.headers)["twinsieve-origin"]
    assert origin is not None
    where, _, offset = origin.decode().partition("@")
    name, _, number = where.removesuffix("]").partition("[")
    return name, int(number), int(offset)
