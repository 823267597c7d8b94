"""A worker's view of the verdicts topic: answers to its own sessions, matched to what was asked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from twinsieve.pipeline.broker.ports import AbortableError, Partition, Reader
from twinsieve.pipeline.wire.frame import ForeignVersionError, What
from twinsieve.pipeline.wire.ruling import Result, Ruling, decode_ruling, session_of
from twinsieve.pipeline.worker.session import Asked, Session, refusal

_OTHER_VERSION = (
    "the index runs another version of the program, and the two do not understand each other; asking again "
    "until all processes are upgraded"
)


class Answers:
    """Reads the verdict partitions that this worker's sessions are answered on."""

    def __init__(self, reader: Reader, topic: str, partitions: int, scheme: bytes) -> None:
        self._reader = reader
        self._topic = topic
        self._partitions = partitions
        self._scheme = scheme
        self._watched: set[Partition] = set()

    def reply(self, partition: Partition) -> Partition:
        """Where the answers for an input partition come."""
        return Partition(self._topic, partition.number % self._partitions)

    def watch(self, partitions: Collection[Partition]) -> None:
        """Read answers for these input partitions, newly watched ones from their end on."""
        wanted = {self.reply(partition) for partition in partitions}
        ends = self._reader.end_offsets(wanted - self._watched)
        self._reader.assign(wanted)
        for partition, end in ends.items():
            self._reader.seek(partition, end)
        self._watched = wanted

    def forget(self) -> None:
        """Watch nothing until told anew: whatever could not be read goes with its position."""
        self._watched = set()
        self._reader.assign(())

    def poll(self, timeout_s: float, most: int, sessions: Mapping[Partition, Session]) -> None:
        """Put what has arrived to the sessions that asked.

        raises: AbortableError for an answer that does not fit what was asked, or says to ask anew, or comes
            from an index of another version; RefusedError for one that refuses
        """
        by_number = {session.number: session for session in sessions.values()}
        for records in self._reader.poll(timeout_s, most):
            for offset, value in zip(records.offsets, records.values, strict=True):
                session = by_number.get(session_of(value or b""))
                if session is not None:
                    self._match(session, value or b"", f"{records.partition}@{offset}")

    def _match(self, session: Session, value: bytes, where: str) -> None:
        try:
            ruling = decode_ruling(What.ANSWER, value, self._scheme, where)
        except ForeignVersionError as error:
            raise AbortableError(f"{session.partition}: {_OTHER_VERSION} ({error})") from error
        if ruling.result is Result.FOREIGN:
            raise AbortableError(f"{session.partition}: {_OTHER_VERSION}")
        if ruling.result is Result.SUPERSEDED:
            raise AbortableError(f"{session.partition}: another session has begun; asking again")
        if ruling.result is not Result.JUDGED:
            raise refusal(session.partition, ruling.result)
        place = len(session.ready)
        asked = session.pending[place] if place < len(session.pending) else None
        if (
            asked is None
            or (asked.first, asked.end) != (ruling.first, ruling.end)
            or len(asked.records) != len(ruling)
        ):
            raise AbortableError(
                f"{where}: answers [{ruling.first}, {ruling.end}), which is not what was asked"
            )
        session.ready.append((asked, ruling))

    def close(self) -> None:
        """Give up reading."""
        self._reader.close()


Answered = tuple[Session, list[tuple[Asked, Ruling]]]
"""A session and its first answered blocks."""


def take_answered(sessions: Iterable[Session], max_rows: int, max_bytes: int) -> list[Answered]:
    """Answered blocks of sessions, oldest first, up to a bound; who has waited longest has the first turn.

    They stay where they are: `Session.emitted_blocks` takes them away once they are out.
    """
    taken = []
    for session in sorted((each for each in sessions if each.ready), key=lambda each: each.active_s):
        if max_rows <= 0 or max_bytes <= 0:
            break
        blocks: list[tuple[Asked, Ruling]] = []
        for asked, ruling in session.ready:
            if blocks and (max_rows <= 0 or max_bytes <= 0):
                break
            blocks.append((asked, ruling))
            max_rows -= len(asked.records)
            max_bytes -= asked.bytes_held
        taken.append((session, blocks))
    return taken
