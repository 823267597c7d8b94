"""The position of an input message: topic, partition and offset, as headers and log lines write it."""

from __future__ import annotations

import re
from typing import NamedTuple

from twinsieve.pipeline.broker.records import Partition

_WRITTEN = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})\[(?P<number>[0-9]{1,9})\]@(?P<offset>[0-9]{1,18})")


class InputPosition(NamedTuple):
    """Where a message is.

    >>> str(InputPosition(Partition("posts", 0), 17))
    'posts[0]@17'
    """

    partition: Partition
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}@{self.offset}"


def read_position(text: str) -> InputPosition | None:
    """The position that is written so; None if the text is no position.

    >>> read_position("posts[0]@17")
    InputPosition(partition=Partition(topic='posts', number=0), offset=17)
    >>> read_position("posts@17"), read_position("po\\nsts[0]@17")
    (None, None)
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        return None
    return InputPosition(Partition(match["topic"], int(match["number"])), int(match["offset"]))
