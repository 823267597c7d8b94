"""Read the values of `--to` of `twinsieve reset`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.values import moment_ms
from twinsieve.stages.errors import UsageError


class TargetKind(Enum):
    """What a value of `--to` can name."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"


class Target(NamedTuple):
    """The new offset of a partition. number: the offset, or the time in ms since 1970; else 0"""

    kind: TargetKind
    number: int = 0


_PARTITION_TARGET = re.compile(r"(?P<topic>[^\[\]=]+)\[(?P<number>[0-9]{1,9})\]=(?P<to>.+)")
_HINT = (
    "write earliest, latest, an offset, a time as 2024-05-01T12:00:00+08:00, or topic[partition]=one of these"
)


@dataclass(frozen=True, slots=True)
class ResetTargets:
    """A target of all partitions, and targets of single partitions, which override it.

    >>> targets = read_targets(["earliest", "posts[2]=2020-02-12"])
    >>> targets.of(Partition("posts", 0)).kind, targets.of(Partition("posts", 2)).number
    (<TargetKind.EARLIEST: 'earliest'>, 1581465600000)
    """

    everywhere: Target | None = None
    named: Mapping[Partition, Target] = field(default_factory=dict)

    def of(self, partition: Partition) -> Target | None:
        """The partition's target; None if its offset must not change."""
        return self.named.get(partition, self.everywhere)


def read_targets(texts: Sequence[str]) -> ResetTargets:
    """The targets of one or more values of `--to`.

    raises: UsageError if a value is not a target, or if one partition, or all partitions, have two targets
    """
    everywhere: Target | None = None
    named: dict[Partition, Target] = {}
    for text in texts:
        match = _PARTITION_TARGET.fullmatch(text)
        if match is not None:
            partition = Partition(match["topic"], int(match["number"]))
            if partition in named:
                raise UsageError(f"--to {text!r}: {partition} has a target already; give it one")
            named[partition] = _read(match["to"])
        elif everywhere is not None:
            raise UsageError(f"--to {text!r}: all partitions have a target already; give one, or topic[p]=…")
        else:
            everywhere = _read(text)
    if everywhere is None and not named:
        raise UsageError(f"--to is missing; {_HINT}")
    return ResetTargets(everywhere, named)


def _read(text: str) -> Target:
    if text in (TargetKind.EARLIEST.value, TargetKind.LATEST.value):
        return Target(TargetKind(text))
    if text.isascii() and text.isdigit() and len(text) < 19:
        return Target(TargetKind.OFFSET, int(text))
    time = moment_ms(text) if "-" in text[1:] else None
    if time is None or time < 0:
        raise UsageError(f"--to {text!r} is not a target; {_HINT}")
    return Target(TargetKind.TIME, time)
