"""A token endpoint of OIDC on 127.0.0.1, for one client, with a key of its own; it may be slow, away, or lie."""

from __future__ import annotations

import base64
import functools
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from tests.broker.certificates import need_openssl
from tests.broker.own_server import Asked, OwnServer, Told

AUDIENCE, ISSUER = "kafka", "https://issuer.example"


class TokenEndpoint(OwnServer):
    """Gives tokens of `life_s` to the client `user` with `secret`, signed with RS256.

    answers: what it sends in place of a token, as a status and a body; raises ConnectionError: nothing at all
    given: how many tokens it gave; forms: the bodies of requests, read
    """

    def __init__(self, folder: Path, life_s: float = 10.0) -> None:
        self.user, self.secret = "worker", "s3cret+/=% ü"
        self.life_s = life_s
        self.given = 0
        self.forms: list[dict[str, list[str]]] = []
        self.answers: Callable[[], tuple[int, bytes]] | None = None
        self._folder = folder
        super().__init__(self._told)

    def _told(self, asked: Asked) -> Told:
        if asked.method == "POST":
            self.forms.append(parse_qs(asked.body.decode()))
            status, body = self._answer(asked.headers.get("Authorization", ""))
        else:
            status, body = 200, self._keys()
        elsewhere = {"Content-Type": "application/json", "Location": f"{self.address}/elsewhere"}
        return Told(status, body, elsewhere)

    @property
    def address(self) -> str:
        return f"{self.url}/token"

    @property
    def keys_address(self) -> str:
        return f"{self.url}/keys"

    def _answer(self, login: str) -> tuple[int, bytes]:
        if self.answers is not None:
            return self.answers()
        user, _, secret = base64.b64decode(login.removeprefix("Basic ")).decode().partition(":")
        if (unquote_plus(user), unquote_plus(secret)) != (self.user, self.secret):
            return 401, json.dumps({"error": "invalid_client"}).encode()
        self.given += 1
        told = {"access_token": self.token(), "token_type": "Bearer", "expires_in": self.life_s}
        return 200, json.dumps(told).encode()

    @functools.cached_property
    def _key(self) -> Path:
        need_openssl()
        key = self._folder / "token-key.pem"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        return key

    def token(self) -> str:
        """A signed token."""
        now_s = int(time.time())
        claims = {
            "sub": self.user,
            "aud": AUDIENCE,
            "iss": ISSUER,
            "iat": now_s,
            "exp": now_s + int(self.life_s),
            "scope": "kafka",
        }
        text = f"{_url64(json.dumps({'alg': 'RS256', 'kid': 'one'}).encode())}.{_url64(json.dumps(claims).encode())}"
        signed = subprocess.run(
            ["openssl", "dgst", "-sha256", "-sign", str(self._key)],
            input=text.encode(),
            capture_output=True,
            check=True,
        )
        return f"{text}.{_url64(signed.stdout)}"

    def _keys(self) -> bytes:
        """The public key, as a JSON web key set."""
        told = subprocess.run(
            ["openssl", "rsa", "-in", str(self._key), "-noout", "-modulus"], capture_output=True, check=True
        )
        modulus = bytes.fromhex(told.stdout.decode().strip().removeprefix("Modulus="))
        key: dict[str, Any] = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "e": "AQAB"}
        return json.dumps({"keys": [key | {"n": _url64(modulus)}]}).encode()


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
