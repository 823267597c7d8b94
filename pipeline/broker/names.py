"""What twinsieve calls its topics, groups and transactional ids on a broker; `app` begins all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one deployment.

    >>> Names("weibo").fingerprints, Names("weibo").prefix
    ('weibo.fingerprints', 'weibo.')
    """

    app: str

    @property
    def prefix(self) -> str:
        """Begins every internal topic, group and transactional id of this app, and of no other (no dots)."""
        return f"{self.app}."

    @property
    def fingerprints(self) -> str:
        """The log of blocks, one partition: the total order."""
        return f"{self.app}.fingerprints"

    @property
    def decisions(self) -> str:
        """What the index decided, one record a block, one partition."""
        return f"{self.app}.decisions"

    @property
    def verdicts(self) -> str:
        """Answers to the workers."""
        return f"{self.app}.verdicts"

    @property
    def index_transactions(self) -> str:
        """Transactional id of the index: one for the whole deployment, so that a new index fences the old."""
        return f"{self.app}.index"

    @property
    def workers(self) -> str:
        """Consumer group on the input topics; its offsets are what `reset` moves."""
        return f"{self.app}.workers"

    @property
    def seed(self) -> str:
        """Consumer group on the topic that `seed` reads."""
        return f"{self.app}.seed"

    @property
    def index(self) -> str:
        """Consumer group on the fingerprint log."""
        return f"{self.app}.index"

    def worker_transactions(self, job: str, slot: str) -> str:
        """Transactional id of one worker. job: `worker` or `seed`; slot: the stable name of its process"""
        return f"{self.app}.{job}.{slot}"
