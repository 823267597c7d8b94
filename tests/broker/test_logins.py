"""Logins that end in a running process: tokens that expire, passwords and certificates that are replaced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.broker.certificates import KEY_PASSWORD, make_certificates
from tests.broker.cluster import PASSWORDS, Cluster, LoginCluster, SecureCluster
from tests.broker.deployment import Deployment, Watcher, in_thread, judge, poll_until
from tests.broker.grants import set_password
from tests.broker.load import Load
from tests.broker.token_endpoint import TokenEndpoint
from tests.broker.worlds import fresh

pytestmark = [pytest.mark.minutes, pytest.mark.needs("own broker")]
_RATE = 40.0
_DEADLINE_S = 300.0
_LIFE_S = 20.0
_SAID_S = 10.0
"""How soon a process says that it gets no token, once it asks for one."""


class Run:
    """One process with both roles under a load; what comes out is read without a login."""

    def __init__(self, cluster: Cluster, address: str, security: Mapping[str, object]) -> None:
        self.deployment = Deployment(cluster.bootstrap, fresh("login"))
        self.deployment.create_topics()
        self.deployment.set("kafka", bootstrap=address, security=dict(security))
        self.load = Load(cluster.bootstrap, f"{self.deployment.app}.in", 10_000_000, _RATE)
        self.watcher = Watcher(cluster.bootstrap, self.deployment.outputs)
        self.process = self.deployment.start("a")
        in_thread(self.watcher.run)
        in_thread(self.load.run)

    @property
    def log(self) -> str:
        return self.deployment.log("a").read_text("utf-8")

    def wait(self, holds: Callable[[], bool], what: str, seconds: float = _DEADLINE_S) -> None:
        assert poll_until(lambda: holds() or self.process.poll() is not None, seconds), (
            f"{what}\n{self.log[-3000:]}"
        )
        assert self.process.poll() is None, self.log[-3000:]

    def goes_on(self) -> None:
        """What is sent from now on comes out."""
        sent = len(self.load.sent_s)
        self.wait(lambda: len(self.load.sent_s) > sent + 5 * _RATE, "nothing is sent")
        places = set(self.load.sent_s)
        self.wait(lambda: places <= self.watcher.seen.keys(), "not all comes out")

    def end(self) -> None:
        """All came out once."""
        self.load.stop.set()
        self.wait(lambda: self.load.sent_s.keys() <= self.watcher.seen.keys(), "not all came out")
        found = judge(self.load, self.watcher, self.deployment.outputs[0])
        assert found.good, found
        print(found)

    def close(self) -> None:
        self.load.stop.set()
        self.watcher.stop.set()
        self.deployment.close()


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(tmp_path, life_s=_LIFE_S) as made:
        yield made


@pytest.fixture
def cluster(endpoint: TokenEndpoint) -> Iterator[LoginCluster]:
    with LoginCluster(endpoint).start() as made:
        yield made


def test_tokens_end_and_their_endpoint_goes_and_comes(
    cluster: LoginCluster, endpoint: TokenEndpoint, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(endpoint.secret, "utf-8")
    secret.chmod(0o600)
    security = {
        "protocol": "sasl_plaintext",
        "mechanism": "oauthbearer",
        "username": endpoint.user,
        "password_file": str(secret),
        "token_endpoint": endpoint.address,
    }
    run = Run(cluster, cluster.tokens, security)
    try:
        run.goes_on()
        began_s, given = time.monotonic(), endpoint.given
        run.wait(
            lambda: endpoint.given >= given + 3 and time.monotonic() > began_s + 3 * _LIFE_S, "no new token"
        )
        run.goes_on()

        def away() -> tuple[int, bytes]:
            raise ConnectionError

        def slow() -> tuple[int, bytes]:
            time.sleep(20.0)
            return 503, b""

        for answers, said in ((away, "cannot be asked"), (slow, "no answer within")):
            asked = len(endpoint.forms)
            endpoint.answers = answers
            run.wait(lambda asked=asked: len(endpoint.forms) > asked, "nobody asks")  # type: ignore[misc]
            run.wait(lambda said=said: said in run.log, f"not said: {said}", _SAID_S)  # type: ignore[misc]
            # Until the last token has ended, and the broker has ended its sessions.
            time.sleep(1.5 * _LIFE_S)
            endpoint.answers = None
            run.goes_on()
        assert endpoint.secret not in run.log
        run.end()
    finally:
        run.close()


def test_a_password_is_replaced_under_load(cluster: LoginCluster, tmp_path: Path) -> None:
    """First on the broker: what logs in again meanwhile is refused, and goes on once the file has the new one."""
    file = tmp_path / "password"
    file.write_text(PASSWORDS["worker"], "utf-8")
    file.chmod(0o600)
    security = {"protocol": "sasl_plaintext", "username": "worker", "password_file": str(file)}
    run = Run(cluster, cluster.passwords, security)
    try:
        run.goes_on()
        set_password(cluster.bootstrap, "worker", "another-secret")
        run.wait(lambda: "refused user 'worker'" in run.log, "no refusal is said")
        file.write_text("another-secret", "utf-8")
        run.goes_on()
        assert "another-secret" not in run.log
        run.end()
    finally:
        run.close()


def test_certificates_are_replaced_under_load(tmp_path: Path) -> None:
    """The broker comes back with a certificate of another authority, which alone it trusts, so that all have to show
    a new one too."""
    new = make_certificates(tmp_path / "new", "another-ca")
    with SecureCluster().start() as cluster:
        security = cluster.client_files(tmp_path, new)
        shown = Path(str(security["certificate_file"]))
        run = Run(cluster, cluster.mutual, security)
        try:
            run.goes_on()
            cluster.change_authority(new)
            run.wait(lambda: "certificate" in run.log, "no refusal is said")
            sent = len(run.load.sent_s)
            run.wait(lambda: len(run.load.sent_s) > sent + 5 * _RATE, "nothing is sent")
            written = shown.with_suffix(".new")
            written.write_bytes(new.client.read_bytes())
            written.chmod(0o600)
            written.replace(shown)
            run.goes_on()
            assert KEY_PASSWORD not in run.log
            run.end()
        finally:
            run.close()
