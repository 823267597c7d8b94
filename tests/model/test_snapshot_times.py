"""When an index writes snapshots: also if none of its lives lasts until the next one is due, and never at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.driver import INDEX, Process, World
from tests.stored import snapshots_at

_EVERY_S = 10.0
_LIFE_S = 6.0


class _Lives:
    """One process after the other, each killed before it would have been time for a snapshot."""

    def __init__(self, folder: Path) -> None:
        self.world = World(partitions=1)
        self._store = snapshots_at(str(folder))
        self._folder = folder
        self._number = 0

    def begin(self) -> Process:
        index = replace(INDEX, snapshot_every_s=_EVERY_S)
        return self.world.start("slot", snapshots=str(self._folder), index_config=index)

    def messages_for(self, seconds: float) -> None:
        """One every second, judged at once."""
        end = self.world.clock.monotonic_s() + seconds
        while self.world.clock.monotonic_s() < end:
            self.world.produce("in", 0, [b"m%d" % self._number])
            self._number += 1
            self.world.settle()
            self.world.clock.sleep(1.0)

    def newest_at(self) -> int | None:
        """Log offset of the newest snapshot."""
        return max(
            self._store.kept_offsets(self.world.cluster.topics[INDEX.log.topic].topic_id), default=None
        )

    def live(self) -> None:
        process = self.begin()
        self.messages_for(_LIFE_S)
        process.kill()


def test_short_lives_do_not_let_the_log_to_follow_grow(tmp_path: Path) -> None:
    lives = _Lives(tmp_path)
    at = []
    for _ in range(6):
        lives.live()
        at.append(lives.newest_at() or 0)
    ends = lives.world.cluster.log(INDEX.log).end
    assert at[-1] > at[1] > 0, at
    assert ends - at[-1] < 2 * ends / 6, (at, ends)


def test_an_index_that_has_just_begun_works_off_what_waits_first(tmp_path: Path) -> None:
    lives = _Lives(tmp_path)
    lives.live()
    lives.world.clock.sleep(_EVERY_S)
    process = lives.begin()
    lives.messages_for(2.0)
    assert process.index is not None
    since_s = process.index.snapshots.since_s
    assert since_s is not None
    assert lives.world.clock.monotonic_s() - since_s > _EVERY_S
    assert lives.newest_at() is None
    lives.messages_for(3.0)
    assert lives.newest_at() is not None


def test_a_rebalance_does_not_make_a_snapshot_due(tmp_path: Path) -> None:
    lives = _Lives(tmp_path)
    lives.live()
    process = lives.begin()
    lives.messages_for(_LIFE_S)
    before = lives.newest_at()
    lives.world.start("two", snapshots=str(tmp_path), index_config=INDEX)
    lives.messages_for(5.0)
    assert process.index is not None
    assert process.index.live
    assert before is not None
    assert lives.newest_at() == before
