"""Which topics a deployment needs, which settings each topic must have, and how long its messages stay."""

from __future__ import annotations

from dataclasses import dataclass

from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import BandLayout

ASSUMED_RATE = 5_000.0
"""Messages a second, if the caller gives no rate."""
LOG_ROW_BYTES = 350
"""Compressed bytes of a message in the fingerprint log, with text and offsets: the mean of real posts under
the default layout, rounded up."""
_BAND_KEY_BYTES = 4
"""Bytes of a message for each further band of the layout; its key is a hash, which cannot be compressed."""
_DAY_S = 86_400
_VERDICTS_KEPT_MS = _DAY_S * 1000
_FOUND_KEPT_MS = 3_600_000
"""How long the index finds answers of shards. After half an hour without a judged block they answer again."""
_FOUND_SEGMENT_BYTES = 64 << 20
"""A broker deletes whole segments of a topic, and never the newest one. With the usual 1 GiB, answers of much
more than an hour would lie there."""
MOST_BLOCK_BYTES = 3 << 20
"""Size of the largest block if the settings name none. Requests cost about the same whatever their size; a
worker reads 4 MiB of originals together."""
_LEAST_BLOCK_BYTES = 64 << 10
"""What a topic of blocks must take if the settings name no size."""
KEY_BYTES = 4 << 10
"""The most bytes of the record of an app's key, with its batch."""
FRAME_BYTES = 64 << 10
"""The most bytes that headers, the record batch and the block's own frame add to the payload of a block."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one internal topic needs.

    partitions: number of partitions to create
    retention_ms: the least retention; kept_ms: sufficient retention, which `create` sets; None: forever
    max_bytes: size of the largest message that it must take; wanted_bytes: with which it is created
    why_retention: ends the sentence "messages are deleted after …, but …"
    why_enough: the middle of the sentence "messages are kept for …, but … <kept_ms>"
    refilled: what happens after the topic was deleted and created again, if nothing is lost by that; empty if
        its messages have one common order, so that it must have exactly this number of partitions
    segment_bytes: size of the files of the topic on a broker; None: as the broker sets it
    is_cache: whether the app goes on without the topic
    cleanup: `cleanup.policy`
    """

    name: str
    partitions: int
    retention_ms: int | None
    kept_ms: int | None
    max_bytes: int
    wanted_bytes: int
    why_retention: str
    why_enough: str
    refilled: str = ""
    segment_bytes: int | None = None
    is_cache: bool = False
    cleanup: str = "delete"


@dataclass(frozen=True, slots=True)
class Plan:
    """All topics of a deployment.

    inputs: topics that others write to; outputs: topics that workers write to
    internal: topics of twinsieve's own
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    internal: tuple[Need, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all topics, without repetition."""
        return tuple(dict.fromkeys([*self.inputs, *self.outputs, *(need.name for need in self.internal)]))

    @property
    def caches(self) -> set[str]:
        """The topics without which the app goes on."""
        return {need.name for need in self.internal if need.is_cache}


def plan_of(settings: Settings, *, emits: bool = True) -> Plan:
    """The topics that these settings need. emits: if False, the plan has no outputs"""
    names = Names(settings.app)
    output = settings.output
    outputs = (output.topic, output.duplicates, output.dead_letter) if emits else ()
    window_ms, kept_ms = remembered_ms(settings), log_kept_ms(settings)
    least = (settings.kafka.block_bytes or _LEAST_BLOCK_BYTES) + FRAME_BYTES
    wanted = most_block_bytes(settings) + FRAME_BYTES
    short = "the windows reach back further and a restore reads them"
    enough = "a restore reads back no further than"
    internal = [
        Need(names.fingerprints, 1, window_ms, kept_ms, least, wanted, short, enough),
        Need(names.decisions, 1, window_ms, kept_ms, least, wanted, short, enough),
        Need(
            names.verdicts,
            settings.topics.verdict_partitions,
            _VERDICTS_KEPT_MS,
            _VERDICTS_KEPT_MS,
            least,
            wanted,
            "a worker that was away for a day still reads its answers",
            "no worker reads answers after",
            refilled="workers send their blocks again",
        ),
    ]
    if settings.near.answers == "shards":
        internal.append(
            Need(
                names.answers,
                settings.topics.verdict_partitions,
                _FOUND_KEPT_MS,
                _FOUND_KEPT_MS,
                least,
                wanted,
                "an index that was away for half an hour still reads what shards found",
                "no index reads what shards found after",
                refilled="shards answer again, and the index looks up itself until then",
                segment_bytes=_FOUND_SEGMENT_BYTES,
                is_cache=True,
            )
        )
    if settings.has_own_key:
        internal.append(Need(names.key, 1, None, None, KEY_BYTES, KEY_BYTES, "", "", cleanup="compact"))
    return Plan(
        tuple(settings.input.topics),
        tuple(name for name in outputs if name is not None),
        tuple(internal),
    )


def most_block_bytes(settings: Settings) -> int:
    """Size of the largest block of the log: as set, or MOST_BLOCK_BYTES, if the client takes as much."""
    kafka = settings.kafka
    return kafka.block_bytes or min(MOST_BLOCK_BYTES, max(1, kafka.message_bytes - FRAME_BYTES))


def remembered_ms(settings: Settings) -> int | None:
    """How far back a restore may have to read: the longest age limit of a window; None if one has none."""
    ages = [
        window.age_ms
        for method, window in (
            (settings.exact.method, settings.exact.window),
            (settings.near.method, settings.near.window),
        )
        if method != "none"
    ]
    limits = [age for age in ages if age is not None]
    return max(limits, default=0) if len(limits) == len(ages) else None


def trims_log(settings: Settings) -> bool:
    """Whether the index deletes the parts of log and decisions that its snapshots cover. It does this only if
    all processes can read the snapshots."""
    return settings.state.is_shared


def log_kept_ms(settings: Settings) -> int | None:
    """Retention of log and decisions in ms: the longest age limit of a window plus a quarter; None: forever.

    Forever if a window has no age limit, because a restore may have to read everything. Also forever if the
    index itself deletes what its snapshots cover.

    >>> log_kept_ms(Settings()) / 86_400_000
    8.75
    """
    window_ms = remembered_ms(settings)
    return None if window_ms is None or trims_log(settings) else window_ms + window_ms // 4


def log_row_bytes(settings: Settings) -> int:
    """Mean bytes of a message in the fingerprint log under these settings."""
    return LOG_ROW_BYTES + _BAND_KEY_BYTES * (settings.near.layout.bands - BandLayout().bands)


def log_bytes_a_day(settings: Settings, rate: float = ASSUMED_RATE) -> int:
    """Bytes by which the fingerprint log grows per day on each replica, at `rate` messages a second."""
    return round(rate * _DAY_S * log_row_bytes(settings))


def internal_topic(settings: Settings, need: Need) -> NewTopic:
    """The partitions and settings with which to create an internal topic."""
    sized = {} if need.segment_bytes is None else {"segment.bytes": str(need.segment_bytes)}
    return NewTopic(
        need.name,
        need.partitions,
        settings.topics.replication,
        {
            "cleanup.policy": need.cleanup,
            "retention.ms": str(-1 if need.kept_ms is None else need.kept_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(max(need.wanted_bytes, DEFAULT_MESSAGE_BYTES)),
            "min.insync.replicas": str(settings.topics.min_in_sync),
            "message.timestamp.type": "LogAppendTime",
            **sized,
        },
    )


def input_topic(settings: Settings, name: str, partitions: int) -> NewTopic:
    """The partitions and settings with which to create an input topic; all else is as the broker sets it."""
    in_sync = {"min.insync.replicas": str(settings.topics.min_in_sync)}
    return NewTopic(name, partitions, settings.topics.replication, in_sync)


def output_topic(settings: Settings, name: str, input_partitions: int, max_bytes: int) -> NewTopic:
    """The partitions and settings with which to create an output topic: by default as many partitions as the
    input, and room for messages of `max_bytes`."""
    return NewTopic(
        name,
        settings.topics.output_partitions or input_partitions,
        settings.topics.replication,
        {
            "max.message.bytes": str(max_bytes),
            "min.insync.replicas": str(settings.topics.min_in_sync),
        },
    )
