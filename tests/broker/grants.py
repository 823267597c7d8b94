"""Passwords and rights of users on a broker, given to them by the one who may."""

from __future__ import annotations

from collections.abc import Iterable

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from twinsieve.pipeline.operate.acls import Grant

_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = {
    "Read": ACLOperation.READ,
    "Write": ACLOperation.WRITE,
    "Describe": ACLOperation.DESCRIBE,
    "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
    "Create": ACLOperation.CREATE,
    "Delete": ACLOperation.DELETE,
}


def set_password(bootstrap: str, user: str, password: str) -> None:
    """The user has this password from now on, and logs in by SCRAM-SHA-512."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    change = UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, password)
    assert admin.alter_user_scram_credentials([change]) == {user: None}
    admin.close()


def allow(bootstrap: str, principal: str, wanted: Iterable[Grant]) -> None:
    """These, and what was granted before."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_acls(
        [
            ACL(
                principal=principal,
                host="*",
                operation=_OPERATIONS[operation],
                permission_type=ACLPermissionType.ALLOW,
                resource_pattern=ResourcePattern(
                    _KINDS[grant.resource],
                    grant.name,
                    ACLResourcePatternType.PREFIXED if grant.prefix else ACLResourcePatternType.LITERAL,
                ),
            )
            for grant in wanted
            for operation in grant.operations
        ]
    )
    admin.close()
