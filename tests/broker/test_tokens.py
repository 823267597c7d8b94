"""What the source of OIDC tokens asks its endpoint, which answers it refuses, and when it renews a token."""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.token_endpoint import TokenEndpoint
from tests.service.running import wait_for
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka import tokens
from twinsieve.pipeline.kafka.tokens import Token, TokenProvider, TokenSource, token_source
from twinsieve.pipeline.settings.model import SecuritySettings


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[TokenEndpoint]:
    with TokenEndpoint(tmp_path, life_s=100.0) as made:
        yield made


Open = Callable[[SecuritySettings], TokenSource]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Makes sources that renew nothing after the test."""
    made: list[TokenSource] = []

    def make(security: SecuritySettings) -> TokenSource:
        made.append(TokenSource(security))
        return made[-1]

    yield make
    for source in made:
        source.close()


def _settings(endpoint: TokenEndpoint, folder: Path, **more: object) -> SecuritySettings:
    file = folder / "secret"
    file.write_text(f"{endpoint.secret}\n", "utf-8")
    return SecuritySettings.model_validate(
        {
            "protocol": "sasl_ssl",
            "mechanism": "oauthbearer",
            "username": endpoint.user,
            "password_file": str(file),
            "token_endpoint": endpoint.address,
            **more,
        }
    )


def test_one_token_serves_all_clients(endpoint: TokenEndpoint, tmp_path: Path) -> None:
    security = _settings(endpoint, tmp_path, token_scope="read write")
    source = token_source(security)
    assert token_source(security.model_copy()) is source
    assert TokenProvider(source).token() == source.token().value
    assert 0 < source.token().ends_s - time.monotonic() <= 100.0
    assert endpoint.given == 1
    assert endpoint.forms == [{"grant_type": ["client_credentials"], "scope": ["read write"]}]
    source.close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b'{"error": "invalid_client"}', "answers 401 invalid_client; check kafka.security.username"),
        (400, b'{"error": "a\\u001b[2Jb"}', r"answers 400 a\x1b[2Jb; check"),
        (403, b"<html>", "answers 403; check"),
        (503, b"[" * 100_000, "answers 503"),
        (302, b"", "answers 302, a redirection, which is not followed"),
        (200, b"<html>", "its answer is not JSON"),
        (200, b"[" * 60_000, "its answer is not JSON"),
        (200, b"{}", "its answer has no access_token"),
        (200, b"[1]", "its answer has no access_token"),
        (200, b'{"access_token": 5}', "its answer has no access_token"),
        (200, b'{"access_token": "a\\u0001auth=b"}', "its access_token has characters that no token has"),
        (200, b'{"access_token": "\\ud800"}', "its access_token has characters that no token has"),
        (200, b'{"access_token": "a", "expires_in": "soon"}', "its expires_in is no number"),
        (200, b'{"access_token": "a", "expires_in": null}', "its expires_in is no number"),
        (200, b'{"access_token": "a", "expires_in": 0}', "its token has ended already"),
        (200, b'{"access_token": "a", "expires_in": NaN}', "its token has ended already"),
        (200, json.dumps({"access_token": "a" * 70_000}).encode(), "its answer has more than 65536 bytes"),
    ],
)
def test_an_endpoint_that_lies_gives_no_token(
    endpoint: TokenEndpoint, tmp_path: Path, status: int, body: bytes, said: str
) -> None:
    endpoint.answers = lambda: (status, body)
    with pytest.raises(BrokerError) as refused:
        TokenSource(_settings(endpoint, tmp_path))
    assert refused.value.retryable
    assert str(refused.value).startswith(f"token endpoint {endpoint.address}: {said}")
    assert endpoint.secret not in str(refused.value)


def test_a_life_without_end_or_word_is_cut(opened: Open, endpoint: TokenEndpoint, tmp_path: Path) -> None:
    for told, life_s in ((b', "expires_in": 1e999', 86_400.0), (b"", 300.0)):
        endpoint.answers = lambda told=told: (200, b'{"access_token": "a"' + told + b"}")  # type: ignore[misc]
        assert opened(_settings(endpoint, tmp_path)).token().life_s == life_s


def test_who_is_not_there_or_silent_is_named_in_time(
    endpoint: TokenEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut() -> tuple[int, bytes]:
        raise ConnectionError

    def slow() -> tuple[int, bytes]:
        time.sleep(30.0)
        return 200, b""

    security = _settings(endpoint, tmp_path)
    endpoint.answers = cut
    with pytest.raises(BrokerError, match="cannot be asked"):
        TokenSource(security)
    endpoint.answers = slow
    with monkeypatch.context() as short:
        short.setattr(tokens, "_REQUEST_S", 0.5)
        with pytest.raises(BrokerError, match=r"no answer within 0\.5 s"):
            TokenSource(security)
    endpoint.close()
    with pytest.raises(BrokerError, match=r"cannot be asked .*refused"):
        TokenSource(security)


def test_answers_that_do_not_end_take_few_threads(
    opened: Open, endpoint: TokenEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.life_s = 2.0
    source = opened(_settings(endpoint, tmp_path))
    monkeypatch.setattr(tokens, "_REQUEST_S", 0.2)
    monkeypatch.setattr(tokens, "_RETRY_S", 0.05)
    ended, held = threading.Event(), []

    def endless() -> Token:
        held.append(True)
        ended.wait()
        return Token("a", math.inf, 1_000.0)

    monkeypatch.setattr(tokens, "_requested", lambda _: endless())

    def is_said() -> bool:
        return "begins answers and does not end them" in source._failure

    wait_for(is_said, "a limit")
    assert len(held) == tokens._MAX_REQUESTS
    ended.set()


def test_tokens_are_renewed_with_the_secret_that_the_file_has_then(
    opened: Open,
    endpoint: TokenEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A secret that ended is said once in a while; a new one in its file ends that."""
    monkeypatch.setattr(tokens, "_RETRY_S", 0.1)
    monkeypatch.setattr(tokens, "_SAY_EVERY_S", math.inf)
    caplog.set_level(logging.INFO)
    endpoint.life_s = 10.0
    security = _settings(endpoint, tmp_path)
    source = opened(security)
    given = endpoint.given
    wait_for(lambda: endpoint.given > given, "a second token")
    endpoint.secret = "another"

    def has_ended() -> bool:
        try:
            source.token()
        except BrokerError as error:
            return "answers 401 invalid_client" in str(error)
        return False

    wait_for(has_ended, "no token")
    assert caplog.text.count("answers 401 invalid_client") == 1
    Path(str(security.password_file)).write_text("another", "utf-8")
    wait_for(lambda: not has_ended(), "a token again")
    wait_for(lambda: "gives tokens again" in caplog.text, "the end of it")
    assert "another" not in caplog.text


def _gone(path: Path) -> None:
    path.unlink()


def _unreadable(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("harm", [_gone, _unreadable])
def test_a_secret_file_that_cannot_be_read_keeps_the_token(
    opened: Open,
    endpoint: TokenEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    harm: Callable[[Path], None],
) -> None:
    monkeypatch.setattr(tokens, "_RETRY_S", 0.1)
    monkeypatch.setattr(tokens, "_RENEW_AT", 0.05)
    security = _settings(endpoint, tmp_path)
    source = opened(security)
    harm(Path(str(security.password_file)))
    wait_for(lambda: "kafka.security.password_file" in caplog.text, "the file's name in the log")
    assert "the last token is valid for" in caplog.text
    assert source.token().value
    Path(str(security.password_file)).write_text(endpoint.secret, "utf-8")
    given = endpoint.given
    wait_for(lambda: endpoint.given > given, "another token")
