"""Joins of a group that end while nobody polls, with kafka-python."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from kafka import KafkaConsumer


def keep_finished_joins(consumer: KafkaConsumer) -> None:
    """A join that ends between two polls counts.

    kafka-python 3.0 throws the answer of such a join away and joins anew; if the member leads the group,
    everybody must join again. Members that poll briefly, or in turn, may then never come to rest. A leader
    that joined because a topic has changed does not even do that: having shared the topic out it sees no
    change any more, and is without its share for ever.
    """
    # There is no public way in: the next poll looks only at whether the join it left behind is done.
    coordinator = consumer._coordinator
    join = coordinator.join_group_async

    async def join_or_take(timeout_ms: float | None = None) -> Any:
        task = coordinator._join_task
        # Whoever fell out of the group meanwhile is no longer rebalancing, and the answer is void.
        if task is not None and task.succeeded() and coordinator.rebalance_in_progress():
            coordinator._join_task = _Answered(task.value)
        return await join(timeout_ms)

    needs = coordinator.need_rejoin

    def needs_or_has_begun() -> bool:
        return bool(needs() or coordinator.rejoining)

    coordinator.join_group_async = join_or_take
    coordinator.need_rejoin = needs_or_has_begun


class _Answered:
    """A future that has its value and does not say so, as a join must that the next poll is to wait for."""

    is_done = False

    def __init__(self, value: bytes) -> None:
        self._value = value

    def add_callback(self, call: Callable[[bytes], object]) -> None:
        call(self._value)

    def add_errback(self, call: Callable[[BaseException], object]) -> None:
        """Never called: the join succeeded."""

    def succeeded(self) -> bool:
        return True

    @property
    def value(self) -> bytes:
        return self._value

    def __await__(self) -> Generator[None, None, bytes]:
        yield from ()
        return self._value
