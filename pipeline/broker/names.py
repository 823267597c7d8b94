"""Names of twinsieve's topics, groups and transactional ids on a broker; all of them begin with `app`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one deployment.

    >>> Names("weibo").fingerprints, Names("weibo").prefix
    ('weibo.fingerprints', 'weibo.')
    """

    app: str

    @property
    def prefix(self) -> str:
        """Beginning of every internal topic, group and transactional id of this app. No other app has the
        same, because an app's name has no dots."""
        return f"{self.app}."

    @property
    def fingerprints(self) -> str:
        """The topic of the fingerprint log: all blocks, in one partition, so that they have one order."""
        return f"{self.app}.fingerprints"

    @property
    def decisions(self) -> str:
        """The topic of decisions by the index: one record per block, in one partition."""
        return f"{self.app}.decisions"

    @property
    def verdicts(self) -> str:
        """The topic of rulings for the workers."""
        return f"{self.app}.verdicts"

    @property
    def answers(self) -> str:
        """The topic of what shards find in full segments, for the index."""
        return f"{self.app}.answers"

    @property
    def key(self) -> str:
        """The topic of the key that digests, scopes and ids of this app are made with; also the transactional
        id under which it is drawn."""
        return f"{self.app}.key"

    @property
    def index_transactions(self) -> str:
        """Transactional id of the index: one for the whole app, so that a new index fences the old one."""
        return f"{self.app}.index"

    @property
    def workers(self) -> str:
        """Consumer group of the workers on the input topics; `reset` moves its offsets."""
        return f"{self.app}.workers"

    @staticmethod
    def emitted(group: str) -> str:
        """The group that records what the workers of a group have emitted. It has no members; see
        `mark.on_record`. Each transaction commits offsets in both groups, so they have the same hash."""
        return with_same_hash(group, f"{group}.emitted-")

    @property
    def run_groups(self) -> tuple[str, ...]:
        """The consumer groups that workers and indexes use. Those of shards are not among them, because their
        names depend on the question (`shards`)."""
        return self.workers, self.emitted(self.workers), self.index

    @staticmethod
    def member(slot: str, job: str) -> str:
        """Member name of a role in its group. slot: the stable name of its process"""
        return f"{slot}-{job}"

    def is_own(self, group: str, member: str | None) -> bool:
        """Whether a member of one of the `run_groups`, or of a group of shards, is a process of twinsieve, by
        its name.

        >>> Names("weibo").is_own("weibo.shards-00ff", "host1-shard")
        True
        """
        job = {self.workers: "worker", self.index: "index"}.get(group)
        job = "shard" if group.startswith(self.shard_groups) else job
        return job is not None and self.does(job, member)

    @staticmethod
    def does(job: str, member: str | None) -> bool:
        """Whether a member of a group is a process of twinsieve in this role, by its name.

        >>> Names.does("worker", "host1-worker"), Names.does("worker", "host1-index")
        (True, False)
        """
        return member is not None and member.endswith(Names.member("", job))

    @property
    def seed(self) -> str:
        """Consumer group on the topic that `seed` reads."""
        return f"{self.app}.seed"

    @property
    def redrivers(self) -> str:
        """Beginning of the names of the consumer groups of `redrive`."""
        return f"{self.app}.redrive."

    def redrive(self, reason: DeadLetterReason) -> str:
        """Consumer group of `redrive` on the dead letters of one reason."""
        return f"{self.redrivers}{reason}"

    @property
    def index(self) -> str:
        """Consumer group on the fingerprint log."""
        return f"{self.app}.index"

    @property
    def shard_groups(self) -> str:
        """Beginning of the names of the consumer groups of shards."""
        return f"{self.app}.shards-"

    def shards(self, asked: bytes) -> str:
        """Consumer group of the shards that answer one question; other settings make another group, and so do
        other formats of blocks and answers.

        asked: id of the question, 16 bytes (`wire.segment_answers.asked_of`)

        >>> Names("weibo").shards(bytes(15) + b"a")
        'weibo.shards-00000000000000000000000000000061'
        """
        return f"{self.shard_groups}{asked.hex()}"

    def worker_transactions(self, job: str, slot: str) -> str:
        """Transactional id of one worker.

        job: `worker`, `seed` or `redrive`; slot: the stable name of its process
        """
        return f"{self.app}.{job}.{slot}"


_HASHES = 1 << 32
_BASE = 31
_LENGTH = 8
"""Letters are digits 0 to 25 here. About 198 numbers of eight digits have a given hash, and one in four of
them consists of letters alone."""


@lru_cache
def with_same_hash(name: str, beginning: str) -> str:
    """`beginning` and eight letters: a group name with the same hash as `name`.

    Kafka keeps the offsets of a group in the partition of `__consumer_offsets` that the hash of its name
    chooses, so those of two groups with the same hash lie in one partition, under one coordinator.

    source: Java's String.hashCode, the UTF-16 code units as digits of base 31, modulo 2^32

    >>> with_same_hash("posts.workers", "posts.workers.emitted-")
    'posts.workers.emitted-aeqlbqmx'
    """
    missing = (_hash(name) - _hash(beginning + "a" * _LENGTH)) % _HASHES
    for number in range(missing, _BASE**_LENGTH, _HASHES):
        digits = [number // _BASE**place % _BASE for place in reversed(range(_LENGTH))]
        if max(digits) < 26:
            return beginning + "".join(chr(ord("a") + digit) for digit in digits)
    return beginning  # has another hash, so each transaction takes longer


def _hash(name: str) -> int:
    value = 0
    for unit in memoryview(name.encode("utf-16-le")).cast("H"):
        value = (value * _BASE + unit) % _HASHES
    return value
