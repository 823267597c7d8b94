"""Asks for schemas beside the steps of a worker, in a few threads, so that no step waits for a registry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable
from itertools import chain, islice, zip_longest
from threading import Lock, Thread

from twinsieve.pipeline.basics.pauses import Pauses
from twinsieve.pipeline.registry.values import Said, Values

MOST_NEEDED = 100
"""Schemas that each holder needs at a time: strangers may write a new id in each message."""
_THREADS = 4
_AGAIN_S = 1.0
"""Pause before a schema is asked for again about which the registry said nothing, and before any other is if
it takes no more requests."""
_SILENT = Pauses(first_s=0.5, longest_s=5.0)
Schema = int | str
Start = Callable[[Callable[[], None]], None]


def _thread(work: Callable[[], None]) -> None:
    Thread(target=work, name="schemas", daemon=True).start()


class AskedBeside:
    """The schemas that holders, such as partitions, need, and what was said of them.

    What a holder needs is remembered until it needs other ones. Holders take turns, so that one that needs
    many schemas does not keep the others from theirs. What was said counts from the next call of `take` on:
    between two calls nothing changes.

    now_s: a monotonic clock; start: begins work in a thread
    why: what keeps the registry from answering anything; empty while it answers
    """

    def __init__(self, values: Values, now_s: Callable[[], float], start: Start = _thread) -> None:
        values.asks = False
        self._values = values
        self._now_s = now_s
        self._start = start
        self._needed: dict[Hashable, list[Schema]] = {}
        self._again_s: dict[Schema, float] = {}
        """When to ask again for a schema about which the registry said nothing."""
        self._in_vain: set[Schema] = set()
        """Needed schemas about which it said nothing although it answers and takes requests."""
        self._lock = Lock()
        # The lock is held for all of these.
        self._queue: deque[Schema] = deque()
        self._asked: set[Schema] = set()
        self._said: list[tuple[Schema, Said]] = []
        self._threads = 0
        self._pause_s = self._paused_until_s = 0.0
        self.why = ""

    @property
    def heard_s(self) -> float:
        """When the registry itself answered last."""
        return self._values.registry.heard_s

    @property
    def answering_s(self) -> float:
        """A clock that stands while the registry answers nothing."""
        return self._values.registry.answering_s

    def knows(self, schema: Schema) -> bool:
        """Whether messages of this schema can be read, or be told to be unreadable."""
        return self._values.knows(schema)

    def need(self, holder: Hashable, schemas: Iterable[Schema]) -> None:
        """Note what a holder needs now, the first ones first: at most MOST_NEEDED."""
        needed = list(islice(schemas, MOST_NEEDED))
        self._needed.pop(holder, None)
        if needed:
            self._needed[holder] = needed

    def was_asked(self, schema: Schema) -> bool:
        """Whether this schema is known, or was asked for while the registry answered and took requests."""
        return schema in self._in_vain or self.knows(schema)

    def lacks(self, holder: Hashable) -> bool:
        """Whether something that a holder needs is still to be asked for."""
        return not all(map(self.was_asked, self._needed.get(holder, ())))

    def keep(self, holders: Collection[Hashable]) -> None:
        """Forget what others than these need."""
        self._needed = {holder: needed for holder, needed in self._needed.items() if holder in holders}

    def take(self) -> None:
        """Take the answers that came since the last call, and begin to ask for schemas that are missing."""
        with self._lock:
            said, self._said = self._said, []
            self._asked.difference_update(schema for schema, _ in said)
        now_s = self._now_s()
        for schema, answer in said:
            if answer.is_said:
                self._values.remember(schema, answer)
            else:
                self._again_s[schema] = now_s + _AGAIN_S
                if answer.answers and not answer.is_busy:
                    self._in_vain.add(schema)
        needed = set(chain.from_iterable(self._needed.values()))
        self._values.forget(needed)
        self._in_vain &= needed
        self._again_s = {
            one: due_s for one, due_s in self._again_s.items() if one in needed and due_s > now_s
        }
        turns = zip_longest(*self._needed.values())
        wanted = dict.fromkeys(
            one
            for one in chain.from_iterable(turns)
            if one is not None and one not in self._again_s and not self.knows(one)
        )
        with self._lock:
            self._queue = deque(one for one in wanted if one not in self._asked)
            # One is enough to see whether it answers again.
            most = (1 if self._pause_s else _THREADS) if now_s >= self._paused_until_s else 0
            new = max(0, min(most - self._threads, len(self._queue)))
            self._threads += new
        for _ in range(new):
            self._start(self._work)

    def close(self) -> None:
        """Ask for nothing more."""
        self._needed.clear()
        with self._lock:
            self._queue.clear()

    def _work(self) -> None:
        while (schema := self._next()) is not None:
            said = self._values.ask(schema)
            with self._lock:
                self._said.append((schema, said))
                self.why = "" if said.answers else said.why
                self._pause_s = 0.0 if said.answers else _SILENT.after(self._pause_s)
                if said.is_busy or not said.answers:
                    self._paused_until_s = self._now_s() + (self._pause_s or _AGAIN_S)

    def _next(self) -> Schema | None:
        with self._lock:
            if self._queue and self._now_s() >= self._paused_until_s:
                schema = self._queue.popleft()
                self._asked.add(schema)
                return schema
            self._threads -= 1
            return None
