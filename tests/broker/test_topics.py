"""`topics check`, `create` and `acls`, on the embedded broker and on real ones."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourceType,
)

from pipeline.kafka import connect
from pipeline.memory import ManualClock, MemoryBroker, MemoryCluster
from pipeline.ports import Committed, NewTopic, Partition, Transactor
from pipeline.settings import Settings
from pipeline.topics import check, create
from pipeline.topics_acls import Grant, acls, grants
from pipeline.topics_plan import internal_topic, plan_of
from stages.errors import BrokerError
from tests.broker.cluster import PASSWORDS, SecureCluster
from tests.broker.worlds import World, assigned, fetched, fresh, messages, until

GOOD = {"retention.ms": "-1", "max.message.bytes": "1048588"}


def settings_for(app: str, **more: object) -> Settings:
    """Settings whose topics nobody else uses."""
    return Settings.model_validate(
        {
            "app": app,
            "input": {"topics": [f"{app}-in"]},
            "output": {"topic": f"{app}-out", "duplicates": f"{app}-dup", "dead_letter": f"{app}-dead"},
            **more,
        }
    )


def deployment(settings: Settings, wrong: Mapping[str, NewTopic]) -> MemoryBroker:
    """All topics of these settings as they should be, but for the wrong ones."""
    cluster = MemoryCluster(ManualClock())
    plan = plan_of(settings)
    for name in dict.fromkeys((*plan.inputs, *plan.outputs)):
        cluster.create(wrong.get(name, NewTopic(name, 3, 1, dict(GOOD))))
    for need in plan.internal:
        cluster.create(wrong.get(need.name, internal_topic(settings, need)))
    return MemoryBroker(cluster)


def test_created_topics_pass_their_own_check(world: World) -> None:
    settings = settings_for(fresh("app"))
    admin = world.broker().admin()
    admin.create_topic(NewTopic(settings.input.topics[0], 3))
    missing = check(settings, admin)
    assert len(missing) == 6
    assert all("twinsieve topics create" in finding for finding in missing)
    assert len(create(settings, admin)) == 6
    assert check(settings, admin) == []
    assert create(settings, admin) == []


def test_a_missing_input_topic_is_found_and_never_created(world: World) -> None:
    settings = settings_for(fresh("app"))
    admin = world.broker().admin()
    assert "input topic does not exist" in check(settings, admin)[0]
    with pytest.raises(BrokerError, match="input topic does not exist"):
        create(settings, admin)
    assert admin.topics([settings.output.topic]) == {settings.output.topic: None}


@pytest.mark.parametrize(
    ("name", "partitions", "replication", "changed", "says"),
    [
        ("app.fingerprints", 2, 1, {}, "has 2 partitions, must have 1"),
        ("app.decisions", 3, 1, {}, "has 3 partitions, must have 1"),
        ("app.verdicts", 1, 1, {}, "has 1 partitions, must have 4"),
        ("app.fingerprints", 1, 1, {"cleanup.policy": "compact"}, "set it to delete"),
        ("app.fingerprints", 1, 1, {"cleanup.policy": "compact,delete"}, "set it to delete"),
        ("app.fingerprints", 1, 1, {"retention.ms": "86400000"}, "deleted after 24 h"),
        ("app.decisions", 1, 1, {"retention.ms": "3600000"}, "or at least 604800000"),
        ("app.verdicts", 4, 1, {"retention.ms": "60000"}, "deleted after 60000 ms"),
        ("app.decisions", 1, 1, {"retention.bytes": "1000000"}, "set retention.bytes to -1"),
        ("app.fingerprints", 1, 1, {"max.message.bytes": "100000"}, "set kafka.block_bytes to 34464"),
        ("app.fingerprints", 1, 1, {"min.insync.replicas": "2"}, "nothing can be written"),
        ("app-out", 2, 1, {}, "as many as the input"),
        ("app-out", 3, 1, {"cleanup.policy": "compact"}, "refuses messages without a key"),
        ("app-dead", 3, 1, {"max.message.bytes": "1000"}, "larger ones become dead letters"),
        ("app-dup", 3, 1, {"message.timestamp.after.max.ms": "3600000"}, "timestamps more than 1 h ahead"),
    ],
)
def test_each_wrong_setting_is_one_finding(
    name: str, partitions: int, replication: int, changed: dict[str, str], says: str
) -> None:
    settings = settings_for("app")
    wrong = NewTopic(name, partitions, replication, GOOD | changed)
    findings = check(settings, deployment(settings, {name: wrong}).admin())
    assert len(findings) == 1, findings
    assert findings[0].startswith(f"{name}: ")
    assert says in findings[0]


def test_replication_below_the_setting_is_found() -> None:
    settings = settings_for("app", topics={"replication": 3, "min_in_sync": 2})
    names = plan_of(settings)
    wrong = {need.name: NewTopic(need.name, need.partitions, 1, dict(GOOD)) for need in names.internal}
    findings = check(settings, deployment(settings, wrong).admin())
    assert sum("topics.replication is 3" in finding for finding in findings) == 6
    assert sum("min.insync.replicas is 1" in finding for finding in findings) == 6


def test_an_output_that_is_an_input_is_found() -> None:
    settings = settings_for("app", output={"topic": "app-in", "duplicates": "none", "dead_letter": "none"})
    findings = check(settings, deployment(settings, {}).admin())
    assert findings == ["app-in: is an input topic too, so messages would go round; use another output"]


def test_a_window_without_age_wants_the_log_for_ever() -> None:
    window = {"messages": 1000, "age": "none"}
    settings = settings_for("app", near={"window": window}, exact={"window": window})
    wrong = NewTopic("app.fingerprints", 1, 1, GOOD | {"retention.ms": str(1 << 50)})
    findings = check(settings, deployment(settings, {"app.fingerprints": wrong}).admin())
    assert len(findings) == 1
    assert "set retention.ms to -1" in findings[0]


def test_printed_acls_name_everything_once() -> None:
    settings = settings_for("app")
    commands = acls(settings, "User:sieve")
    assert len(commands) == len(set(commands)) == len(grants(settings))
    assert all("--allow-principal User:sieve" in command for command in commands)
    assert any("--topic app-in" in command and "Write" not in command for command in commands)
    assert not any("Read" in command for command in commands if "--topic app-out" in command)


def test_the_printed_acls_are_enough_and_no_more(secure_broker: SecureCluster, client: str) -> None:
    app = fresh("app")
    security = {
        "protocol": "sasl_ssl",
        "ca_file": str(secure_broker.authority),
        "username": "worker",
        "password": PASSWORDS["worker"],
    }
    kafka = {"client": client, "bootstrap": secure_broker.secure, "security": security}
    # Shared snapshots, so that the index trims its log.
    settings = settings_for(app, kafka=kafka, state={"dir": "memory://snapshots"})
    open_kafka = settings.kafka.model_copy(
        update={"bootstrap": secure_broker.bootstrap, "security": Settings().kafka.security}
    )
    chief = connect(open_kafka)
    source, out = Partition(f"{app}-in", 0), Partition(f"{app}-out", 0)
    chief.admin().create_topic(NewTopic(source.topic, 1))
    create(settings, chief.admin())
    _allow(secure_broker.bootstrap, "User:worker", grants(settings))
    feeder = chief.appender()
    feeder.append(source, messages([b"a"]))
    until(lambda: feeder.confirm(1.0) == 0)

    broker = connect(settings.kafka)
    assert check(settings, broker.admin()) == []
    consumer = broker.group_consumer(f"{app}.workers", [source.topic], "m0")
    assigned(consumer, 1)
    consumer.seek(source, 0)
    _, polled = fetched(consumer, 1)
    asker = broker.appender()
    asker.append(Partition(f"{app}.fingerprints", 0), messages([b"block"]))
    until(lambda: asker.confirm(1.0) == 0)
    transactor = broker.transactor(f"{app}.worker.m0")
    transactor.begin()
    for topic in (out.topic, f"{app}-dup", f"{app}-dead", f"{app}.decisions", f"{app}.verdicts"):
        transactor.send(topic, 0, messages([b"x"]))
    transactor.send_offsets({source: Committed(1)}, polled.membership)
    transactor.commit()
    broker.admin().delete_records({Partition(f"{app}.fingerprints", 0): 1})
    with pytest.raises(BrokerError):
        broker.group_consumer(f"{app}.workers", [out.topic])
    with pytest.raises(BrokerError):
        broker.transactor("somebody.else")
    transactor.begin()
    with pytest.raises(BrokerError):
        _send_and_commit(transactor, source)
    broker.close()
    chief.close()


def _send_and_commit(transactor: Transactor, target: Partition) -> None:
    transactor.send(target.topic, target.number, messages([b"never"]))
    transactor.commit()


def _allow(bootstrap: str, principal: str, wanted: list[Grant]) -> None:
    kinds = {
        "topic": ResourceType.TOPIC,
        "group": ResourceType.GROUP,
        "transactional-id": ResourceType.TRANSACTIONAL_ID,
    }
    operations = {
        "Read": ACLOperation.READ,
        "Write": ACLOperation.WRITE,
        "Describe": ACLOperation.DESCRIBE,
        "DescribeConfigs": ACLOperation.DESCRIBE_CONFIGS,
        "Delete": ACLOperation.DELETE,
    }
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_acls(
        [
            ACL(
                principal=principal,
                host="*",
                operation=operations[operation],
                permission_type=ACLPermissionType.ALLOW,
                resource_pattern=ResourcePattern(
                    kinds[grant.resource],
                    grant.name,
                    ACLResourcePatternType.PREFIXED if grant.prefix else ACLResourcePatternType.LITERAL,
                ),
            )
            for grant in wanted
            for operation in grant.operations
        ]
    )
    admin.close()


def test_the_index_may_write_transactions_however_messages_are_delivered() -> None:
    settings = settings_for("app", kafka={"delivery": "at-least-once"})
    (grant,) = [grant for grant in grants(settings) if grant.resource == "transactional-id"]
    assert (grant.name, grant.prefix) == ("app.index", False)
