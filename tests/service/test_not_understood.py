"""A worker that the index does not understand, in a rolling upgrade, leaves its partitions to a worker that it does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model.test_mixed_versions import newer_block
from tests.service.test_changed_settings import base, posts
from tests.service.turned import Turned
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.worker import asks as worker_asks
from twinsieve.stages.judge.scheme import Scheme

GROUP = Names("t").workers


class _Upgrade:
    """A worker of a newer version beside an older index, and a worker of the older version."""

    def __init__(self, folder: Path, scheme: Scheme) -> None:
        settings = base(str(folder))
        self.newer = Turned(settings, scheme, name="newer")
        self.world = self.newer.world
        self.older = Turned(settings, scheme, world=self.world, name="older")
        self.older.loops = [self.older.worker]
        self.is_upgraded = False

    def run(self, *others: Turned, seconds: float) -> None:
        clock = self.newer.clock
        end_s = clock.monotonic_s() + seconds
        while clock.monotonic_s() < end_s:
            with pytest.MonkeyPatch.context() as patch:
                if not self.is_upgraded:
                    patch.setattr(worker_asks, "encode_block", newer_block)
                self.newer.turn(1)
            for each in others:
                each.turn(1)
            clock.sleep(0.1)

    @property
    def members(self) -> set[str | None]:
        return {member.instance for member in self.world.cluster.group(GROUP).members.values()}


@pytest.fixture
def upgrade(tmp_path: Path, scheme: Scheme) -> _Upgrade:
    return _Upgrade(tmp_path, scheme)


def test_another_worker_gets_its_partitions_while_it_is_not_understood(
    upgrade: _Upgrade, caplog: pytest.LogCaptureFixture
) -> None:
    upgrade.run(seconds=5.0)
    upgrade.world.produce(posts(1, 20))
    upgrade.run(seconds=10.0)
    assert upgrade.members == {"newer-worker"}, "who is alone stays"
    assert not upgrade.world.done()
    upgrade.run(upgrade.older, seconds=20.0)
    assert upgrade.members == {"older-worker"}
    assert upgrade.world.done()
    assert "another version" in upgrade.newer.worker.remark
    assert not upgrade.newer.worker.ready


def test_it_comes_back_at_once_where_no_other_worker_is_left(upgrade: _Upgrade) -> None:
    upgrade.run(upgrade.older, seconds=5.0)
    upgrade.world.produce(posts(1, 20))
    upgrade.run(upgrade.older, seconds=20.0)
    assert upgrade.members == {"older-worker"}
    upgrade.is_upgraded = True
    upgrade.world.produce(posts(2, 20))
    # The older process is gone: its session times out after 6 s.
    upgrade.run(seconds=12.0)
    assert upgrade.members == {"newer-worker"}
    assert upgrade.world.done()


def test_a_stranger_in_the_group_is_no_worker_that_gets_its_partitions(upgrade: _Upgrade) -> None:
    upgrade.run(seconds=5.0)
    upgrade.world.cluster.group(GROUP).join(("nothing",), None, 1e9)
    upgrade.world.produce(posts(1, 20))
    for _ in range(20):
        upgrade.run(seconds=1.0)
        assert upgrade.members == {"newer-worker", None}, "it stays: no other worker is there"
    upgrade.is_upgraded = True
    upgrade.run(seconds=20.0)
    assert upgrade.world.done()
