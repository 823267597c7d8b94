"""Asks a registry for schemas, by confluent-kafka's own client, and tells answers about a schema from others.

Some answers are about the schema: it is there, or there is no such schema for us. They count only while the
registry itself answers: a gateway, or a registry that loses its rights, answers 404 or 403 for everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.settings.model import RegistrySettings
from twinsieve.pipeline.settings.secret_files import secret_text

_ANSWER_S = 5.0
_ITSELF_S = 60.0
"""For how long it counts that the registry itself has answered."""
_BESIDE_S = 5.0
"""The same where time counts: whether the registry answers others while it does not answer about a schema."""
_LONGEST_GAP_S = 10.0
"""Most seconds between two answers in which the registry counts as one that answers."""
_NOT_FOUND, _TOO_MANY = 404, 429
_OF_ONE_SCHEMA = (400, 403, _NOT_FOUND, 410, 422)
"""May be answers about a schema: of an id beyond 2^31, of another team's subject, of one that was deleted."""
_UNKNOWN = (40401, 40402, 40403)
"""Codes of a registry that knows no such subject, version or schema. Other servers, a registry under another
path, and one that is asked for what is no id (2^31 and more) answer 404 without them."""
_LOGIN_REFUSED = (401, 403)
_DETAIL = 200


class SchemaError(Exception):
    """Values of a schema cannot be read, whatever they are; the text says why."""


class SilentError(AbortableError):
    """The registry says nothing about a schema.

    is_busy: it takes no more requests for now; answers: whether it answers others meanwhile
    """

    def __init__(self, why: str, *, is_busy: bool, answers: bool) -> None:
        super().__init__(why)
        self.is_busy, self.answers = is_busy, answers


class Registry:
    """A client that is made again when nothing is answered, with secrets and certificates as their files are
    then. Any thread may use it.

    now_s: a monotonic clock
    heard_s: when the registry itself answered last
    answering_s: seconds in which it did, without longer gaps: a time that stands while nothing answers
    """

    def __init__(self, settings: RegistrySettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._now_s = now_s
        self._client: SchemaRegistryClient | None = None
        self._lock, self._control = Lock(), Lock()
        self._known: Callable[[Any], Any] | None = None
        """Asks for a schema that the registry has."""
        self.heard_s = -_ITSELF_S
        self.answering_s = 0.0

    def schema(self, number: int | str, form: str | None) -> Schema:
        """The schema with this id, or with this GUID if it is a text.

        form: of its text, None as it was registered
        raises: SchemaError if the registry has none for us; SilentError if it says nothing about it
        """

        def ask(client: SchemaRegistryClient) -> Schema:
            if isinstance(number, str):
                return client.get_schema_by_guid(number, fmt=form)
            return client.get_schema(number, fmt=form)

        found: Schema = self._asked(f"schema {number}", ask)
        self._known = ask
        return found

    def imports(self, schema: Schema, form: str | None) -> Iterator[tuple[str, Schema]]:
        """All schemas that a schema refers to, each once, with the name in the reference. What a schema needs
        comes before it. form, raises: as `schema`"""
        yield from self._imports(schema, form, set())

    def _imports(self, schema: Any, form: str | None, seen: set[object]) -> Iterator[tuple[str, Schema]]:
        for reference in schema.references or ():
            if reference.name not in seen:
                seen.add(reference.name)
                imported = self._version(reference.subject, reference.version, form)
                yield from self._imports(imported, form, seen)
                yield reference.name, imported

    def _version(self, subject: str, version: int, form: str | None) -> Schema:
        what = f"version {version} of subject {printable(subject)}"
        found: Schema = self._asked(
            what, lambda client: client.get_version(subject, version, deleted=True, fmt=form).schema
        )
        return found

    def _asked(self, what: str, ask: Callable[[Any], Any]) -> Any:
        # Addresses are not shown whole in errors, as they may hold a login.
        where = ", ".join(urlsplit(url.strip()).netloc for url in (self._settings.url or "").split(","))
        status = 0
        cause: Exception
        try:
            found = ask(self._connection())
        except SchemaRegistryError as error:
            status, cause = error.http_status_code, error
            if _is_own(error):
                self._hear()
            advice = f"it answers {status}; it is asked again"
            if status == _NOT_FOUND:
                advice = "it answers 404, and not as a schema registry; check the path of input.registry.url"
            if status in _LOGIN_REFUSED:
                advice = "it refuses the login; check input.registry.username, its password and its rights"
        except Exception as error:  # noqa: BLE001
            # The client lets errors of its HTTP library, of sockets and of certificates through.
            cause, reason = error, printable(str(error) or type(error).__name__)[:_DETAIL]
            advice = f"no answer ({reason}); it is asked again"
        else:
            self._hear()
            return found
        is_of_schema = status in _OF_ONE_SCHEMA
        answers = self._answers(_ITSELF_S if is_of_schema else _BESIDE_S)
        if is_of_schema and answers:
            said = "does not know" if status == _NOT_FOUND else f"answers {status} for"
            raise SchemaError(f"the registry {said} {what}") from cause
        if not answers:
            self._client = None
        why = f"schema registry {where}: {what}: {advice}"
        raise SilentError(why, is_busy=status == _TOO_MANY, answers=answers) from cause

    def _answers(self, within_s: float) -> bool:
        """Whether the registry itself has answered within this time. If it has not, it is asked for what it
        had before, and for a subject that is known, or unknown as a registry says it."""
        with self._control:
            if self._now_s() - self.heard_s < within_s:
                return True
            for ask in filter(None, (self._known, _subject)):
                try:
                    client: Any = self._connection()
                    client.clear_caches()
                    ask(client)
                except Exception as error:  # noqa: BLE001 - whatever else it is, it is no answer
                    if not _is_own(error):
                        continue
                self._hear()
                return True
        return False

    def _hear(self) -> None:
        with self._lock:
            now_s = self._now_s()
            self.answering_s += max(0.0, min(now_s - self.heard_s, _LONGEST_GAP_S))
            self.heard_s = now_s

    def _connection(self) -> SchemaRegistryClient:
        client = self._client
        if client is None:
            client = self._client = self._connected()
        return client

    def _connected(self) -> SchemaRegistryClient:
        settings = self._settings
        options: dict[str, Any] = {"url": settings.url, "timeout": _ANSWER_S, "max.retries": 0}
        if settings.username is not None:
            secret = secret_text(settings, "password", "input.registry") or ""
            options["basic.auth.user.info"] = f"{settings.username}:{secret}"
        for name, option in (("ca_file", "ca"), ("certificate_file", "certificate"), ("key_file", "key")):
            if getattr(settings, name) is not None:
                options[f"ssl.{option}.location"] = getattr(settings, name)
        return SchemaRegistryClient(options)


def _is_own(error: Exception) -> bool:
    """Whether only a registry answers so."""
    return isinstance(error, SchemaRegistryError) and error.error_code in _UNKNOWN


def _subject(client: SchemaRegistryClient) -> None:
    # No schema by its id: strangers may choose one, and this subject is asked for by nobody else.
    client.get_version("twinsieve", 1)
