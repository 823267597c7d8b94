"""What a worker knows of its topics."""

from __future__ import annotations

from collections.abc import Collection

from twinsieve.pipeline.ports import AbortableError, Admin, Partition, TopicInfo
from twinsieve.pipeline.worker_sessions import Session, name_topic
from twinsieve.stages.errors import BrokerError, StateError


class KnownTopics:
    """Topics by name, asked for when needed.

    notices: gets a line when partitions lose their leaders, and when they have some again
    """

    def __init__(self, admin: Admin, notices: list[str]) -> None:
        self._admin = admin
        self._notices = notices
        self._infos: dict[str, TopicInfo] = {}

    def refresh(self, names: Collection[str]) -> dict[str, TopicInfo | None]:
        """These topics as they are now, None for one that does not exist. raises: BrokerError"""
        found = self._admin.topics(names)
        before = self._leaderless()
        self._infos.update({name: info for name, info in found.items() if info is not None})
        after = self._leaderless()
        self._tell("no leader; what needs it waits", after - before)
        self._tell("has a leader again", before - after)
        return found

    def look(self, names: Collection[str]) -> dict[str, TopicInfo]:
        """These topics as they are now. raises: AbortableError if one does not exist"""
        found = self.refresh(names)
        missing = sorted(name for name, info in found.items() if info is None)
        if missing:
            raise AbortableError(f"topic {', '.join(missing)} does not exist; create it")
        return {name: info for name, info in found.items() if info is not None}

    def led(self, *partitions: Partition) -> bool:
        """Whether all of these had a leader when they were last looked at."""
        infos = self._infos
        return not any(at.topic in infos and at.number in infos[at.topic].leaderless for at in partitions)

    def leaderless(self, names: Collection[str]) -> dict[str, frozenset[int]]:
        """Numbers of their partitions that had no leader then; without topics that have none such."""
        known = {name: self._infos[name].leaderless for name in names if name in self._infos}
        return {name: numbers for name, numbers in known.items() if numbers}

    def _leaderless(self) -> set[Partition]:
        return {Partition(name, number) for name, info in self._infos.items() for number in info.leaderless}

    def _tell(self, what: str, partitions: Collection[Partition]) -> None:
        if partitions:
            self._notices.append(f"{', '.join(map(str, sorted(partitions)))}: {what}")

    def ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """End of each, behind open transactions too. raises: AbortableError when the broker cannot tell"""
        try:
            return self._admin.end_offsets(partitions)
        except BrokerError as error:
            raise AbortableError(str(error)) from error

    def partitions(self, names: Collection[str]) -> dict[str, int]:
        """Partitions of every topic known, these among them. raises: as `look`"""
        missing = set(names) - self._infos.keys()
        if missing:
            self.look(missing)
        return {name: info.partitions for name, info in self._infos.items()}

    def same(self, sessions: Collection[Session]) -> None:
        """Nothing, if the sessions' topics still are those that they began with.

        raises: StateError for one that was created again; AbortableError for one that is gone
        """
        infos = self.look({session.partition.topic for session in sessions})
        for session in sessions:
            at: Partition = session.partition
            if session.topic_id != name_topic(infos[at.topic]):
                raise StateError(
                    f"{at}: the topic was deleted and created again; `twinsieve reset` says where to "
                    "begin in the new one"
                )
