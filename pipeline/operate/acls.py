"""The fewest permissions that a twinsieve process needs on a broker, as commands to copy."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.operate.topic_plan import plan_of, trims_log
from twinsieve.pipeline.settings.checks import shadow
from twinsieve.pipeline.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission for operations on a resource. prefix: it is for all names that begin with `name`"""

    resource: Literal["topic", "group", "transactional-id"]
    name: str
    operations: tuple[str, ...]
    prefix: bool = False


_OPERATIONS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "worker": {
        "inputs": ("Read",),
        "outputs": ("Write",),
        "fingerprints": ("Write",),
        "verdicts": ("Read",),
        "key": ("Read", "Write"),
    },
    "index": {
        "fingerprints": ("Read",),
        "decisions": ("Read", "Write"),
        "verdicts": ("Write",),
        "answers": ("Read",),
        "key": ("Read", "Write"),
    },
    "shard": {"fingerprints": ("Read",), "answers": ("Read", "Write")},
}
"""What each role does with messages of topics, by the attribute of `Names` or of the plan."""


def grants(
    settings: Settings, *, roles: Collection[str] = tuple(_OPERATIONS), dry_run: bool = False
) -> list[Grant]:
    """The permissions that `run` with these roles needs; with worker and index, also `seed`, `reset` and
    `redrive`.

    Grant them to no other user, because a user that can write to internal topics can suppress messages. If
    snapshots are shared, the index deletes the parts of log and decisions that the snapshots cover. For this
    it needs Delete on both topics; Kafka has no smaller permission.

    roles: worker, index, shard, or some of them
    dry_run: the permissions of `run --dry-run`, which creates its own internal topics and writes to no output
    """
    settings = shadow(settings) if dry_run else settings
    names = Names(settings.app)
    plan = plan_of(settings, emits=not dry_run)
    creates = ("Create",) if dry_run or settings.topics.auto_create else ()
    does_all = {"worker", "index"} <= set(roles)

    def topic(name: str, kind: str, *more: str) -> Grant:
        """A start looks at all topics, whatever its role does with them."""
        used = {each for one in roles for each in _OPERATIONS[one].get(kind, ())}
        return Grant("topic", name, (*sorted(used), "Describe", "DescribeConfigs", *more))

    rights = [topic(name, "inputs") for name in plan.inputs]
    rights += [topic(name, "outputs", *creates) for name in plan.outputs]
    if does_all and settings.output.dead_letter is not None and not dry_run:
        # `redrive` reads them.
        rights.append(Grant("topic", settings.output.dead_letter, ("Read",)))
    kinds = {
        getattr(names, kind): kind for kind in ("fingerprints", "decisions", "verdicts", "answers", "key")
    }
    rights += [topic(need.name, kinds[need.name], *creates) for need in plan.internal]
    if "index" in roles and trims_log(settings):
        rights += [Grant("topic", name, ("Delete",)) for name in (names.fingerprints, names.decisions)]
    if does_all:
        rights.append(Grant("group", names.prefix, ("Read", "Describe"), prefix=True))
        rights.append(Grant("transactional-id", names.prefix, ("Write", "Describe"), prefix=True))
        return rights
    rights.append(Grant("group", names.prefix, ("Describe",), prefix=True))
    if settings.has_own_key and {"worker", "index"} & set(roles):
        rights.append(Grant("transactional-id", names.key, ("Write", "Describe")))
    if "worker" in roles:
        rights.append(Grant("group", names.workers, ("Read",), prefix=True))
        own = names.worker_transactions("worker", "")
        rights.append(Grant("transactional-id", own, ("Write", "Describe"), prefix=True))
    if "index" in roles:
        rights.append(Grant("group", names.index, ("Read",)))
        rights.append(Grant("transactional-id", names.index_transactions, ("Write", "Describe")))
    if "shard" in roles:
        rights.append(Grant("group", names.shard_groups, ("Read",), prefix=True))
    return rights


def looking_grants(settings: Settings) -> list[Grant]:
    """The permissions that `why`, `audit`, `status` and `redrive --dry-run` need: they read, and write
    nothing."""
    names = Names(settings.app)
    plan = plan_of(settings)
    looked_into = (*plan.inputs, *plan.outputs, names.fingerprints, names.decisions)
    rights = [Grant("topic", name, ("Read", "Describe")) for name in looked_into]
    if settings.near.answers == "shards":
        rights.append(Grant("topic", names.answers, ("Describe",)))
    rights.append(Grant("group", names.prefix, ("Describe",), prefix=True))
    return rights


def acls(
    settings: Settings,
    principal: str = "User:twinsieve",
    command_config: str = "admin.properties",
    *,
    roles: Collection[str] = tuple(_OPERATIONS),
    dry_run: bool = False,
    read_only: bool = False,
) -> list[str]:
    """`kafka-acls.sh` commands, one line each, that give `principal` the permissions for these settings.

    command_config: a properties file of Kafka with an administrator's connection; not used if the protocol
        is plaintext
    roles, dry_run: as for `grants`; read_only: the permissions of `looking_grants` instead

    >>> print(acls(Settings(), "User:sieve")[0])  # doctest: +ELLIPSIS
    kafka-acls.sh --bootstrap-server localhost:9092 --add --allow-principal User:sieve --operation Read ...
    """
    commands = []
    for grant in looking_grants(settings) if read_only else grants(settings, roles=roles, dry_run=dry_run):
        command = ["kafka-acls.sh", "--bootstrap-server", settings.kafka.bootstrap]
        if settings.kafka.security.protocol != "plaintext":
            command += ["--command-config", command_config]
        command += ["--add", "--allow-principal", principal]
        for operation in grant.operations:
            command += ["--operation", operation]
        command += [f"--{grant.resource}", grant.name]
        if grant.prefix:
            command += ["--resource-pattern-type", "prefixed"]
        commands.append(shlex.join(command))
    return commands
