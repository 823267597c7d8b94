"""The rights that `twinsieve topics acls` prints, granted as printed to a user of their own."""

from __future__ import annotations

import argparse
import io
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from itertools import islice
from pathlib import Path

import pytest
import yaml

from tests.broker.cluster import SecureCluster
from tests.broker.grants import allow, set_password
from tests.broker.groups import shares
from tests.broker.services import POSTS, origins, value_of, written_settings
from tests.broker.stranger import admin, produce
from tests.broker.worlds import DEADLINE_S, fresh, messages, read_all, transact, until
from tests.service.test_shard_service import texts
from tests.shared_store import PROTOCOL
from twinsieve.pipeline.broker.admin import NewTopic
from twinsieve.pipeline.broker.input_position import InputPosition
from twinsieve.pipeline.broker.ports import Broker
from twinsieve.pipeline.broker.records import BrokerError, Committed, Partition, Records
from twinsieve.pipeline.commands.cli import main
from twinsieve.pipeline.kafka.broker import KafkaBroker
from twinsieve.pipeline.operate.acls import Grant
from twinsieve.pipeline.operate.topic_checks import create
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.wire.headers import origin_of

_COMMAND = [
    sys.executable,
    "-c",
    "import runpy, tests.shared_store; runpy.run_module('twinsieve', run_name='__main__')",
]
_PASSWORD = "fresh-secret"
_POSTS = [value_of(text) for text in POSTS]


def read_command(command: str) -> tuple[str, Grant]:
    """Whom a `kafka-acls.sh --add` command allows what; anything else in it is an error."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--bootstrap-server", required=True)
    parser.add_argument("--command-config")
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", action="append", required=True)
    parser.add_argument("--resource-pattern-type", default="literal", choices=["literal", "prefixed"])
    one = parser.add_mutually_exclusive_group(required=True)
    for kind in ("topic", "group", "transactional-id"):
        one.add_argument(f"--{kind}", dest="resource", type=lambda name, kind=kind: (kind, name))
    program, *words = shlex.split(command)
    assert program == "kafka-acls.sh"
    given = parser.parse_args(words)
    return given.allow_principal, Grant(
        *given.resource, given.operation, given.resource_pattern_type == "prefixed"
    )


class Tenant:
    """A new user of the secure cluster with topics of its own, and whole commands that it runs.

    chief: may do everything; admin: the same, with no code of ours
    """

    def __init__(self, cluster: SecureCluster, folder: Path, **near: object) -> None:
        """near: more settings of this section"""
        self.user = fresh("user")
        self.log = folder / "log"
        password = folder / "password"
        password.write_text(_PASSWORD)
        written = written_settings(cluster.secure, folder)
        self.app = written["app"]
        self.old = f"{self.app}-old"
        # An address of shared storage, with which the index deletes its log behind snapshots.
        written["state"] = {"dir": f"{PROTOCOL}://{folder / 'state'}", "snapshot_every": "500ms"}
        written["state"]["scratch"] = str(folder)
        written["near"] |= near
        written["kafka"] = {
            "bootstrap": cluster.secure,
            "session_timeout": f"{2 * DEADLINE_S:g}s",
            "security": cluster.login(username=self.user, password_file=str(password)),
        }
        self.settings = Settings.model_validate(written)
        self._file = folder / "settings.yaml"
        self._file.write_text(yaml.safe_dump(written))
        self._bootstrap = cluster.bootstrap
        self.admin = admin(cluster.bootstrap)
        open_kafka = {"bootstrap": cluster.bootstrap, "security": Settings().kafka.security}
        self.chief: Broker = KafkaBroker(self.settings.kafka.model_copy(update=open_kafka))
        self._brokers = [self.chief]
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        set_password(cluster.bootstrap, self.user, _PASSWORD)
        for name in (f"{self.app}-in", self.old):
            self.chief.admin().create_topic(NewTopic(name, 2))
        create(self.settings, self.chief.admin())

    def add_user(self, *options: str) -> str:
        """Another user with exactly what the command prints for these options; KEY=VALUE of its login."""
        user = fresh("user")
        set_password(self._bootstrap, user, _PASSWORD)
        self.grant_printed(*options, user=user)
        return f"kafka.security.username={user}"

    def connect_as(self, login: str = "") -> Broker:
        """The broker as that user sees it. login: as `add_user` returns it (default: the tenant's own user)"""
        kafka = self.settings.kafka
        security = kafka.security.model_copy(update={"username": login.partition("=")[2] or self.user})
        self._brokers.append(KafkaBroker(kafka.model_copy(update={"security": security})))
        return self._brokers[-1]

    def grant_printed(self, *options: str, user: str = "") -> None:
        """Exactly what the command prints."""
        printed = self.command(
            "topics", "acls", "--principal", f"User:{user or self.user}", *options
        ).splitlines()
        principals, grants = zip(*map(read_command, printed), strict=True)
        (principal,) = set(principals)
        allow(self._bootstrap, principal, grants)

    def grant_old(self) -> None:
        """Of the topic that `seed` reads, the settings know nothing (docs/OPERATIONS.md)."""
        allow(self._bootstrap, f"User:{self.user}", [Grant("topic", self.old, ("Read",))])

    def command(self, *words: str) -> str:
        """What a command prints that ends well; in this process, as a start takes as much of a core as the rest."""
        printed, told = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(told):
            code = main([*words, "-c", str(self._file)])
        assert code == 0, printed.getvalue() + told.getvalue()
        return printed.getvalue()

    def answer(self, *words: str) -> tuple[int, str]:
        """Exit code of a command, and what it says on stderr beside the log."""
        printed, told = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(told):
            code = main([*words, "-c", str(self._file)])
        assert printed.getvalue(), told.getvalue()
        lines = told.getvalue().splitlines(keepends=True)
        return code, "".join(line for line in lines if not line.startswith("time="))

    def start(self, member: str, *options: str) -> None:
        command = [*_COMMAND, "run", *options, "--member", member, "-c", str(self._file)]
        with open(self.log, "ab") as log:
            self._processes[member] = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def running(self) -> bool:
        """Whether no process has ended by itself."""
        return all(each.poll() is None for each in self._processes.values())

    def stop(self, *members: str) -> None:
        """They end well, one after the other, and have lacked no right."""
        for member in members:
            self._processes[member].send_signal(signal.SIGTERM)
            assert self._processes[member].wait(DEADLINE_S) == 0, self.log.read_text()
        assert "permission" not in self.log.read_text()

    def produce(
        self, topic: str, values: list[bytes], partition: int, headers: Sequence[tuple[str, bytes]] = ()
    ) -> None:
        produce(self._bootstrap, topic, *values, partition=partition, key=b"k", headers=headers)

    def read(self, kind: str, partition: int) -> Records:
        """All that came out so far."""
        return read_all(self.chief, Partition(f"{self.app}-{kind}", partition))

    def wait_for(self, kind: str, partition: int, count: int) -> None:
        def out() -> bool:
            assert all(each.poll() in (None, 0) for each in self._processes.values()), self.log.read_text()
            return len(self.read(kind, partition)) == count

        until(out)

    def wait_until_trimmed(self) -> None:
        """The index has deleted the beginning of its log."""
        at = Partition(f"{self.app}.fingerprints", 0)
        until(lambda: self.chief.admin().beginning_offsets([at])[at] > 0)

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(DEADLINE_S)
        for broker in self._brokers:
            broker.close()


@pytest.fixture
def tenant(secure_broker: SecureCluster, tmp_path: Path) -> Iterator[Tenant]:
    made = Tenant(secure_broker, tmp_path)
    yield made
    made.close()


def test_a_user_with_the_printed_rights_seeds_resets_and_runs(tenant: Tenant) -> None:
    tenant.grant_printed()
    tenant.grant_old()
    tenant.produce(tenant.old, _POSTS[:1], 0)
    tenant.produce(f"{tenant.app}-in", _POSTS[1:2], 0)
    assert tenant.command("topics", "check") == ""
    seeded = tenant.command("seed", "--topic", tenant.old, "--member", "a")
    assert seeded.startswith("seed: 1 messages kept, 0 passed over")
    assert "none -> 1" in tenant.command("reset", "--to", "latest", "--yes")
    for member in ("a", "b"):
        tenant.start(member)
    groups = {kind: f"{tenant.app}.{kind}" for kind in ("workers", "index")}
    until(lambda: [len(share) for share in shares(tenant.admin, groups["workers"]).values()] == [1, 1])
    until(lambda: len(shares(tenant.admin, groups["index"])) == 2)
    forged = [("twinsieve-origin", b"bank[0]@1"), ("trace", b"7"), ("twinsieve-leader", b"bank[0]@0")]
    tenant.produce(f"{tenant.app}-in", [_POSTS[0], _POSTS[2]], 0, forged)
    tenant.produce(f"{tenant.app}-in", [b"no JSON", _POSTS[3]], 1, forged)
    for kind, partition, count in (("out", 0, 1), ("out", 1, 1), ("dup", 0, 1), ("dead", 1, 1)):
        tenant.wait_for(kind, partition, count)
    for kind, partition, added in (
        ("out", 0, {"origin"}),
        ("out", 1, {"origin"}),
        ("dup", 0, {"origin", "stage", "leader"}),
        ("dead", 1, {"origin", "reason"}),
    ):
        (headers,) = tenant.read(kind, partition).headers
        assert ("trace", b"7") in headers
        assert sorted(name for name, _ in headers) == sorted(
            ["trace", *(f"twinsieve-{one}" for one in added)]
        )
        assert not any(value and value.startswith(b"bank") for _, value in headers)
    assert list(origins(tenant.read("out", 0))) == [2]
    assert list(origins(tenant.read("dup", 0))) == [1]
    redriven = tenant.command("redrive", "--member", "c")
    assert "1 dead letters judged: 0 unique, 0 duplicates, 1 not readable" in redriven
    assert [origin_of(headers) for headers in tenant.read("dead", 1).headers] == 2 * [
        InputPosition(Partition(f"{tenant.app}-in", 1), 0)
    ]

    tenant.wait_until_trimmed()
    tenant.stop("a")
    assert {role: set(shares(tenant.admin, group)) for role, group in groups.items()} == {
        "workers": {"b-worker"},
        "index": {"b-index"},
    }
    tenant.stop("b")


def test_the_printed_rights_allow_nothing_else(tenant: Tenant) -> None:
    tenant.grant_printed()
    own = tenant.connect_as()
    assert own.admin().log_bytes([f"{tenant.app}.fingerprints"]) == {}
    with pytest.raises(BrokerError):
        own.group_consumer(f"{tenant.app}.workers", [f"{tenant.app}-out"])
    stranger = own.group_consumer("somebody.else", [f"{tenant.app}-in"])
    with pytest.raises(BrokerError):
        until(lambda: stranger.poll(0.1, 1).assignment)
    with pytest.raises(BrokerError):
        own.transactor("somebody.else")
    transactor = own.transactor(f"{tenant.app}.worker.m0")
    with pytest.raises(BrokerError):
        transact(transactor, Partition(f"{tenant.app}-in", 0), [b"never"])


def test_each_role_works_with_its_own_rights_alone(tenant: Tenant) -> None:
    """A worker cannot write decisions, an index no blocks."""
    users = {role: tenant.add_user("--role", role) for role in ("index", "worker")}
    tenant.produce(f"{tenant.app}-in", [_POSTS[0], _POSTS[0], b"no JSON"], 0)
    for role, user in users.items():
        tenant.start(role, "--role", role, "--set", user)
    for kind in ("out", "dup", "dead"):
        tenant.wait_for(kind, 0, 1)

    tenant.wait_until_trimmed()
    tenant.stop("worker", "index")
    for role, forbidden in (("worker", ".decisions"), ("index", ".fingerprints")):
        check_no_appends(tenant, users[role], forbidden, "-in")


def test_a_shard_works_with_its_own_rights_alone(secure_broker: SecureCluster, tmp_path: Path) -> None:
    """It answers, and can write no block, decision or verdict."""
    near = {"window": {"messages": 40}, "segment": 10, "answers": "shards"}
    tenant = Tenant(secure_broker, tmp_path, **near)
    try:
        users = {role: tenant.add_user("--role", role) for role in ("index", "worker", "shard")}
        for role, user in users.items():
            tenant.start(role, "--role", role, "--set", user)
        posts = map(value_of, texts(2_000, seed=3))
        admin, topic = tenant.chief.admin(), f"{tenant.app}.answers"
        answers = [Partition(topic, number) for number in range(admin.topics([topic])[topic].partitions)]

        def answered() -> bool:
            assert tenant.running, tenant.log.read_text()
            tenant.produce(f"{tenant.app}-in", list(islice(posts, 12)), 0)
            return sum(admin.end_offsets(answers).values()) > 0

        until(answered)
        tenant.stop(*users)
        check_no_appends(tenant, users["shard"], ".fingerprints", ".decisions", ".verdicts", "-in", "-out")
    finally:
        tenant.close()


def check_no_appends(tenant: Tenant, login: str, *topics: str) -> None:
    """That user may write to none of these topics, outside transactions. topics: without the app's name"""

    def append(topic: str) -> None:
        appender = own.appender([topic])
        appender.append(Partition(topic, 0), messages([b"never"]))
        until(lambda: appender.confirm(1.0) == 0)

    own = tenant.connect_as(login)
    for topic in topics:
        with pytest.raises(BrokerError):
            append(f"{tenant.app}{topic}")


def test_the_rights_to_look_answer_questions_and_allow_no_more(tenant: Tenant) -> None:
    tenant.grant_printed("--read-only")
    at = Partition(f"{tenant.app}-in", 0)
    tenant.produce(at.topic, _POSTS[:2], 0)
    dropped = [("twinsieve-stage", b"exact"), ("twinsieve-leader", f"{at}@0".encode())]
    tenant.produce(f"{tenant.app}-dup", _POSTS[:1], 0, [*dropped, ("twinsieve-origin", f"{at}@1".encode())])
    tenant.produce(f"{tenant.app}.fingerprints", [b"no block"], 0)
    assert tenant.answer("status") == (3, "")
    code, told = tenant.answer("why", f"{at}@1")
    assert (code, told.splitlines()[0]) == (1, f"read 1 records of {at}, from 1 to 1")
    assert f"read 2 records of {tenant.app}.fingerprints[0], from 0 to 0" in told
    code, told = tenant.answer("audit")
    assert (code, told) == (0, f"read 1 records of {tenant.app}-dup: [0] 0 to 0\n")
    own = tenant.connect_as()
    with pytest.raises(BrokerError):
        own.transactor(f"{tenant.app}.worker.m0")
    check_no_appends(tenant, "", "-in")
    with pytest.raises(BrokerError):
        own.admin().set_group_offsets(f"{tenant.app}.workers", {at: Committed(1)})


def test_the_rights_of_a_dry_run_judge_and_write_to_nothing_of_the_app(
    tenant: Tenant,
) -> None:
    tenant.grant_printed("--dry-run")
    tenant.produce(f"{tenant.app}-in", _POSTS[:2], 0)
    tenant.produce(f"{tenant.app}-in", [_POSTS[0], b"no JSON"], 1)
    tenant.start("a", "--dry-run")
    admin = tenant.chief.admin()
    shadow = f"{tenant.app}-shadow"

    def judged() -> bool:
        assert tenant.running, tenant.log.read_text()
        held = admin.group_offsets(f"{shadow}.workers", stable=False)
        return [held.get(Partition(f"{tenant.app}-in", at), Committed(0)).offset for at in (0, 1)] == [2, 2]

    until(judged)
    tenant.stop("a")
    own = [f"{shadow}.{name}" for name in ("fingerprints", "decisions", "verdicts")]
    assert all(admin.topics(own).values()), "it has made its own topics"
    written = [Partition(f"{tenant.app}-{kind}", at) for kind in ("out", "dup", "dead") for at in (0, 1)]
    written += [Partition(f"{tenant.app}.{name}", 0) for name in ("fingerprints", "decisions", "verdicts")]
    assert set(admin.end_offsets(written).values()) == {0}
    transactor = tenant.connect_as().transactor(f"{shadow}.worker.m0")
    with pytest.raises(BrokerError):
        transact(transactor, Partition(f"{tenant.app}-out", 0), [b"never"])
