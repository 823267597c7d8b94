"""`twinsieve topics check | create`: check that all topics exist, with settings under which no message is
lost, and create missing topics.

`run` makes the same checks at its start. A finding is one line (what is wrong, where, what to do); its
severity decides whether `run` stops.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, Admin, NewTopic, TopicInfo
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.index.answers_topic import NOT_THERE, READS, denied
from twinsieve.pipeline.operate.input_topics import NO_INPUT
from twinsieve.pipeline.operate.topic_plan import (
    ASSUMED_RATE,
    FRAME_BYTES,
    Need,
    Plan,
    input_topic,
    internal_topic,
    log_bytes_a_day,
    most_block_bytes,
    output_topic,
    plan_of,
    trims_log,
)
from twinsieve.pipeline.settings.model import Settings

_log = logging.getLogger("twinsieve")
_HEADERS_BYTES = 4 << 10
"""The most bytes that the headers of a duplicate or dead letter add to the input message."""
_LEAST_BYTES = 1024
"""The most bytes of a dead letter without the input message: record batch, reason and origin."""
_FOREVER = -1
_HOUR_MS = 3_600_000
_STAMPED_BY = "message.timestamp.type"
_LIMIT = "max.message.bytes"
_WITHOUT_CACHE = "until then shards wait, and the index looks up itself"


class Severity(Enum):
    """What `run` does after a finding."""

    STOPS = "stops"
    """`run` stops, because messages would be lost or nothing could work."""
    WARNS = "warns"
    """`run` warns; some messages may become dead letters or lose their order, or disks may fill up."""
    COSTS = "costs"
    """`run` warns, but nothing is wrong: the topic grows without limit, or CPU could be saved."""


@dataclass(frozen=True, slots=True)
class TopicFinding:
    """A problem of a topic; `str` gives the line to show.

    text: what is wrong, and what to do
    """

    topic: str
    severity: Severity
    text: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.text}"


def check(
    settings: Settings, admin: Admin, *, emits: bool = True, reads_caches: bool = True
) -> list[TopicFinding]:
    """All findings on the topics; empty if there are none.

    A missing topic stops `run`. So does an internal topic under whose settings messages could be lost, and an
    output that accepts only tiny messages. Other findings on outputs are warnings, and so are all on a cache.
    Findings on retention are warnings too, because an index can continue after retention has deleted
    messages.

    emits: False if the process never writes to the outputs
    reads_caches: False if this user need not read them
    raises: BrokerError if no broker answers, or if describing a topic is not allowed
    """
    plan = plan_of(settings, emits=emits)
    caches, needed = plan.caches, frozenset({READS} if reads_caches else ())
    infos, findings = _described(plan, admin)
    findings += [
        TopicFinding(name, Severity.STOPS, NO_INPUT if name in plan.inputs else NOT_THERE)
        for name in plan.names
        if name not in caches and infos[name] is None
    ]
    findings += [
        TopicFinding(name, Severity.WARNS, f"{why}; {_WITHOUT_CACHE}")
        for name, info in infos.items()
        if name in caches and (why := NOT_THERE if info is None else denied(info, needed))
    ]
    there = {name: info for name, info in infos.items() if info is not None}
    findings += [
        TopicFinding(need.name, severity, text)
        for need in plan.internal
        if need.name in there
        for severity, text in _internal(settings, need, there[need.name])
    ]
    findings += _small(plan, there)
    inputs = [there[name] for name in plan.inputs if name in there]
    findings += [
        TopicFinding(name, severity, text)
        for name in plan.outputs
        if name in there
        for severity, text in _output(settings, plan, there[name], inputs)
    ]
    return findings


def block_bytes(settings: Settings, admin: Admin) -> int:
    """Size of the largest block of the log: as set, or what all topics that a block goes through take.

    raises: BrokerError if no broker answers, or if describing a topic is not allowed
    """
    if settings.kafka.block_bytes:
        return settings.kafka.block_bytes
    # No other topic is asked for: a dry run, for one, may not describe the outputs.
    needs = _of_blocks(plan_of(settings))
    infos, _ = _described(Plan((), (), tuple(needs)), admin)
    taken = [info.message_bytes for info in infos.values() if info is not None]
    return max(1, min([most_block_bytes(settings), *(size - FRAME_BYTES for size in taken)]))


def create(
    settings: Settings, admin: Admin, *, emits: bool = True, input_partitions: int | None = None
) -> list[str]:
    """Create all missing topics; returns the names of the created topics.

    emits: False if the process never writes to the outputs; then outputs are not created
    input_partitions: partitions of each missing input topic; None: no input topic is created
    raises: BrokerError if an input topic is missing and not created, or if the broker refuses
    """
    plan = plan_of(settings, emits=emits)
    infos, _ = _described(plan, admin)
    missing = [name for name in plan.inputs if infos[name] is None]
    for name in missing:
        if input_partitions is None:
            raise BrokerError(f"{name}: {NO_INPUT}", retryable=False)
        admin.create_topic(input_topic(settings, name, input_partitions))
    infos |= admin.topics(missing, settings=True)
    inputs = [info for name in plan.inputs if (info := infos[name]) is not None]
    partitions = max(info.partitions for info in inputs)
    largest = max(info.message_bytes for info in inputs)
    wanted = [
        output_topic(settings, name, partitions, largest + _HEADERS_BYTES)
        for name in plan.outputs
        if infos[name] is None
    ]
    absent = {name for name, info in infos.items() if info is None}
    for topic in wanted:
        admin.create_topic(topic)
    internal = [internal_topic(settings, need) for need in plan.internal if need.name in absent]
    for topic in internal:
        _create(topic, admin)
    wanted += internal
    return [*missing, *(topic.name for topic in wanted)]


def _create(topic: NewTopic, admin: Admin) -> None:
    """Create an internal topic; if the broker refuses it, with the broker's own limit for messages."""
    try:
        admin.create_topic(topic)
    except BrokerError as refusal:
        if refusal.retryable or topic.settings[_LIMIT] == str(DEFAULT_MESSAGE_BYTES):
            raise
        smaller = {key: value for key, value in topic.settings.items() if key != _LIMIT}
        try:
            admin.create_topic(replace(topic, settings=smaller))
        except BrokerError:
            raise refusal from None
        _log.warning(
            "%s: created with the broker's own %s, as it refused %s (%s)",
            *(topic.name, _LIMIT, topic.settings[_LIMIT], refusal),
        )


def _of_blocks(plan: Plan) -> list[Need]:
    """The internal topics that a block, or what is said of it, goes through."""
    return [need for need in plan.internal if need.cleanup == "delete"]


def _small(plan: Plan, there: Mapping[str, TopicInfo]) -> Iterator[TopicFinding]:
    """One finding if topics take less than the largest block that makes sense."""
    small = [
        need
        for need in _of_blocks(plan)
        if need.name in there and need.max_bytes <= there[need.name].message_bytes < need.wanted_bytes
    ]
    if small:
        least = min(there[need.name].message_bytes for need in small)
        others = "".join(f", {need.name}" for need in small[1:])
        yield TopicFinding(
            small[0].name,
            Severity.COSTS,
            f"takes messages of {least} bytes; with max.message.bytes {small[0].wanted_bytes} of it{others} "
            "blocks are larger and take less CPU",
        )


def _described(plan: Plan, admin: Admin) -> tuple[dict[str, TopicInfo | None], list[TopicFinding]]:
    """The topics of a plan, and findings on those caches that this user may not describe, which are left out.
    raises: BrokerError"""
    caches = plan.caches
    infos = admin.topics([name for name in plan.names if name not in caches], settings=True)
    findings = []
    for name in caches:
        try:
            infos |= admin.topics([name], settings=True)
        except BrokerError as error:
            if error.retryable:
                raise
            findings.append(TopicFinding(name, Severity.WARNS, f"{error}; {_WITHOUT_CACHE}"))
    return infos, findings


def _internal(settings: Settings, need: Need, info: TopicInfo) -> Iterator[tuple[Severity, str]]:
    for text in (*_safety(settings, info), *_shape(need, info)):
        yield Severity.WARNS if need.is_cache else Severity.STOPS, text
    if info.partitions != need.partitions and need.refilled:
        yield Severity.WARNS, _other_number(need, info)
    if info.settings.get(_STAMPED_BY) == "CreateTime":
        yield Severity.WARNS, _not_stamped(settings, info)
    if need.cleanup == "delete":
        yield from _kept(settings, need, info)


def _other_number(need: Need, info: TopicInfo) -> str:
    more = (
        f"give the topic {need.partitions} (kafka-topics --alter; processes may go on running)"
        if info.partitions < need.partitions
        else "stop every process, delete the topic and run `twinsieve topics create`: " + need.refilled
    )
    return (
        f"has {info.partitions} partitions, topics.verdict_partitions is {need.partitions}; processes use "
        f"those of the topic; set topics.verdict_partitions to {info.partitions}, or {more}"
    )


def _not_stamped(settings: Settings, info: TopicInfo) -> str:
    return (
        f"{_STAMPED_BY} is CreateTime, so processes cannot read the broker's clock: a wrong clock of a "
        "process stays unnoticed, a clock one hour ahead may stop the app, and a message whose timestamp an "
        "output topic refuses blocks its partition; run: kafka-configs.sh --bootstrap-server "
        f"{settings.kafka.bootstrap} "
        f"--alter --entity-type topics --entity-name {info.name} --add-config {_STAMPED_BY}=LogAppendTime"
    )


def _shape(need: Need, info: TopicInfo) -> Iterator[str]:
    if info.partitions != need.partitions and not need.refilled:
        yield (
            f"has {info.partitions} partitions, must have {need.partitions} (all messages need one common "
            "order); recreate it before the first start, or use another app name"
        )
    policy = info.settings.get("cleanup.policy", need.cleanup)
    if policy != need.cleanup:
        yield f"cleanup.policy is {policy}, which drops what is still needed; set it to {need.cleanup}"
    largest = info.message_bytes
    if largest < need.max_bytes:
        yield (
            f"takes messages of {largest} bytes, blocks may have {need.max_bytes}; "
            f"raise max.message.bytes or set kafka.block_bytes to {max(1, largest - FRAME_BYTES)}"
        )


def _kept(settings: Settings, need: Need, info: TopicInfo) -> Iterator[tuple[Severity, str]]:
    """Findings on the retention of a topic: it is too short, or longer than needed."""
    retention = info.number("retention.ms", _FOREVER)
    is_forever = retention == _FOREVER
    if not is_forever and (need.retention_ms is None or retention < need.retention_ms):
        wanted = _FOREVER if need.kept_ms is None else need.kept_ms
        least = "" if need.retention_ms in (None, wanted) else f", or at least {need.retention_ms}"
        yield (
            Severity.WARNS,
            f"messages are deleted after {_span(retention)}, but {need.why_retention}; "
            f"set retention.ms to {wanted}{least}",
        )
    elif need.kept_ms is not None and (is_forever or retention > need.kept_ms):
        yield (
            Severity.WARNS,
            f"messages are kept {'forever' if is_forever else f'for {_span(retention)}'}, but "
            f"{need.why_enough} {_span(need.kept_ms)}; set retention.ms to {need.kept_ms}"
            f"{_daily_bytes(settings, need)}",
        )
    elif is_forever:
        yield from _endless(settings, need)
    size = info.number("retention.bytes", _FOREVER)
    if size != _FOREVER:
        yield (
            Severity.WARNS,
            f"messages are deleted beyond {size} bytes, however new; set retention.bytes to -1",
        )


def endless(settings: Settings) -> list[TopicFinding]:
    """Findings on topics that these settings keep forever, with their growth per day. Needs no broker."""
    return [
        TopicFinding(need.name, severity, text)
        for need in plan_of(settings).internal
        for severity, text in _endless(settings, need)
    ]


def _endless(settings: Settings, need: Need) -> Iterator[tuple[Severity, str]]:
    # Log and decisions do not grow forever if the index deletes the parts that its snapshots cover.
    if need.cleanup == "delete" and need.retention_ms is None and not trims_log(settings):
        yield (
            Severity.COSTS,
            "messages are kept forever, because a window has no age and a restore reads everything; set "
            "near.window.age and exact.window.age, or share snapshots (state.dir: s3://…): the index deletes "
            f"what they hold{_daily_bytes(settings, need)}",
        )


def _daily_bytes(settings: Settings, need: Need) -> str:
    """Text on the growth of the log per day; empty for other topics, which are small beside the log."""
    if need.name != Names(settings.app).fingerprints:
        return ""
    taken = log_bytes_a_day(settings) / 1e9
    return f" (a day takes {taken:,.1f} GB on each replica, at {ASSUMED_RATE:,.0f} messages a second)"


def _output(
    settings: Settings, plan: Plan, info: TopicInfo, inputs: list[TopicInfo]
) -> Iterator[tuple[Severity, str]]:
    if info.message_bytes < _LEAST_BYTES:
        yield (
            Severity.STOPS,
            f"takes messages of {info.message_bytes} bytes, too few for the headers of a dead letter; "
            f"set max.message.bytes to {_LEAST_BYTES} at least",
        )
    for text in _doubtful(settings, plan, info, inputs):
        yield Severity.WARNS, text


def _doubtful(settings: Settings, plan: Plan, info: TopicInfo, inputs: list[TopicInfo]) -> Iterator[str]:
    if info.name in plan.inputs:
        yield "is an input topic too, so messages would circulate; use another output"
    else:
        yield from _safety(settings, info)
    counts = {source.partitions for source in inputs}
    if info.name == settings.output.topic and counts and counts != {info.partitions}:
        come = ", ".join(map(str, sorted(counts)))
        yield (
            f"has {info.partitions} partitions, the input {come}; partitions are chosen by "
            "key, so messages without a key lose their order; give it as many partitions as the input"
        )
    if info.compacts:
        yield _compacted(settings, info)
    for source in inputs:
        if info.message_bytes < source.message_bytes:
            yield (
                f"takes messages of {info.message_bytes} bytes, {source.name} holds up to "
                f"{source.message_bytes}; raise max.message.bytes, or larger ones become dead letters"
            )
        ahead_ms = info.accepted_ms("after")
        if ahead_ms < source.accepted_ms("after"):
            yield (
                f"refuses timestamps more than {_span(ahead_ms)} ahead, {source.name} takes them; "
                "raise message.timestamp.after.max.ms, or such messages become dead letters"
            )


def _compacted(settings: Settings, info: TopicInfo) -> str:
    dead_letter = settings.output.dead_letter
    if info.name == dead_letter:
        fate = "dead letters without a key get their place as key"
    else:
        fate = "those become dead letters (no_key)" if dead_letter else "those are lost, and counted (no_key)"
    return (
        "cleanup.policy is compact, which refuses messages without a key "
        f"and drops older ones of a key; {fate}; set it to delete"
    )


def _safety(settings: Settings, info: TopicInfo) -> Iterator[str]:
    wanted = settings.topics
    if info.replication < wanted.replication:
        yield (
            f"has {info.replication} replicas, topics.replication is {wanted.replication}; "
            "reassign its partitions or lower the setting"
        )
    in_sync = info.number("min.insync.replicas", 1)
    if in_sync < wanted.min_in_sync:
        yield f"min.insync.replicas is {in_sync}, topics.min_in_sync is {wanted.min_in_sync}; raise it"
    if in_sync > info.replication:
        yield (
            f"min.insync.replicas is {in_sync}, but it has {info.replication} replicas, "
            "so nothing can be written; lower it"
        )


def _span(milliseconds: int) -> str:
    hours = milliseconds / _HOUR_MS
    return f"{hours / 24:g} d" if hours >= 48 else f"{hours:g} h" if hours >= 1 else f"{milliseconds} ms"
