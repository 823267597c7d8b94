"""The schemas of a registry, each asked for once, by confluent-kafka's own client."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason, UnreadableError
from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.settings.model import RegistrySettings
from twinsieve.pipeline.settings.secret_files import secret_text
from twinsieve.stages.errors import UsageError

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

INSTALL = "install it: pip install 'twinsieve[registry]'"
_ANSWER_S = 5.0
_UNKNOWN_S = 30.0
"""For how long an unknown id is not asked for again: strangers may write any number."""
_MOST_UNKNOWN = 1_000
_MOST_SCHEMAS = 1_000
_NOT_FOUND = 404
_LOGIN_REFUSED = (401, 403)
_DETAIL = 200
Reader = TypeVar("Reader")
Clock = Callable[[], float]


class SchemaError(Exception):
    """Values of a schema cannot be read, whatever they are; the text says why."""


class Registry:
    """A client that is made again after an error, with secrets and certificates as their files are then.

    raises: UsageError if its package is missing
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._client: SchemaRegistryClient | None = None
        try:
            import confluent_kafka.schema_registry  # noqa: F401 (whether it can be used)
        except ImportError as error:
            raise UsageError(
                f"input.encoding: a package for a schema registry is missing; {INSTALL}"
            ) from error

    def schema(self, number: int, form: str | None = None) -> Schema:
        """The schema with this id.

        form: of its text, None as it was registered
        raises: SchemaError if the registry does not know it; AbortableError if it does not answer
        """
        found: Schema = self._asked(f"schema {number}", lambda client: client.get_schema(number, fmt=form))
        return found

    def version(self, subject: str, version: int, form: str | None = None) -> Schema:
        """A schema that another one refers to. raises: as `schema`"""
        what = f"version {version} of subject {printable(subject)}"
        found: Schema = self._asked(
            what, lambda client: client.get_version(subject, version, deleted=True, fmt=form).schema
        )
        return found

    def _asked(self, what: str, ask: Callable[[Any], Any]) -> Any:
        from confluent_kafka.schema_registry import SchemaRegistryError

        # Addresses are not shown whole in errors, as they may hold a login.
        where = ", ".join(urlsplit(url.strip()).netloc for url in (self._settings.url or "").split(","))
        try:
            if self._client is None:
                self._client = self._connected()
            return ask(self._client)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                raise SchemaError(f"the registry does not know {what}") from error
            self._client = None
            advice = f"it answers {error.http_status_code}; it is asked again"
            if error.http_status_code in _LOGIN_REFUSED:
                advice = "it refuses the login; check input.registry.username and its password"
            raise AbortableError(f"schema registry {where}: {what}: {advice}") from error
        except Exception as error:
            # The client lets errors of its HTTP library, of sockets and of certificates through.
            self._client = None
            reason = printable(str(error) or type(error).__name__)[:_DETAIL]
            raise AbortableError(
                f"schema registry {where}: {what}: no answer ({reason}); it is asked again"
            ) from error

    def _connected(self) -> SchemaRegistryClient:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        settings = self._settings
        options: dict[str, Any] = {"url": settings.url, "timeout": _ANSWER_S, "max.retries": 0}
        if settings.username is not None:
            secret = secret_text(settings, "password", "input.registry") or ""
            options["basic.auth.user.info"] = f"{settings.username}:{secret}"
        for name, option in (("ca_file", "ca"), ("certificate_file", "certificate"), ("key_file", "key")):
            if getattr(settings, name) is not None:
                options[f"ssl.{option}.location"] = getattr(settings, name)
        return SchemaRegistryClient(options)


class Readers(Generic[Reader]):
    """What reads the values of each schema, made once.

    make: of the id of a schema; raises SchemaError for one that cannot be used
    """

    def __init__(self, make: Callable[[int], Reader], now_s: Clock = time.monotonic) -> None:
        self._make = make
        self._now_s = now_s
        self._made: dict[int, Reader] = {}
        self._refused: dict[int, tuple[float, str]] = {}

    def of(self, number: int) -> Reader:
        """The reader of this schema. raises: UnreadableError for one that cannot be used; as `make`"""
        made = self._made.get(number)
        if made is not None:
            return made
        until_s, why = self._refused.get(number, (0.0, ""))
        if self._now_s() >= until_s:
            try:
                made = self._make(number)
            except SchemaError as error:
                why = str(error)
                if len(self._refused) >= _MOST_UNKNOWN:
                    self._refused.clear()
                self._refused[number] = (self._now_s() + _UNKNOWN_S, why)
            else:
                if len(self._made) >= _MOST_SCHEMAS:
                    self._made.clear()
                self._made[number] = made
                self._refused.pop(number, None)
                return made
        raise UnreadableError(DeadLetterReason.UNKNOWN_SCHEMA, f"is of a schema that cannot be used: {why}")
