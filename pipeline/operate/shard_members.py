"""Which shards of an app there are, as the broker knows them: members of the groups of shards."""

from __future__ import annotations

from dataclasses import dataclass

from twinsieve.pipeline.broker.admin import Admin
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.records import BrokerError, Committed
from twinsieve.pipeline.index.ends import NOT_ALONE, Alone
from twinsieve.pipeline.operate.app_key import recorded_name, recorded_secret
from twinsieve.pipeline.operate.input_lag import member_name
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.pipeline.wire.segment_answers import asked_of
from twinsieve.stages.judge.near_rules import NearRules


@dataclass(frozen=True, slots=True)
class ShardsStatus:
    """The shards of an app.

    group: name of the group of shards with the settings and rules of this file; empty if no index has
        recorded the name of the app's key yet, which is a part of it
    members: names of its members; others: by group with other settings or rules, the names of its members
    has_topic: whether the topic of answers exists, and this user may describe it
    alone: in which segments the index that judges looks up itself, and for whom, when it committed last
    """

    group: str
    members: list[str]
    others: dict[str, list[str]]
    has_topic: bool
    alone: Alone = NOT_ALONE


def shards_of(settings: Settings, committed: Committed | None, admin: Admin) -> ShardsStatus | None:
    """The shards that there are; None if the settings use none.

    committed: what the index of the app has committed
    raises: BrokerError; ConfigError
    """
    if settings.near.answers != "shards":
        return None
    names = Names(settings.app)
    own = ""
    if not settings.has_own_key or recorded_name(committed):
        scheme = judging_scheme_of(settings, recorded_secret(settings, committed))
        own = names.shards(asked_of(NearRules(sieve_config(settings, scheme.scheme_id)).question()))
    members = {
        group: sorted(member_name(key, each) for key, each in admin.members(group).items())
        for group in sorted({own, *admin.groups(names.shard_groups)} - {""})
    }
    found = members.pop(own, [])
    try:
        has_topic = admin.topics([names.answers])[names.answers] is not None
    except BrokerError as error:
        if error.retryable:
            raise
        has_topic = False
    others = {group: each for group, each in members.items() if each}
    return ShardsStatus(own, found, others, has_topic)
