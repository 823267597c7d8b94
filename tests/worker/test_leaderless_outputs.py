"""What goes past output partitions without a leader."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.memory.partitioner import partition_of
from tests.memory.received import listed
from twinsieve.pipeline.broker.records import Messages
from twinsieve.pipeline.worker.emit import Emission
from twinsieve.pipeline.worker.outbox import reachable

_KEYS = st.none() | st.sampled_from([b"", b"k", b"a", b"key-1", b"a longer key", b"zz"])


@given(st.lists(_KEYS, max_size=8), st.integers(2, 4), st.sets(st.integers(0, 3), min_size=1))
def test_each_partition_gets_its_messages_in_order_and_none_without_a_leader(
    keys: list[bytes | None], count: int, dead: set[int]
) -> None:
    emission = Emission()
    messages = Messages()
    for row, key in enumerate(keys):
        messages.add(key, b"%d" % row)
    emission.to("out", None).append(messages)
    dead &= set(range(count))
    placed = reachable(emission, {"out": count}, {"out": frozenset(dead)} if dead else {})
    homes = [partition_of(key, count) for key in keys if key is not None]
    has_no_place = bool(dead.intersection(homes)) or (len(dead) == count and None in keys)
    assert (placed is None) == has_no_place
    if placed is None or not dead:
        return
    # By number alone: a client that gets some messages by number and others by key sends them in any order.
    assert all(number is not None for _, number in placed.outgoing)
    rows = {
        number: [int(value or b"") for value in listed(at).values]
        for (_, number), at in placed.outgoing.items()
    }
    assert sorted(row for at in rows.values() for row in at) == list(range(len(keys)))
    for number, at in rows.items():
        assert number not in dead
        assert at == sorted(at)
        assert all(partition_of(keys[row] or b"", count) == number for row in at if keys[row] is not None)
