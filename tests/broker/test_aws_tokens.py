"""Tokens of AWS for MSK, signed on this machine with made-up credentials: no request leaves it, and none ever reached
AWS."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.tokens import TokenProvider, TokenSource
from twinsieve.pipeline.kafka.unreachable import unreachable
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings, SecuritySettings

_SECURITY = SecuritySettings.model_validate(
    {"protocol": "sasl_ssl", "mechanism": "oauthbearer", "aws_region": "eu-central-1"}
)
_SECRET = "made-up-secret-access-key"


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenSource]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", _SECRET)
    made = TokenSource(_SECURITY)
    yield made
    made.close()


def _signed_address(token: str) -> str:
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()


def test_a_client_gets_a_token_that_is_signed_for_the_region(source: TokenSource) -> None:
    value = TokenProvider(source).token()
    assert 800 < source.token().ends_s - time.monotonic() <= 900
    address = urlparse(_signed_address(value))
    asked = parse_qs(address.query)
    assert address.hostname == "kafka.eu-central-1.amazonaws.com"
    assert asked["Action"] == ["kafka-cluster:Connect"]
    assert asked["X-Amz-Credential"][0].startswith("AKIDEXAMPLE/")
    assert _SECRET not in _signed_address(value)


def test_a_machine_without_credentials_is_told_so() -> None:
    with pytest.raises(
        BrokerError, match=r"the signer of AWS for eu-central-1: gives no token .*check the role"
    ) as caught:
        TokenSource(_SECURITY)
    assert caught.value.retryable


def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(ConfigError, match=r"pip install '\.\[aws\]'"):
        TokenSource(_SECURITY)


def test_a_refusal_names_the_role_and_no_user() -> None:
    settings = KafkaSettings(security=_SECURITY)
    said = str(unreachable(settings, ["SASL authentication error: Access denied"]))
    assert "None" not in said
