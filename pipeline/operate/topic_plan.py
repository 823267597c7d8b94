"""Which topics a deployment needs, how each must be set up, and how long it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.contract import BandLayout

ASSUMED_RATE = 5_000.0
"""Messages a second where no rate is given."""
LOG_ROW_BYTES = 350
"""A message in the fingerprint log, compressed, with text and offsets: the mean of real posts, rounded up.
Under the default layout; keys of bands are hashes, which no compression makes smaller."""
_BAND_KEY_BYTES = 4
_DAY_S = 86_400
_ANSWERS_KEPT_MS = _DAY_S * 1000
_PRIVATE = frozenset({"file", "local", "asynclocal", "memory", "data", "dir", "zip", "tar", "libarchive"})
"""Protocols of fsspec that reach this machine alone."""
FRAME_BYTES = 64 << 10
"""What headers, batch framing and a block's own frame may add to its payload."""


@dataclass(frozen=True, slots=True)
class Need:
    """One internal topic.

    partitions: what it is created with; is_one_order: it must have just these; max_bytes: of a message
    retention_ms: this at least; kept_ms: this is enough, and what it is created with; None: forever
    why_retention: ends the sentence "messages are deleted after …, but …"
    why_enough: the middle of the sentence "messages are kept for …, but … <kept_ms>"
    """

    name: str
    partitions: int
    retention_ms: int | None
    kept_ms: int | None
    max_bytes: int
    why_retention: str
    why_enough: str
    is_one_order: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """All topics of a deployment.

    inputs: must be there already; outputs: written to; internal: twinsieve's own
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    internal: tuple[Need, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Every topic, each once."""
        return tuple(dict.fromkeys([*self.inputs, *self.outputs, *(need.name for need in self.internal)]))


def plan_of(settings: Settings, *, emits: bool = True) -> Plan:
    """Topics that these settings need; without outputs where nothing is emitted."""
    names = Names(settings.app)
    output = settings.output
    outputs = (output.topic, output.duplicates, output.dead_letter) if emits else ()
    window_ms, kept_ms = remembered_ms(settings), log_kept_ms(settings)
    bytes_needed = settings.kafka.block_bytes + FRAME_BYTES
    short = "the windows reach back further and a restore reads them"
    enough = "a restore reads back no further than"
    return Plan(
        tuple(settings.input.topics),
        tuple(name for name in outputs if name is not None),
        (
            Need(names.fingerprints, 1, window_ms, kept_ms, bytes_needed, short, enough),
            Need(names.decisions, 1, window_ms, kept_ms, bytes_needed, short, enough),
            Need(
                names.verdicts,
                settings.topics.verdict_partitions,
                _ANSWERS_KEPT_MS,
                _ANSWERS_KEPT_MS,
                bytes_needed,
                "a worker that was away for a day still reads its answers",
                "no worker reads answers after",
                is_one_order=False,
            ),
        ),
    )


def remembered_ms(settings: Settings) -> int | None:
    """How far back a restore may have to read; None where a window has no age, only a count."""
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
    """Whether the index deletes log and decisions behind its snapshots: only where all processes can read
    them.

    An address of one machine is private, and so is one of several parts, as a cache before a store.

    >>> [trims_log(Settings.model_validate({"state": {"dir": name}})) for name in ("state", "s3://bucket/a")]
    [False, True]
    """
    protocol, separator, _ = settings.state.dir.partition("://")
    return bool(separator) and "::" not in protocol and protocol not in _PRIVATE


def log_kept_ms(settings: Settings) -> int | None:
    """How long log and decisions are kept: the longest age of a window and a quarter; None: forever.

    Forever where a window has no age, because a restore may have to read everything; and where the index
    trims both behind its snapshots.

    >>> log_kept_ms(Settings()) / 86_400_000
    8.75
    """
    window_ms = remembered_ms(settings)
    return None if window_ms is None or trims_log(settings) else window_ms + window_ms // 4


def log_row_bytes(settings: Settings) -> int:
    """Bytes of a message in the fingerprint log."""
    return LOG_ROW_BYTES + _BAND_KEY_BYTES * (settings.near.layout.bands - BandLayout().bands)


def log_bytes_a_day(settings: Settings, rate: float = ASSUMED_RATE) -> int:
    """What the fingerprint log takes a day on each replica, at `rate` messages a second."""
    return round(rate * _DAY_S * log_row_bytes(settings))


def internal_topic(settings: Settings, need: Need) -> NewTopic:
    """An internal topic as it should be created."""
    return NewTopic(
        need.name,
        need.partitions,
        settings.topics.replication,
        {
            "cleanup.policy": "delete",
            "retention.ms": str(-1 if need.kept_ms is None else need.kept_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(max(need.max_bytes, DEFAULT_MESSAGE_BYTES)),
            "min.insync.replicas": str(settings.topics.min_in_sync),
            "message.timestamp.type": "LogAppendTime",
        },
    )


def output_topic(settings: Settings, name: str, input_partitions: int, max_bytes: int) -> NewTopic:
    """An output topic as it should be created: the input's partitions, and room for its largest message."""
    return NewTopic(
        name,
        settings.topics.output_partitions or input_partitions,
        settings.topics.replication,
        {
            "max.message.bytes": str(max_bytes),
            "min.insync.replicas": str(settings.topics.min_in_sync),
        },
    )
