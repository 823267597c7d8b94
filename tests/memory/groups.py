"""Consumer groups of the memory broker: members, generations, rebalances, static members, offsets.

A rebalance takes hold at once: the new generation counts from the moment somebody joins, leaves or is
expired, and everybody learns of it at his next poll. A real broker first waits for the old members, so that
this one shows more of what can go wrong, not less.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from twinsieve.pipeline.broker.records import Committed, FatalError, Membership, MovedOnError, Partition


@dataclass(slots=True)
class Member:
    """One member; `seen_s` is its last heartbeat, `client_id` what its client calls itself."""

    member_id: str
    instance: str | None
    topics: tuple[str, ...]
    seen_s: float
    client_id: str = ""


@dataclass(frozen=True, slots=True)
class MemoryMembership(Membership):
    """Which member of which group."""

    group: str
    member_id: str
    instance: str | None


@dataclass(slots=True)
class Group:
    """One group. `shift` turns the assignment round, so that a forced rebalance really moves partitions."""

    name: str
    session_timeout_s: float
    generation: int = 0
    shift: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    offsets: dict[Partition, Committed] = field(default_factory=dict)
    committed_s: dict[Partition, float] = field(default_factory=dict)
    _counter: int = 0
    _partitions: dict[str, int] = field(default_factory=dict)

    def join(self, topics: tuple[str, ...], instance: str | None, now_s: float) -> Member:
        """A new member. A static one takes the place of its namesake without a rebalance, and fences it."""
        self._counter += 1
        member = Member(f"{self.name}-{self._counter:06d}", instance, topics, now_s)
        old = next((each for each in self.members.values() if instance and each.instance == instance), None)
        if old is not None and old.topics == topics:
            self.members = {
                (member.member_id if key == old.member_id else key): (member if value is old else value)
                for key, value in self.members.items()
            }
        else:
            if old is not None:
                del self.members[old.member_id]
            self.members[member.member_id] = member
            self.generation += 1
        return member

    def leave(self, member_id: str) -> None:
        """A member goes; its partitions go to others."""
        if self.members.pop(member_id, None) is not None:
            self.generation += 1

    def expire(self, now_s: float) -> None:
        """Members without a heartbeat for the session timeout are out."""
        for member in list(self.members.values()):
            if now_s - member.seen_s > self.session_timeout_s:
                self.leave(member.member_id)

    def forget(self, before_s: float) -> None:
        """A group without members loses what was committed before; one that never had any, too."""
        if not self.members:
            for partition in [at for at, at_s in self.committed_s.items() if at_s < before_s]:
                del self.committed_s[partition]
                self.offsets.pop(partition, None)

    def rebalance(self, shift: int = 1) -> None:
        """A new generation in which partitions move on by `shift` members."""
        self.shift += shift
        self.generation += 1

    def notice_partitions(self, counts: dict[str, int]) -> None:
        """A changed number of partitions of a topic leads to a rebalance."""
        mine = {name: counts.get(name, 0) for member in self.members.values() for name in member.topics}
        if mine != self._partitions:
            changed = bool(self._partitions)
            self._partitions = mine
            if changed:
                self.generation += 1

    def assignment(self, member_id: str, counts: dict[str, int]) -> frozenset[Partition]:
        """Range assignment: consecutive partitions of each topic, static members by name before the others in
        their order of joining."""
        mine: set[Partition] = set()
        ordered = sorted(
            self.members.values(), key=lambda each: (not each.instance, each.instance or each.member_id)
        )
        for topic in sorted({name for member in self.members.values() for name in member.topics}):
            wanting = [member.member_id for member in ordered if topic in member.topics]
            if member_id not in wanting:
                continue
            rank = (wanting.index(member_id) + self.shift) % len(wanting)
            share, more = divmod(counts.get(topic, 0), len(wanting))
            first = rank * share + min(rank, more)
            mine.update(Partition(topic, number) for number in range(first, first + share + (rank < more)))
        return frozenset(mine)

    def check(self, member_id: str, instance: str | None, generation: int) -> None:
        """Refuse whoever is not (or no longer) the member of this generation."""
        if instance and any(
            m.instance == instance and m.member_id != member_id for m in self.members.values()
        ):
            raise FatalError(f"group {self.name}: another process is member {instance!r} now", fenced=True)
        if member_id not in self.members:
            raise MovedOnError(f"group {self.name}: member {member_id} is unknown; join again")
        if generation != self.generation:
            raise MovedOnError(f"group {self.name}: generation {generation} is over, now {self.generation}")
