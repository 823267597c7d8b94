"""The decision tree for "nothing comes out" leads to the page that helps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.deployment import poll_until
from tests.broker.fixtures import _shared, bootstrap
from tests.broker.server import free_ports
from tests.registry import posts as registry_posts
from tests.registry.own_registry import OwnRegistry
from tests.runbooks.fixtures import alerts, on_call
from tests.runbooks.on_call import OnCall
from tests.runbooks.states import comes_in, open_transaction, posts, well
from twinsieve.pipeline.worker.waiting import WaitReason

__all__ = ["_shared", "alerts", "bootstrap", "on_call"]


@pytest.mark.minutes
@pytest.mark.parametrize(
    ("page", "make"),
    [
        ("open-transaction", lambda number: posts(1, number)[0]),
        ("drop-rate-jumps", lambda _: posts(1)[0]),
        ("dead-letters", lambda _: '{"message": "今天武汉下雨了，大家出门记得带伞"}'),
    ],
)
def test_the_tree_leads_by_what_grows(on_call: OnCall, page: str, make: Callable[[int], str]) -> None:
    well(on_call, "worker", "index")
    if page == "open-transaction":
        open_transaction(on_call, "out")
    with comes_in(on_call, make=make):
        assert on_call.find_page() == [page]


@pytest.mark.minutes
def test_the_tree_leads_to_a_backlog(on_call: OnCall) -> None:
    on_call.deployment.set("kafka", poll_messages=10, pending_messages=10)
    well(on_call, "worker", "index")
    on_call.post(*posts(40_000, first=3))
    assert on_call.find_page() == ["behind"]


def test_the_tree_leads_to_a_token_endpoint_that_is_away(on_call: OnCall, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the client")
    secret.chmod(0o600)
    (port,) = free_ports(1)
    security = {
        "protocol": "sasl_plaintext",
        "mechanism": "oauthbearer",
        "username": "client",
        "password_file": str(secret),
        "token_endpoint": f"http://127.0.0.1:{port}/token",
    }
    on_call.deployment.set("kafka", security=security)
    on_call.start("both")
    assert poll_until(lambda: "token endpoint" in on_call.say("curl -s http://WORKER:8080/readyz"), 60.0)
    assert on_call.find_page() == ["expired-secret"]


def test_the_tree_leads_to_a_registry_that_is_away(on_call: OnCall) -> None:
    with OwnRegistry() as registry:
        registry.status = 503
        on_call.deployment.set("input", **registry_posts.settings(registry, "avro"))
        on_call.start("worker")
        on_call.start("index")
        assert poll_until(lambda: "live 1.0" in on_call.say("curl -s http://INDEX:8080/metrics"), 60.0)
        message = registry_posts.writer(registry, "avro")(b'{"id": "1", "text": "", "created_at": ""}')
        on_call.post(message.decode("latin-1"))
        assert poll_until(lambda: "schema registry" in on_call.say("curl -s http://WORKER:8080/readyz"), 60.0)
        assert on_call.find_page() == ["half-comes-out"]
        said = on_call.say("curl -s http://WORKER:8080/metrics")
        assert f'twinsieve_waiting_partitions{{reason="{WaitReason.SCHEMA}"}} 1.0' in said
