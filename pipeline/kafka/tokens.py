"""Tokens for OAUTHBEARER, by the client credentials of OIDC or by AWS's signer, renewed before they end.

One request at a time asks for one, in a thread of its own, so that no client waits for it. A secret is read
again for each request if it comes from a file. Errors never contain a secret or a token.
Source: RFC 6749, sections 2.3.1, 4.4 and 5; RFC 6750, section 2.1.
"""

from __future__ import annotations

import base64
import json
import logging
import math
import ssl
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import quote_plus, urlencode

from kafka.net.sasl.oauth import AbstractTokenProvider

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.kafka.deadline import CallThread, DeadlineError
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import SecuritySettings
from twinsieve.pipeline.settings.secret_files import secret_text

_log = logging.getLogger("twinsieve")
_REQUEST_S = 8.0
"""How long one request may take, whatever the endpoint sends meanwhile."""
_MAX_REQUESTS = 4
"""An answer that comes byte by byte keeps its thread, so no more than these are waited for at once."""
_RETRY_S = 5.0
_SAY_EVERY_S = 60.0
_RENEW_AT = 0.75
"""Share of a token's life after which it is renewed."""
_UNTOLD_LIFE_S = 300.0
"""Life of a token if the endpoint does not tell it."""
_MAX_LIFE_S = 86_400.0
_MAX_ANSWER_BYTES = 64 << 10
_TOKEN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")


@dataclass(frozen=True, slots=True)
class Token:
    """value: the token itself; ends_s: when it ends, in seconds of the monotonic clock; life_s: its length"""

    value: str
    ends_s: float
    life_s: float


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """An answer that names another address is an error, because the secret is for this endpoint alone."""

    def redirect_request(self, *_: Any) -> None:
        return None


class TokenSource:
    """The newest token of one login. A thread renews it until `close`, or until the process ends.

    raises: BrokerError, which waiting may repair, if there is no token now
    """

    def __init__(self, security: SecuritySettings) -> None:
        self._security = security
        self._where = _giver(security)
        self._calls = CallThread()
        self._may_ask = threading.Semaphore(_MAX_REQUESTS)
        self._closed = threading.Event()
        self._said_s = -math.inf
        self._failure = ""
        self._token = self._ask()
        threading.Thread(target=self._renew, name="token", daemon=True).start()

    def token(self) -> Token:
        """A token that is still valid. raises: BrokerError if it has ended, and no other could be had"""
        token = self._token
        if token.ends_s <= time.monotonic():
            raise BrokerError(self._failure or "the token has ended", retryable=True)
        return token

    def close(self) -> None:
        """Renew no more."""
        self._closed.set()

    def _renew(self) -> None:
        wait_s = _RENEW_AT * self._token.life_s
        while not self._closed.wait(wait_s):
            try:
                self._token = self._ask()
            except (BrokerError, ConfigError) as error:
                self._failure = str(error)
                self._say()
                wait_s = _RETRY_S
            else:
                if self._failure:
                    _log.info("%s: gives tokens again", self._where)
                self._failure, self._said_s = "", -math.inf
                wait_s = _RENEW_AT * self._token.life_s

    def _say(self) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s < _SAY_EVERY_S:
            return
        self._said_s = now_s
        left_s = self._token.ends_s - now_s
        rest = f"the last token is valid for {left_s:.0f} s" if left_s > 0 else "the last token has ended"
        _log.warning("%s; %s; asking again", self._failure, rest)

    def _ask(self) -> Token:
        try:
            return self._calls.within(_REQUEST_S, self._request)
        except DeadlineError as error:
            raise BrokerError(f"{self._where}: no answer within {_REQUEST_S:g} s", retryable=True) from error
        except _RefusedError as error:
            raise BrokerError(f"{self._where}: {error}", retryable=True) from error

    def _request(self) -> Token:
        if not self._may_ask.acquire(blocking=False):
            raise _RefusedError("begins answers and does not end them")
        try:
            get = _requested if self._security.aws_region is None else _signed
            return get(self._security)
        finally:
            self._may_ask.release()


class _RefusedError(Exception):
    """Why there is no token."""


def _giver(security: SecuritySettings) -> str:
    """Who gives the tokens, in words."""
    if security.aws_region is not None:
        return f"the signer of AWS for {security.aws_region}"
    return f"token endpoint {security.token_endpoint}"


_sources: dict[tuple[object, ...], TokenSource] = {}
_lock = threading.Lock()


def token_source(security: SecuritySettings) -> TokenSource:
    """The source of this login, one for all clients of the process, which has a valid token.

    raises: BrokerError, which waiting may repair, if it has none
    """
    login = (_giver(security), security.token_scope, security.username, security.password_file)
    with _lock:
        if login not in _sources:
            _sources[login] = TokenSource(security)
    source = _sources[login]
    source.token()
    return source


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc] # the library has no types
    """What kafka-python asks for tokens."""

    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source

    def token(self) -> str:
        return self._source.token().value


def _requested(security: SecuritySettings) -> Token:
    asked_s = time.monotonic()
    user, secret = security.username or "", secret_text(security, "password") or ""
    login = base64.b64encode(f"{quote_plus(user)}:{quote_plus(secret)}".encode()).decode()
    form = {"grant_type": "client_credentials"}
    if security.token_scope is not None:
        form["scope"] = security.token_scope
    request = urllib.request.Request(
        security.token_endpoint or "",
        urlencode(form).encode(),
        {"Authorization": f"Basic {login}", "Accept": "application/json"},
    )
    try:
        context = ssl.create_default_context(cafile=security.token_ca_file)
        opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))
        with opener.open(request, timeout=_REQUEST_S) as answer:
            body = answer.read(_MAX_ANSWER_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise _RefusedError(_refusal(error)) from error
    except (OSError, HTTPException, ValueError) as error:
        # A URLError has its cause as reason.
        raise _RefusedError(
            f"cannot be asked ({printable(str(getattr(error, 'reason', error)))[:200]})"
        ) from error
    return _read(body, asked_s)


def _signed(security: SecuritySettings) -> Token:
    """A token for MSK, which AWS's library signs with the credentials that it finds on this machine.

    raises: ConfigError if the library is not installed
    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ConfigError(
            [
                "kafka.security.aws_region: aws-msk-iam-sasl-signer-python is not installed; run in a "
                "checkout: pip install '.[aws]'"
            ]
        ) from error
    try:
        value, ends_ms = MSKAuthTokenProvider.generate_auth_token(security.aws_region)
    except Exception as error:  # the library names no errors of its own, and those of AWS's are many
        told = printable(str(error))[:200]
        raise _RefusedError(f"gives no token ({type(error).__name__}: {told}); check the role") from error
    life_s = ends_ms / 1000 - time.time()
    if not life_s > 0:
        raise _RefusedError("gives a token that has ended already; check the clock of this machine")
    life_s = min(life_s, _MAX_LIFE_S)
    return Token(value, time.monotonic() + life_s, life_s)


def _refusal(error: urllib.error.HTTPError) -> str:
    """What an HTTP error says, with the code of OAuth's error if there is one."""
    try:
        code = json.loads(error.read(_MAX_ANSWER_BYTES)).get("error", "")
    except (OSError, HTTPException, ValueError, AttributeError, RecursionError):
        code = ""
    told = f" {printable(code)[:60]}" if isinstance(code, str) and code else ""
    advice = ""
    if error.code in (400, 401, 403):
        advice = "; check kafka.security.username, its secret and token_scope"
    elif 300 <= error.code < 400:
        advice = ", a redirection, which is not followed; name the address that it leads to"
    return f"answers {error.code}{told}{advice}"


def _read(body: bytes, asked_s: float) -> Token:
    if len(body) > _MAX_ANSWER_BYTES:
        raise _RefusedError(f"its answer has more than {_MAX_ANSWER_BYTES} bytes")
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _RefusedError("its answer is not JSON; check kafka.security.token_endpoint") from error
    value = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(value, str) or not value:
        raise _RefusedError("its answer has no access_token")
    if not (value.isascii() and _TOKEN_BYTES.issuperset(value.encode())):
        raise _RefusedError("its access_token has characters that no token has")
    life_s = answer.get("expires_in", _UNTOLD_LIFE_S)
    try:
        life_s = float(life_s)
    except (TypeError, ValueError) as error:
        raise _RefusedError("its expires_in is no number") from error
    if not life_s > 0:
        raise _RefusedError("its token has ended already (expires_in)")
    life_s = min(life_s, _MAX_LIFE_S)
    return Token(value, asked_s + life_s, life_s)
