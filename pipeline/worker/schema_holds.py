"""Partitions that wait for a schema registry, each before its first message whose schema is not known yet.

A message waits `PATIENCE_S` at most while the registry answers about others; then it is unreadable. Its time
begins when its partition waits and holds it, read or not, so that a partition full of ids that nobody knows
waits once, and not once for each poll. Those of its messages whose schemas nobody has asked for by then wait
until that is done, `_SECOND_LOOK_S` in all. Time counts only while the registry answers
(`Registry.answering_s`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from twinsieve.pipeline.broker.ports import Clock
from twinsieve.pipeline.broker.records import Partition, Records
from twinsieve.pipeline.registry.beside import AskedBeside

PATIENCE_S = 30.0
_LOOK_S = 1.0
"""A partition is read again after this time if its first message can go on, and at once if all can. The end
of a waiting partition is noted as often."""
_SECOND_LOOK_S = 15.0
"""Strangers may write more ids than a registry answers in time."""
_SAID_S = 5.0
"""After this time the log tells the operator that a partition waits."""


@dataclass(slots=True)
class _Hold:
    """A partition before a message that waits, or with messages that have waited.

    offset, schema: of the message that waits; waits: whether one does; since_s: when the first one began to
    due_s: when to read again if it can go on and others cannot
    heard_s: when the registry had answered last, as an end was noted, or at the beginning
    ends: ends of the partition, each with the time by the clock that stands while the registry is silent
    given_up: messages below this offset have waited long enough
    waited: schema of the last message that waited by itself, and not for a second look
    look_s: since when one of these waits once more, until its schema was asked for; None: none does
    looked_s: for how long earlier ones waited once more
    is_said, is_given_up: whether the operator was told that it waits, and that messages are given up
    """

    offset: int
    schema: int | str
    since_s: float
    due_s: float
    heard_s: float
    waits: bool = True
    ends: deque[tuple[int, float]] = field(default_factory=deque)
    given_up: int = 0
    waited: int | str | None = None
    look_s: float | None = None
    looked_s: float = 0.0
    is_said: bool = False
    is_given_up: bool = False


class SchemaHolds:
    """The waiting partitions of a worker.

    schemas: None if its messages need no registry
    notices: receives a line on each partition that waits long, that gives messages up, and that goes on
    """

    def __init__(self, schemas: AskedBeside | None, clock: Clock, notices: list[str]) -> None:
        self._schemas = schemas
        self._clock = clock
        self._notices = notices
        self._of: dict[Partition, _Hold] = {}

    def __iter__(self) -> Iterator[tuple[Partition, str]]:
        """Each partition that waits, and why, as text for the operator."""
        return ((partition, self._why(hold)) for partition, hold in self._of.items() if hold.waits)

    def goes_on(self, records: Records, schemas: Sequence[int | str | None]) -> int:
        """How many of these records, the next ones of their partition, can go on; before the others it waits.
        schemas: of each record; None where none is needed"""
        asked, at = self._schemas, records.partition
        assert asked is not None
        hold = self._of.get(at)
        unknown = {schema for schema in set(schemas) if schema is not None and not asked.knows(schema)}
        if not unknown:
            asked.need(at, ())
            self._passed(records)
            return len(records)
        rows = [row for row, schema in enumerate(schemas) if schema in unknown]
        asked.need(at, dict.fromkeys(schema for schema in schemas[rows[0] :] if schema is not None))
        first = next(
            (row for row in rows if not self._is_given_up(hold, records.offsets[row], schemas[row])), None
        )
        if hold is not None and not hold.is_given_up and rows[0] != first:
            hold.is_given_up = True
            self._notices.append(
                f"{at}@{records.offsets[rows[0]]}: the schema registry answers, but not about schema "
                f"{schemas[rows[0]]} for {PATIENCE_S:.0f} s; such messages are dead letters"
            )
        if first is None:
            self._passed(records)
            return len(records)
        schema = schemas[first]
        assert schema is not None
        now_s = self._clock.monotonic_s()
        if hold is None:
            hold = self._of[at] = _Hold(records.offsets[first], schema, now_s, now_s, asked.heard_s)
        hold.offset, hold.schema, hold.due_s, hold.waits = (
            records.offsets[first],
            schema,
            now_s + _LOOK_S,
            True,
        )
        if hold.offset < hold.given_up:
            hold.look_s = asked.answering_s
        else:
            hold.waited = schema
        return first

    def _is_given_up(self, hold: _Hold | None, offset: int, schema: int | str | None) -> bool:
        """Whether a message whose schema is not known has waited long enough."""
        asked = self._schemas
        assert asked is not None
        assert schema is not None
        if hold is None or offset >= hold.given_up:
            return False
        if hold.look_s is not None:
            hold.looked_s += asked.answering_s - hold.look_s
            hold.look_s = None
        return schema == hold.waited or hold.looked_s >= _SECOND_LOOK_S or asked.was_asked(schema)

    def step(self, ends: Callable[[Collection[Partition]], Mapping[Partition, int]]) -> list[Partition]:
        """Take what the registry has said; returns the partitions to read again. ends: their ends"""
        asked = self._schemas
        if asked is None:
            return []
        asked.take()
        self._note_ends(asked, ends)
        now_s = self._clock.monotonic_s()
        ready = []
        for partition, hold in self._of.items():
            may_go = hold.offset < hold.given_up or asked.knows(hold.schema)
            if hold.waits and may_go and (now_s >= hold.due_s or not asked.lacks(partition)):
                hold.waits = False
                ready.append(partition)
            if hold.waits and not hold.is_said and now_s - hold.since_s >= _SAID_S:
                hold.is_said = True
                self._notices.append(f"{partition}@{hold.offset} waits, others go on: {self._why(hold)}")
        return ready

    def holds(self, partition: Partition) -> bool:
        """Whether the partition must not be read now."""
        return partition in self._of and self._of[partition].waits

    def trying(self, partition: Partition) -> None:
        """Note that the partition is being read again."""
        if partition in self._of:
            self._of[partition].waits = False

    def keep(self, partitions: Collection[Partition]) -> None:
        """Forget all partitions but these, because the others belong to another worker now."""
        self._of = {partition: hold for partition, hold in self._of.items() if partition in partitions}
        if self._schemas is not None:
            self._schemas.keep(partitions)

    def close(self) -> None:
        """Ask for nothing more."""
        if self._schemas is not None:
            self._schemas.close()

    def _passed(self, records: Records) -> None:
        """Note that these go on; the partition's wait is over when all that waited have."""
        hold = self._of.get(records.partition)
        if hold is not None:
            hold.waits = False
            if not hold.ends or records.next_offset >= hold.ends[-1][0]:
                del self._of[records.partition]
                if hold.is_said:
                    self._notices.append(f"{records.partition}: no message waits for the schema registry")

    def _why(self, hold: _Hold) -> str:
        why = self._schemas.why if self._schemas is not None else ""
        return why or f"the schema registry has not answered yet about schema {hold.schema}"

    def _note_ends(
        self, asked: AskedBeside, ends: Callable[[Collection[Partition]], Mapping[Partition, int]]
    ) -> None:
        """Note where partitions end, and which of their messages have waited long enough."""
        heard_s, answering_s = asked.heard_s, asked.answering_s
        due = [
            partition
            for partition, hold in self._of.items()
            if heard_s > hold.heard_s and (not hold.ends or answering_s - hold.ends[-1][1] >= _LOOK_S)
        ]
        for partition, end in ends(due).items() if due else ():
            self._of[partition].ends.append((end, answering_s))
            self._of[partition].heard_s = heard_s
        for hold in self._of.values():
            while hold.ends and answering_s - hold.ends[0][1] >= PATIENCE_S:
                hold.given_up = max(hold.given_up, hold.ends[0][0])
                if len(hold.ends) == 1:
                    break
                hold.ends.popleft()
