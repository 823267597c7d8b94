"""What an operator reads when something is wrong with the broker, the password or a permission: one line."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.broker.certificates import KEY_PASSWORD
from tests.broker.cluster import PASSWORDS, SecureCluster
from tests.broker.grants import allow
from tests.broker.server import free_ports
from tests.broker.worlds import Connect, fresh, make_topic, messages, read_all, transact, until, write
from twinsieve.pipeline.broker.admin import Admin, NewTopic
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Committed, FatalError, Messages, Partition
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.acls import Grant
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.stages.errors import SieveError

SECRET = "correct-horse-battery"


def hasty(bootstrap: str, **security: object) -> Broker:
    """A broker that gives up connecting soon."""
    settings = KafkaSettings.model_validate({"bootstrap": bootstrap, "security": security})
    return KafkaBroker(settings, "test", 2.5)


def refusal(broker: Broker) -> BrokerError:
    """The one error of asking for anything at all; it is one line and tells no secret."""
    with pytest.raises(BrokerError) as refused:
        broker.admin()
    text = str(refused.value)
    assert "\n" not in text
    assert len(text) < 300
    assert SECRET not in text
    return refused.value


@pytest.mark.parametrize("mechanism", ["scram-sha-512", "scram-sha-256", "plain"])
def test_messages_pass_over_tls_with_each_mechanism(
    secure_broker: SecureCluster, mechanism: str, connect: Connect
) -> None:
    broker = connect(secure_broker.secure, security=secure_broker.login(mechanism=mechanism))
    log = Partition(make_topic(broker), 0)
    write(broker, log, [b"a"])
    transact(broker.transactor(fresh("tx")), log, [b"b"])
    assert read_all(broker, log).values == [b"a", b"b"]


def test_a_password_may_stand_in_a_file(
    secure_broker: SecureCluster, tmp_path: Path, connect: Connect
) -> None:
    secret = tmp_path / "password"
    secret.write_text(PASSWORDS["admin"] + "\n")
    security = secure_broker.login(password_file=str(secret))
    broker = connect(secure_broker.secure, security=security)
    assert broker.admin().topics(["nowhere"]) == {"nowhere": None}


def test_an_unreadable_password_file_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    with pytest.raises(ConfigError, match="missing"):
        hasty("localhost:1", protocol="sasl_ssl", username="u", password_file=missing)


def test_an_unreachable_broker_is_named() -> None:
    port = free_ports(1)[0]
    said = refusal(hasty(f"127.0.0.1:{port}"))
    assert said.retryable
    assert f"127.0.0.1:{port}" in str(said)
    assert "nothing listens there" in str(said)


def test_an_unknown_host_is_named() -> None:
    said = refusal(hasty("no-such-host.invalid:9092"))
    assert "host name is not known" in str(said)


_REFUSED: dict[str, Callable[[SecureCluster], tuple[str, dict[str, object]]]] = {
    "user 'admin' or its password": lambda at: (at.secure, at.login(password=SECRET)),
    "its TLS certificate has expired": lambda at: (at.expired, at.login()),
    "its TLS certificate is not trusted": lambda at: (at.secure, at.login(ca_file=None)),
    "asks for a TLS certificate; set kafka.security.certificate_file": lambda at: (
        at.mutual,
        mutual(at, None),
    ),
    "does not accept our TLS certificate; set kafka.security.certificate_file": lambda at: (
        at.mutual,
        mutual(at, at.certificates.stranger),
    ),
    "kafka.security.protocol is plaintext": lambda at: (at.secure, {}),
}
"""What a refusal says, and who is refused so: address and security settings."""
_MAY_PASS = ("user 'admin' or its password", "kafka.security.protocol is plaintext")
"""Of these: a broker may close the connection before its answer was read."""


@pytest.mark.parametrize("why", _REFUSED)
def test_a_refusal_says_why_and_shows_no_secret(
    secure_broker: SecureCluster, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    address, security = _REFUSED[why](secure_broker)
    said = refusal(hasty(address, **security))
    assert why in str(said)
    assert not said.retryable or why in _MAY_PASS
    assert SECRET not in caplog.text


def test_a_right_plain_password_is_in_no_log_and_no_repr(
    secure_broker: SecureCluster, caplog: pytest.LogCaptureFixture, connect: Connect
) -> None:
    caplog.set_level(logging.DEBUG)
    broker = connect(secure_broker.secure, security=secure_broker.login(mechanism="plain"))
    broker.admin().topics(["nowhere"])
    assert PASSWORDS["admin"] not in caplog.text
    assert PASSWORDS["admin"] not in repr(broker)


def test_a_missing_authority_file_is_said_so(secure_broker: SecureCluster) -> None:
    with pytest.raises(SieveError, match=r"/no/such\.pem"):
        hasty(secure_broker.secure, **secure_broker.login(ca_file="/no/such.pem")).admin()


def mutual(broker: SecureCluster, store: Path | None, **more: object) -> dict[str, object]:
    """Security settings for the listener that asks for a certificate; `store` holds key and certificate."""
    shown = {} if store is None else {"certificate_file": str(store), "key_file": str(store)}
    return {"protocol": "ssl", "ca_file": str(broker.authority), **shown, **more}


@pytest.mark.parametrize("where", ["settings", "file"])
def test_a_client_certificate_is_accepted(
    secure_broker: SecureCluster, where: str, tmp_path: Path, connect: Connect
) -> None:
    secret = tmp_path / "key-password"
    secret.write_text(KEY_PASSWORD + "\n")
    given = {"key_password": KEY_PASSWORD} if where == "settings" else {"key_password_file": str(secret)}
    shown = mutual(secure_broker, secure_broker.certificates.client, **given)
    broker = connect(secure_broker.mutual, security=shown)
    log = Partition(make_topic(broker), 0)
    transact(broker.transactor(fresh("tx")), log, [b"a"])
    assert read_all(broker, log).values == [b"a"]


def test_a_wrong_key_password_is_said_so_and_not_shown(secure_broker: SecureCluster) -> None:
    shown = mutual(secure_broker, secure_broker.certificates.client, key_password=SECRET)
    with pytest.raises(ConfigError) as refused:
        hasty(secure_broker.mutual, **shown)
    assert SECRET not in str(refused.value)
    assert str(secure_broker.certificates.client) in str(refused.value)


def test_each_missing_permission_is_named(secure_broker: SecureCluster, connect: Connect) -> None:
    chief = connect(secure_broker.bootstrap)
    topic = make_topic(chief)
    write(chief, Partition(topic, 0), [b"a"])
    nobody = connect(secure_broker.secure, security=secure_broker.login("nobody"))
    with pytest.raises(BrokerError, match=topic) as described:
        nobody.admin().topics([topic])
    assert not described.value.retryable
    with pytest.raises(BrokerError, match=topic) as read:
        nobody.group_consumer(fresh("g"), [topic])
    assert not read.value.retryable
    name = fresh("tx")
    with pytest.raises(FatalError, match=rf"transaction {name}: .*grant it \(twinsieve topics acls ") as held:
        nobody.transactor(name)
    assert held.value.denied
    appender = nobody.appender()

    def append() -> None:
        appender.append(Partition(topic, 0), messages([b"never"]))
        while appender.confirm(1.0):
            pass

    with pytest.raises(FatalError, match=rf"{topic}.*grant it \(twinsieve topics acls ") as appended:
        append()
    assert appended.value.denied
    assert read_all(chief, Partition(topic, 0)).values == [b"a"]


def test_a_group_that_may_not_be_read_is_fatal(secure_broker: SecureCluster, connect: Connect) -> None:
    chief = connect(secure_broker.bootstrap)
    topic = make_topic(chief)
    allow(
        secure_broker.bootstrap,
        "User:nobody",
        [Grant("topic", topic, ("Read", "Describe", "DescribeConfigs"))],
    )
    nobody = connect(secure_broker.secure, security=secure_broker.login("nobody"))
    group = fresh("g")
    consumer = nobody.group_consumer(group, [topic])
    with pytest.raises(FatalError, match=r"group|Group"):
        until(lambda: consumer.poll(0.1, 10).assignment)


def test_what_an_administrator_may_not_do_is_named_with_what_to_grant(
    secure_broker: SecureCluster, connect: Connect
) -> None:
    chief = connect(secure_broker.bootstrap)
    at, group = Partition(make_topic(chief), 0), fresh("g")
    allow(secure_broker.bootstrap, "User:nobody", [Grant("topic", at.topic, ("Describe",))])
    nobody = connect(secure_broker.secure, security=secure_broker.login("nobody"))
    admin = nobody.admin()
    until(lambda: _is_told(admin, at.topic))
    for named, denied in (
        (at.topic, lambda: admin.topics([at.topic], settings=True)),
        (at.topic, lambda: admin.delete_records({at: 0})),
        ("another", lambda: admin.create_topic(NewTopic("another", 1))),
        (group, lambda: admin.group_offsets(group)),
        (group, lambda: admin.members(group)),
        (group, lambda: admin.set_group_offsets(group, {at: Committed(0, "")})),
    ):
        with pytest.raises(BrokerError, match=rf"{named}.*grant it \(twinsieve topics acls ") as refused:
            denied()
        assert not refused.value.retryable
        assert "\n" not in str(refused.value)


def _is_told(admin: Admin, topic: str) -> bool:
    try:
        return admin.topics([topic])[topic] is not None
    except BrokerError:
        return False


def test_a_message_of_5_mb_is_named_and_the_rest_goes_through(broker: Broker) -> None:
    topic = make_topic(broker)
    batch = Messages()
    batch.add(b"k", Random(1).randbytes(5_000_000))
    batch.add(b"k", b"small")
    batch.add(b"k", b"0" * 5_000_000)
    transactor = broker.transactor(fresh("tx"))
    assert transactor.unsendable(topic, batch) == {0: "too_large_for_topic"}
    kept = Messages()
    for row in (1, 2):
        kept.add(batch.keys[row], batch.values[row])
    transactor.begin()
    transactor.send(topic, 0, kept)
    transactor.commit()
    assert read_all(broker, Partition(topic, 0)).values == kept.values


def test_the_client_without_crc32c_says_what_it_costs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    KafkaBroker(KafkaSettings())
    assert "pip install crc32c" in caplog.text
