"""Parts of partitions are read in turn, counted, and up to a limit."""

from __future__ import annotations

import pytest

from tests.memory.broker import ManualClock, MemoryBroker, MemoryCluster
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.excerpts import Excerpts, Reach, TooFarError
from twinsieve.pipeline.broker.records import BrokerError, Messages, Partition

A, B = Partition("posts", 0), Partition("posts", 1)


@pytest.fixture
def cluster() -> MemoryCluster:
    """100 messages in A, 10 in B."""
    made = MemoryCluster(ManualClock())
    made.create(NewTopic("posts", 2))
    for partition, count in ((A, 100), (B, 10)):
        messages = Messages()
        for number in range(count):
            messages.add(None, b"%d" % number)
        made.write(partition, messages)
    return made


def excerpts_of(cluster: MemoryCluster, most: int = 1_000) -> Excerpts:
    return Excerpts(MemoryBroker(cluster), cluster.clock, most)


def test_iterators_take_turns_and_each_gives_its_own(cluster: MemoryCluster) -> None:
    excerpts = excerpts_of(cluster)
    pairs = zip(excerpts.rows(A, 20, 90), excerpts.rows(B, 0, 100), strict=False)
    assert [(left.offset, right.offset) for left, right in pairs] == [(20 + at, at) for at in range(10)]
    assert excerpts.reached[B] == Reach(10, 0, 9)
    assert [row.value for row in excerpts.rows(A, 98, 500)] == [b"98", b"99"]
    assert list(excerpts.rows(A, 100, 200)) == []


def test_what_retention_takes_meanwhile_is_passed_over(cluster: MemoryCluster) -> None:
    rows = excerpts_of(cluster).rows(A, 0, 100)
    assert next(rows).offset == 0
    cluster.log(A).trim(60)
    read = [row.offset for row in rows]
    assert read == sorted(set(read))
    assert read[-1] == 99
    assert set(range(60, 100)) <= set(read)
    assert 59 not in read


def test_a_single_record_is_there_or_not(cluster: MemoryCluster) -> None:
    cluster.log(A).trim(5)
    cluster.log(A).compact(7)
    excerpts = excerpts_of(cluster)
    found = [excerpts.at(A, offset) for offset in (4, 5, 7, 8, 100)]
    assert [row.offset if row is not None else None for row in found] == [None, 5, None, 8, None]
    first = excerpts.first(A, 0, 100)
    assert first is not None
    assert first.offset == 5


def test_it_reads_up_to_the_limit_and_not_on(cluster: MemoryCluster) -> None:
    excerpts = excerpts_of(cluster, most=30)
    assert len(list(excerpts.rows(B, 0, 10))) == 10
    read = []
    with pytest.raises(TooFarError):
        read.extend(row.offset for row in excerpts.rows(A, 0, 100))
    with pytest.raises(TooFarError):
        next(excerpts.rows(B, 0, 10))
    assert excerpts.records == 30


def test_a_partition_that_delivers_nothing_ends_the_reading(cluster: MemoryCluster) -> None:
    excerpts = excerpts_of(cluster)
    excerpts.look([A, B])
    cluster.faults.leaderless.add(A)
    began_s = cluster.clock.monotonic_s()
    with pytest.raises(
        BrokerError, match=r"posts\[0\]: the broker delivers nothing from offset 3 on; try again"
    ):
        list(excerpts.rows(A, 3, 100))
    assert 10 < cluster.clock.monotonic_s() - began_s < 60
