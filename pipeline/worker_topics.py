"""What a worker knows of its topics."""

from __future__ import annotations

from collections.abc import Collection

from twinsieve.pipeline.ports import AbortableError, Admin, Partition, TopicInfo
from twinsieve.pipeline.worker_sessions import Session, name_topic
from twinsieve.stages.errors import StateError


class KnownTopics:
    """Topics by name, asked for when needed."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._infos: dict[str, TopicInfo] = {}

    def look(self, names: Collection[str]) -> dict[str, TopicInfo]:
        """These topics as they are now. raises: AbortableError if one does not exist"""
        found = self._admin.topics(names)
        missing = sorted(name for name, info in found.items() if info is None)
        if missing:
            raise AbortableError(f"topic {', '.join(missing)} does not exist; create it")
        looked = {name: info for name, info in found.items() if info is not None}
        self._infos.update(looked)
        return looked

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
