"""Reads the verdicts topic for a worker and matches each answer to the block that it answers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from twinsieve.pipeline.broker.ports import Reader
from twinsieve.pipeline.broker.records import AbortableError, Partition, UnreadableError
from twinsieve.pipeline.wire.frame import ForeignVersionError, What
from twinsieve.pipeline.wire.positions import MAX_OFFSETS, MAX_PARTITIONS, MAX_TOPICS
from twinsieve.pipeline.wire.ruling import Result, Ruling, decode_ruling, session_of
from twinsieve.pipeline.worker.config import WorkerConfig
from twinsieve.pipeline.worker.session import PendingBlock, Session
from twinsieve.stages.errors import StateError

_OTHER_VERSION = (
    "the index runs another version of twinsieve, and this process cannot read its answers; trying again "
    "until all processes run the same version"
)


_RESET = "set the offset to begin at with `twinsieve reset`"
_REFUSALS = {
    Result.OFFSETS_MISSING: "the consumer group has no offset that twinsieve committed, but the app has "
    f"already read it; {_RESET}",
    Result.LEFT_OUT: "its offset leaves out messages that were judged and never emitted, and no `twinsieve "
    f"reset` on record asked for that; {_RESET}",
    Result.RECREATED: f"the topic was deleted and created again since the app read it; {_RESET}",
    Result.SHORTENED: "it ends before what was judged: it lost messages, and new ones would take their "
    "offsets; restore it, or start a new app",
    Result.BEYOND: f"too many for one app, which can have {MAX_TOPICS} input topics (one created again "
    f"counts once more) of {MAX_PARTITIONS} partitions and {MAX_OFFSETS} offsets; remove the topic from "
    "input.topics, or start a new app and seed it from the output",
}
"""Error text for each refusal: what is wrong with the partition, and what the operator can do."""


class RefusedError(StateError):
    """The index refused a session of this input partition; the text says what the operator can do."""

    def __init__(self, partition: Partition, result: Result) -> None:
        super().__init__(f"{partition}: {_REFUSALS[result]}")
        self.partition = partition


class NotUnderstoodError(AbortableError):
    """The index runs another version, so that it does not understand this worker, or the reverse."""


class Answers:
    """Reads those partitions of the verdicts topic that receive the answers for this worker's sessions."""

    def __init__(self, reader: Reader, config: WorkerConfig) -> None:
        self._reader = reader
        self._config = config
        self._watched: set[Partition] = set()

    def watch(self, replies: Collection[Partition]) -> None:
        """Read answers from exactly these partitions of the verdicts topic from now on.

        A partition that was not watched before is read from its current end.
        """
        wanted = set(replies)
        ends = self._reader.end_offsets(wanted - self._watched)
        self._reader.assign(wanted)
        for partition, end in ends.items():
            self._reader.seek(partition, end)
        self._watched = wanted

    def forget(self) -> None:
        """Stop reading all partitions until the next `watch`; read positions that the broker refuses are
        dropped with them."""
        self._watched = set()
        self._reader.assign(())

    def poll(self, timeout_s: float, most: int, sessions: Mapping[Partition, Session]) -> None:
        """Pass each answer that has arrived to the session that asked for it.

        most: number of answers to read in this call
        raises: AbortableError if an answer does not fit the oldest unanswered block or requires a new
            session; NotUnderstoodError; RefusedError if the index refuses the session
        """
        by_number = {session.number: session for session in sessions.values()}
        try:
            polled = self._reader.poll(timeout_s, most)
        except UnreadableError as error:
            # New sessions read answers from the end on, and the index repeats its verdicts.
            raise AbortableError(f"{error}; asking again for the answers in it") from error
        for records in polled:
            for offset, value in zip(records.offsets, records.values, strict=True):
                session = by_number.get(session_of(value or b""))
                if session is not None:
                    self._match(session, value or b"", f"{records.partition}@{offset}")

    def _match(self, session: Session, value: bytes, where: str) -> None:
        try:
            ruling = decode_ruling(What.ANSWER, value, self._config.scheme, where)
        except ForeignVersionError as error:
            raise NotUnderstoodError(f"{session.partition}: {_OTHER_VERSION} ({error})") from error
        if ruling.result is Result.FOREIGN:
            raise NotUnderstoodError(f"{session.partition}: {_OTHER_VERSION}")
        if ruling.result is Result.SUPERSEDED:
            raise AbortableError(f"{session.partition}: a newer session reads this partition; starting again")
        if ruling.result is not Result.JUDGED:
            raise RefusedError(session.partition, ruling.result)
        session.answer(ruling, where)

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


Answered = tuple[Session, list[tuple[PendingBlock, Ruling]]]
"""A session and the oldest of its answered blocks, each with its ruling."""


def take_answered(sessions: Iterable[Session], max_rows: int, max_bytes: int) -> list[Answered]:
    """Answered blocks of each session, oldest first, until `max_rows` or `max_bytes` is reached.

    Without limits, all that waited during a stall of the index would be one transaction, which outlasts its
    timeout again and again. The session without activity for the longest time comes first. The last block may
    exceed the limits. The
    blocks stay in their session; `Session.emit` removes them after the commit.
    """
    taken = []
    for session in sorted(
        (session for session in sessions if session.ready), key=lambda session: session.active_s
    ):
        blocks: list[tuple[PendingBlock, Ruling]] = []
        for block, ruling in session.ready:
            if max_rows <= 0 or max_bytes <= 0:
                break
            blocks.append((block, ruling))
            max_rows -= len(block.records)
            max_bytes -= block.bytes_held
        if blocks:
            taken.append((session, blocks))
    return taken
