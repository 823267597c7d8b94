"""The least that a twinsieve process must be allowed to do on a broker, as commands to copy."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.operate.topic_plan import plan_of
from twinsieve.pipeline.settings.model import Settings

_PRIVATE = frozenset({"file", "local", "asynclocal", "memory", "data", "dir", "zip", "tar", "libarchive"})
"""Protocols of fsspec behind which is this machine alone."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One permission; `prefix`: for every name that begins so."""

    resource: Literal["topic", "group", "transactional-id"]
    name: str
    operations: tuple[str, ...]
    prefix: bool = False


def trims_log(settings: Settings) -> bool:
    """Whether the index deletes log and decisions behind its snapshots: only where all processes can read
    them.

    An address of one machine is private, and so is one of several parts, as a cache before a store.

    >>> [trims_log(Settings.model_validate({"state": {"dir": name}})) for name in ("state", "s3://bucket/a")]
    [False, True]
    """
    protocol, found, _ = settings.state.dir.partition("://")
    return bool(found) and "::" not in protocol and protocol not in _PRIVATE


def grants(settings: Settings) -> list[Grant]:
    """The rights `run` needs. Grant them to no other user: a writer of internal topics can suppress messages.

    Delete on log and decisions is what the index needs to trim them behind shared snapshots; Kafka has no
    smaller right.
    """
    names = Names(settings.app)
    plan = plan_of(settings)
    found = [Grant("topic", name, ("Read", "Describe", "DescribeConfigs")) for name in plan.inputs]
    found += [Grant("topic", name, ("Write", "Describe", "DescribeConfigs")) for name in plan.outputs]
    found += [
        Grant("topic", need.name, ("Read", "Write", "Describe", "DescribeConfigs")) for need in plan.internal
    ]
    if trims_log(settings):
        found += [Grant("topic", name, ("Delete",)) for name in (names.fingerprints, names.decisions)]
    found.append(Grant("group", names.prefix, ("Read", "Describe"), prefix=True))
    found.append(Grant("transactional-id", names.prefix, ("Write", "Describe"), prefix=True))
    return found


def acls(
    settings: Settings, principal: str = "User:twinsieve", command_config: str = "admin.properties"
) -> list[str]:
    """`kafka-acls.sh` commands, one line each, that let `principal` run these settings.

    command_config: a file of Kafka's own format that says how an administrator connects; not used where the
        protocol is plaintext

    >>> print(acls(Settings(), "User:sieve")[0])  # doctest: +ELLIPSIS
    kafka-acls.sh --bootstrap-server localhost:9092 --add --allow-principal User:sieve --operation Read ...
    """
    commands = []
    for grant in grants(settings):
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
