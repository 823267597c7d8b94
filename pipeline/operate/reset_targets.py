"""What `--to` of `twinsieve reset` means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from twinsieve.pipeline.broker.ports import Partition
from twinsieve.pipeline.settings.values import moment_ms
from twinsieve.stages.errors import UsageError


class Place(Enum):
    """Kinds of targets."""

    EARLIEST = "earliest"
    LATEST = "latest"
    OFFSET = "offset"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class _Target:
    place: Place
    number: int = 0


_ONE = re.compile(r"(?P<topic>[^\[\]=]+)\[(?P<number>[0-9]{1,9})\]=(?P<to>.+)")
_HINT = (
    "write earliest, latest, an offset, a time as 2024-05-01T12:00:00+08:00, or topic[partition]=one of these"
)


@dataclass(frozen=True, slots=True)
class Targets:
    """Where each partition is to go: one target for all of them, and others for some.

    >>> targets = read_targets(["earliest", "posts[2]=17"])
    >>> targets.place(Partition("posts", 0)), targets.offset_of(Partition("posts", 2))
    (<Place.EARLIEST: 'earliest'>, 17)
    >>> read_targets(["posts[2]=2020-02-12"]).time_of(Partition("posts", 2))
    1581465600000
    """

    everywhere: _Target | None = None
    named: Mapping[Partition, _Target] = field(default_factory=dict)

    def place(self, partition: Partition) -> Place | None:
        """Kind of the partition's target; None: it stays as it is."""
        target = self.named.get(partition, self.everywhere)
        return target.place if target is not None else None

    def offset_of(self, partition: Partition) -> int:
        """The offset that was named, 0 for other kinds."""
        target = self.named.get(partition, self.everywhere)
        return target.number if target is not None and target.place is Place.OFFSET else 0

    def time_of(self, partition: Partition) -> int | None:
        """The time that was named, ms since 1970, None for other kinds."""
        target = self.named.get(partition, self.everywhere)
        return target.number if target is not None and target.place is Place.TIME else None


def read_targets(texts: Sequence[str]) -> Targets:
    """Targets of one or more `--to`; a partition's own target wins over the one for all.

    raises: UsageError for anything else, and for two targets of one partition

    """
    everywhere: _Target | None = None
    named: dict[Partition, _Target] = {}
    for text in texts:
        match = _ONE.fullmatch(text)
        if match is not None:
            at = Partition(match["topic"], int(match["number"]))
            if at in named:
                raise UsageError(f"--to {text!r}: {at} has a target already; give it one")
            named[at] = _read(match["to"])
        elif everywhere is not None:
            raise UsageError(f"--to {text!r}: all partitions have a target already; give one, or topic[p]=…")
        else:
            everywhere = _read(text)
    if everywhere is None and not named:
        raise UsageError(f"--to is missing; {_HINT}")
    return Targets(everywhere, named)


def _read(text: str) -> _Target:
    if text in (Place.EARLIEST.value, Place.LATEST.value):
        return _Target(Place(text))
    if text.isascii() and text.isdigit() and len(text) < 19:
        return _Target(Place.OFFSET, int(text))
    time = moment_ms(text) if "-" in text[1:] else None
    if time is None or time < 0:
        raise UsageError(f"--to {text!r} is no target; {_HINT}")
    return _Target(Place.TIME, time)
