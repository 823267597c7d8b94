"""The dead letters of one reason as an input topic of its own, which `twinsieve redrive` reads.

A message of the dead letter topic has exactly one reason. If each reason counts as a topic, with a consumer
group, a topic id and ranges of judged offsets of its own, then a redrive of one reason leaves nothing behind
that a later redrive of another one could take for done. In such a topic the messages of other reasons are
missing, as after compaction.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, reason_named
from twinsieve.pipeline.broker.admin import TopicInfo
from twinsieve.pipeline.broker.mark import name_topic

_SEPARATOR = ":"
"""No topic of Kafka has this character in its name."""


class RedrivenTopic(NamedTuple):
    """The dead letters of one reason. topic: the topic that holds them

    >>> read_redriven(RedrivenTopic("posts.dead", DeadLetterReason.EMPTY).name)
    RedrivenTopic(topic='posts.dead', reason=<DeadLetterReason.EMPTY: 'empty'>)
    """

    topic: str
    reason: DeadLetterReason

    @property
    def name(self) -> str:
        """The name under which blocks and decisions know it."""
        return f"{self.topic}{_SEPARATOR}{self.reason}"


def read_redriven(name: str) -> RedrivenTopic | None:
    """The dead letters that have this name; None if it is the name of a topic.

    >>> read_redriven("posts"), read_redriven("posts:later")
    (None, None)
    """
    topic, _, named = name.rpartition(_SEPARATOR)
    reason = reason_named(named)
    return RedrivenTopic(topic, reason) if topic and reason is not None else None


def input_id(info: TopicInfo, letters: RedrivenTopic | None) -> bytes:
    """16 bytes that identify what blocks ask about: a topic, or the dead letters of one reason in it."""
    topic_id = name_topic(info)
    if letters is None:
        return topic_id
    return hashlib.blake2b(topic_id + letters.reason.encode(), digest_size=16).digest()


def held_by(name: str) -> str:
    """The topic in which messages are that blocks know under this name.

    >>> held_by("posts.dead:empty"), held_by("posts")
    ('posts.dead', 'posts')
    """
    redriven = read_redriven(name)
    return redriven.topic if redriven is not None else name
