"""Which topics a deployment needs, and how each must be set up."""

from __future__ import annotations

from dataclasses import dataclass

from twinsieve.pipeline.broker.admin import DEFAULT_MESSAGE_BYTES, NewTopic
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.settings.model import Settings

_ANSWERS_KEPT_MS = 86_400_000
FRAME_BYTES = 64 << 10
"""What headers, batch framing and a block's own frame may add to its payload."""


@dataclass(frozen=True, slots=True)
class Need:
    """One internal topic.

    partitions: this number exactly; retention_ms: this at least, None: for ever; max_bytes: of a message
    why_retention: ends the sentence "messages are deleted after …, but …"
    """

    name: str
    partitions: int
    retention_ms: int | None
    max_bytes: int
    why_retention: str


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
    window_ms = remembered_ms(settings)
    bytes_needed = settings.kafka.block_bytes + FRAME_BYTES
    kept = "the windows reach back further and a restore reads them"
    return Plan(
        tuple(settings.input.topics),
        tuple(name for name in outputs if name is not None),
        (
            Need(names.fingerprints, 1, window_ms, bytes_needed, kept),
            Need(names.decisions, 1, window_ms, bytes_needed, kept),
            Need(
                names.verdicts,
                settings.topics.verdict_partitions,
                _ANSWERS_KEPT_MS,
                bytes_needed,
                "a worker that was away for a day still asks for its answers",
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
    known = [age for age in ages if age is not None]
    return max(known, default=0) if len(known) == len(ages) else None


def internal_topic(settings: Settings, need: Need) -> NewTopic:
    """An internal topic as it should be created.

    The log and the decisions are kept for ever: the index deletes behind its own snapshots.
    """
    forever = need.partitions == 1
    return NewTopic(
        need.name,
        need.partitions,
        settings.topics.replication,
        {
            "cleanup.policy": "delete",
            "retention.ms": "-1" if forever else str(need.retention_ms),
            "retention.bytes": "-1",
            "max.message.bytes": str(max(need.max_bytes, DEFAULT_MESSAGE_BYTES)),
            "min.insync.replicas": str(settings.topics.min_in_sync),
            "message.timestamp.type": "CreateTime",
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
