"""Which workers have other settings than the index that judges for them."""

from __future__ import annotations

from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.common import differing_keys
from twinsieve.pipeline.wire.block import Block, BlockFlag


class OtherSettings:
    """Compares the settings that the start blocks of sessions tell with those of this process.

    own: `settings.common` of this process; notices: receives a line, once for the same difference
    of: by input partition, the keys in which its worker differs
    """

    def __init__(self, own: str, notices: list[str]) -> None:
        self._own = own
        self._notices = notices
        self._told: set[str] = set()
        self.of: dict[Partition, list[str]] = {}

    def see(self, block: Block) -> None:
        """Take notice of a block that was read from the log."""
        if not block.flags & BlockFlag.START:
            return
        partition = Partition(block.topic, block.number)
        keys = differing_keys(self._own, block.settings)
        self.of.pop(partition, None)
        if not keys:
            return
        self.of[partition] = keys
        differ = ", ".join(keys)
        if differ not in self._told:
            self._told.add(differ)
            self._notices.append(
                f"the worker of {partition} has other settings than this process, which judges: {differ}; "
                "give all processes of an app the same ones"
            )

    @property
    def remark(self) -> str:
        """How many partitions, and which keys; empty if no worker differs."""
        keys = sorted({key for each in self.of.values() for key in each})
        return f"workers of {len(self.of)} partitions have other settings: {', '.join(keys)}" if keys else ""
