"""A schema registry on 127.0.0.1 by its documented protocol; it may be away, slow, limited, or want a login.

Source: Confluent, "Schema Registry API Reference".
"""

from __future__ import annotations

import base64
import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import NAMESPACE_OID, UUID, uuid5

from tests.broker.own_server import Asked, OwnServer, Told

_TYPE = "application/vnd.schemaregistry.v1+json"
_UNKNOWN = {"error_code": 40403, "message": "Schema not found"}
_NO_SUCH_PATH = {"error_code": 404, "message": "HTTP 404 Not Found"}


class OwnRegistry(OwnServer):
    """Holds schemas under ids from 1 on.

    login: a name and a password that it wants; None: it wants none
    status: what it answers in place of a schema; None: the schema
    asked: paths of the requests so far
    tells_kind: whether it says of which kind a schema is
    is_dead: whether it answers nothing
    says: what it answers for an id or a GUID that it does not hold, as text; None: that it is unknown
    a_second: how many requests of any second it takes; None: all of them
    delay_s: how long each answer takes
    """

    def __init__(self) -> None:
        self._schemas: list[dict[str, Any]] = []
        self._subjects: dict[str, list[int]] = {}
        self.answer_again()
        super().__init__(self._told)

    def answer_again(self) -> None:
        """Be as a registry should, and forget who asked."""
        self.login: tuple[str, str] | None = None
        self.status: int | None = None
        self.asked: list[str] = []
        self.tells_kind = True
        self.is_dead = False
        self.says: Callable[[str], tuple[int, Any] | None] = lambda _: None
        self.a_second: float | None = None
        self.delay_s = 0.0
        self._taken: deque[float] = deque()

    def add(self, subject: str, schema: object, kind: str = "AVRO", references: Any = ()) -> int:
        """The id of a schema that is registered under a subject. schema: text, or what becomes JSON"""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        held = {"schema": text, "schemaType": kind, "references": list(references)}
        held["guid"] = str(uuid5(NAMESPACE_OID, json.dumps(held)))
        if held not in self._schemas:
            self._schemas.append(held)
        number = self._schemas.index(held) + 1
        versions = self._subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def guid(self, number: int) -> UUID:
        """The GUID of the schema with this id."""
        return UUID(self._schemas[number - 1]["guid"])

    def _told(self, asked: Asked) -> Told:
        self.asked.append(asked.path)
        if self.is_dead:
            raise ConnectionError
        time.sleep(self.delay_s)
        path = [unquote(part) for part in urlsplit(asked.path).path.strip("/").split("/")]
        body = json.loads(asked.body or b"{}")
        status, told = self._answer(path, body, asked.headers.get("Authorization", ""))
        return Told(status, json.dumps(told).encode(), {"Content-Type": _TYPE})

    def _is_busy(self) -> bool:
        now_s = time.monotonic()
        while self._taken and self._taken[0] < now_s - 1:
            self._taken.popleft()
        if self.a_second is not None and len(self._taken) >= self.a_second:
            return True
        self._taken.append(now_s)
        return False

    def _answer(self, path: list[str], body: dict[str, Any], login: str) -> tuple[int, Any]:
        if self.login is not None:
            given = base64.b64decode(login.removeprefix("Basic ")).decode()
            if given != ":".join(self.login):
                return 401, {"error_code": 401, "message": "Unauthorized"}
        if self._is_busy():
            return 429, {"error_code": 429, "message": "Too Many Requests"}
        if self.status is not None:
            return self.status, {"error_code": self.status, "message": "as the test wants it"}
        if body:
            number = self.add(
                path[1], body["schema"], body.get("schemaType", "AVRO"), body.get("references") or ()
            )
            guid = self._schemas[number - 1]["guid"]
            return 200, {"id": number, "guid": guid, "version": 1, "subject": path[1], **body}
        if path[:2] == ["schemas", "guids"]:
            told = next((each for each in self._schemas if each["guid"] == path[2]), None)
            return self.says(path[2]) or (404, _UNKNOWN) if told is None else (200, told)
        if path[0] == "schemas":
            number = int(path[2])
            if not 0 < number <= len(self._schemas):
                return self.says(path[2]) or (404, _NO_SUCH_PATH if number >= 1 << 31 else _UNKNOWN)
            told = self._schemas[number - 1]
            return 200, told if self.tells_kind else {"schema": told["schema"]}
        if path[0] != "subjects":
            # Such as the associations of topics, which only some registries have.
            return 404, _NO_SUCH_PATH
        subject, version = path[1], int(path[3])
        versions = self._subjects.get(subject, [])
        if not 0 < version <= len(versions):
            return 404, {"error_code": 40402, "message": "Version not found"}
        number = versions[version - 1]
        return 200, {"subject": subject, "version": version, "id": number, **self._schemas[number - 1]}
