"""Real Kafka clusters on 127.0.0.1: one node, three, one beside a controller, one with TLS, SASL and ACLs."""

from __future__ import annotations

import atexit
import base64
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.broker.certificates import KEY_PASSWORD, Certificates, make_certificates
from tests.broker.distribution import class_archive
from tests.broker.server import Node, free_ports
from tests.broker.token_endpoint import AUDIENCE, ISSUER, TokenEndpoint

PASSWORDS = {"admin": "admin-secret", "worker": "worker-secret", "nobody": "nobody-secret"}
"""Users of the secure cluster: `admin` may do everything, the others what ACLs allow."""


class Cluster:
    """n brokers; `bootstrap` reaches all of them without security.

    extra: properties that every node gets besides the usual ones
    lives_long: its brokers take minutes of a core to compile themselves well, for runs of minutes under load
    mortal: its brokers are killed and come back, or others take over from them
    java: options of each node's Java
    apart: a lone controller beside the brokers, which lives on when they are killed; else each broker is one too
    """

    def __init__(
        self,
        nodes: int = 1,
        extra: Mapping[str, str] | None = None,
        *,
        apart: bool = False,
        lives_long: bool = False,
        mortal: bool = False,
        java: Sequence[str] = (),
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="twinsieve-kafka-"))
        clients = free_ports(nodes)
        self.bootstrap = ",".join(f"127.0.0.1:{port}" for port in clients)
        ids = [nodes + 1] if apart else list(range(1, nodes + 1))
        controllers = dict(zip(ids, free_ports(len(ids)), strict=True))
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in controllers.items())

        def node(number: int, client: int | None) -> Node:
            folder = self.folder / f"node{number}"
            ports = {"PLAINTEXT": client, "CONTROLLER": controllers.get(number)}
            roles = {"PLAINTEXT": "broker", "CONTROLLER": "controller"}
            held = {name: f"{name}://127.0.0.1:{port}" for name, port in ports.items() if port is not None}
            properties = {
                **_topic_defaults(replicas=min(nodes, 3)),
                **(_SHORT_SESSIONS if mortal else _LONG_SESSIONS),
                "process.roles": ",".join(roles[name] for name in held),
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "listeners": ",".join(held.values()),
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs": str(folder / "data"),
            }
            if client is not None:
                properties["advertised.listeners"] = held["PLAINTEXT"]
                properties["inter.broker.listener.name"] = "PLAINTEXT"
            for key, value in (extra or {}).items():
                properties[key] = f"{properties[key]},{value}" if key in _APPENDED else value
            return Node(folder, properties, lives_long=lives_long, java=java)

        self.nodes = [node(number, client) for number, client in enumerate(clients, 1)]
        self._controllers = [node(number, None) for number in ids if number > nodes]
        atexit.register(self.close)

    @property
    def _all(self) -> list[Node]:
        return [*self._controllers, *self.nodes]

    def start(self, *format_options: str) -> Self:
        """Formats, starts and waits until clients are served; the cluster stops by itself at exit."""
        # The first byte keeps the id from beginning with "-", which the tool takes for an option.
        cluster_id = base64.urlsafe_b64encode(b"t" + uuid.uuid4().bytes[1:]).decode().rstrip("=")
        try:
            for node in self._all:
                node.format(cluster_id, *format_options)
            if len(self._all) == 1 and not class_archive().exists():
                self.nodes[0].archive_classes()
            for node in self._all:
                node.start()
            for node in self._all:
                node.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def restart(self, n: int = 0) -> None:
        """Kills node n with -9 and brings it back on the same port with the same data."""
        self.nodes[n].kill()
        self.nodes[n].start()
        self.nodes[n].wait_ready()

    def close(self) -> None:
        """Kills every node and removes the data; idempotent."""
        for node in self._all:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SecureCluster(Cluster):
    """One node with three more listeners; clients without security stay superusers.

    secure: address with a valid certificate; SCRAM-SHA-256/512 and PLAIN, users of PASSWORDS
    expired: the same behind a certificate that ended in 2021
    mutual: TLS without users, for clients with a certificate of the authority; `client` may do everything
    certificates: what clients trust, and may show
    """

    def __init__(self) -> None:
        certificates_folder = Path(tempfile.mkdtemp(prefix="twinsieve-tls-"))
        self.certificates = certificates = make_certificates(certificates_folder)
        self.authority = certificates.authority
        ports = dict(zip(("SECURE", "EXPIRED", "MUTUAL"), free_ports(3), strict=True))
        self.secure, self.expired, self.mutual = (f"localhost:{port}" for port in ports.values())
        plain = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
        extra = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "advertised.listeners": ",".join(f"{name}://localhost:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "SECURE:SASL_SSL,EXPIRED:SASL_SSL,MUTUAL:SSL",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin;User:CN=client",
            "listener.name.mutual.ssl.keystore.type": "PEM",
            "listener.name.mutual.ssl.keystore.location": str(certificates.valid),
            "listener.name.mutual.ssl.truststore.type": "PEM",
            "listener.name.mutual.ssl.truststore.location": str(certificates.authority),
            "listener.name.mutual.ssl.client.auth": "required",
        }
        for listener, store in (("secure", certificates.valid), ("expired", certificates.expired)):
            prefix = f"listener.name.{listener}"
            scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {plain};"
            extra |= {
                f"{prefix}.ssl.keystore.type": "PEM",
                f"{prefix}.ssl.keystore.location": str(store),
                f"{prefix}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
                f"{prefix}.plain.sasl.jaas.config": login,
                f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
                f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
            }
        super().__init__(1, extra)
        self._certificates_folder = certificates_folder

    def login(self, user: str = "admin", **more: object) -> dict[str, object]:
        """Security settings with which that user reaches `secure`; more: in place of these, or beside them."""
        secret = {} if "password_file" in more else {"password": PASSWORDS[user]}
        return {"protocol": "sasl_ssl", "ca_file": str(self.authority), "username": user, **secret, **more}

    def client_files(self, folder: Path, later: Certificates) -> dict[str, object]:
        """Security settings with which `client` reaches `mutual`, with files of its own in this folder.

        later: of an authority that it trusts too
        """
        trusted, shown, key = folder / "ca.pem", folder / "shown.pem", folder / "key-password"
        trusted.write_bytes(self.authority.read_bytes() + later.authority.read_bytes())
        shown.write_bytes(self.certificates.client.read_bytes())
        key.write_text(KEY_PASSWORD)
        for secret in (shown, key):
            secret.chmod(0o600)
        return {
            "protocol": "ssl",
            "ca_file": str(trusted),
            "certificate_file": str(shown),
            "key_file": str(shown),
            "key_password_file": str(key),
        }

    def change_authority(self, new: Certificates) -> None:
        """Come back with a certificate of another authority, which alone it trusts."""
        self.authority.write_bytes(new.authority.read_bytes())
        self.certificates.valid.write_bytes(new.valid.read_bytes())
        # Not killed: the controller would hold its old session against it for a minute.
        self.nodes[0].stop()
        self.nodes[0].start()
        self.nodes[0].wait_ready()

    def start(self, *format_options: str) -> Self:
        return super().start(*format_options, *_users(256, 512))

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._certificates_folder, ignore_errors=True)


class LoginCluster(Cluster):
    """One node whose logins end after seconds; clients without security stay superusers.

    tokens: address for tokens of the endpoint, where a session ends with its token
    passwords: address for users of PASSWORDS by SCRAM, who have to log in again every ten seconds
    """

    def __init__(self, endpoint: TokenEndpoint) -> None:
        ports = dict(zip(("TOKENS", "PASSWORDS"), free_ports(2), strict=True))
        self.tokens, self.passwords = (f"127.0.0.1:{port}" for port in ports.values())
        module = "org.apache.kafka.common.security"
        tokens, passwords = "listener.name.tokens", "listener.name.passwords"
        extra = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": "TOKENS:SASL_PLAINTEXT,PASSWORDS:SASL_PLAINTEXT",
            f"{tokens}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{tokens}.sasl.oauthbearer.jwks.endpoint.url": endpoint.keys_address,
            f"{tokens}.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{tokens}.sasl.oauthbearer.expected.issuer": ISSUER,
            f"{tokens}.oauthbearer.sasl.server.callback.handler.class": (
                f"{module}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{tokens}.oauthbearer.sasl.jaas.config": (
                f"{module}.oauthbearer.OAuthBearerLoginModule required;"
            ),
            f"{tokens}.oauthbearer.connections.max.reauth.ms": "3600000",
            f"{passwords}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{passwords}.scram-sha-512.sasl.jaas.config": f"{module}.scram.ScramLoginModule required;",
            f"{passwords}.scram-sha-512.connections.max.reauth.ms": "10000",
        }
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint.keys_address}"
        super().__init__(1, extra, java=[allowed])

    def start(self, *format_options: str) -> Self:
        return super().start(*format_options, *_users(512))


def _users(*bits: int) -> list[str]:
    """Options of a format that make the users of PASSWORDS, for SCRAM with hashes of these lengths."""
    return [
        f"--add-scram=SCRAM-SHA-{each}=[name={user},password={password}]"
        for user, password in PASSWORDS.items()
        for each in bits
    ]


_SHORT_SESSIONS = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "400"}
"""A killed node may register again only when its old session has ended (9 s by default), and that begins anew
with the node. Shorter, and a node that a busy machine holds up loses its partitions."""
_LONG_SESSIONS = {"broker.session.timeout.ms": "60000", "broker.heartbeat.interval.ms": "2000"}
"""A node that is never killed keeps its partitions, whatever holds the machine up. Without them it serves
nobody, and each return loads the coordinators again, which holds a starved machine up for longer."""
_SEGMENT_BYTES = 1 << 20
_APPENDED = ("listeners", "advertised.listeners", "listener.security.protocol.map")


def _topic_defaults(replicas: int) -> dict[str, str]:
    in_sync = str(max(1, replicas - 1))
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": str(replicas),
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": "4",
        "group.initial.rebalance.delay.ms": "0",
        # A lone node that was killed loads its coordinators twice when it is back. If the first load is still
        # on its way when the second begins, Kafka 4.2 serves groups from half of it: members and offsets of
        # before (docs/GUARANTEES.md). Logs that stay small load at once.
        "offsets.topic.segment.bytes": str(_SEGMENT_BYTES),
        "transaction.state.log.segment.bytes": str(_SEGMENT_BYTES),
        "log.cleaner.backoff.ms": "1000",
        "log.cleaner.delete.retention.ms": "1000",
        "auto.create.topics.enable": "false",
        "num.network.threads": "2",
        "num.io.threads": "4",
    }
