"""Asks a registry for schemas, by confluent-kafka's own client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.broker.records import AbortableError
from twinsieve.pipeline.settings.model import RegistrySettings
from twinsieve.pipeline.settings.secret_files import secret_text

_ANSWER_S = 5.0
_NOT_FOUND = 404
_UNKNOWN = (40401, 40402, 40403)
"""Codes of a registry that knows no such subject, version or schema. Other servers, a registry under another
path, and one that is asked for what is no id (2^31 and more) answer 404 without them."""
_LOGIN_REFUSED = (401, 403)
_DETAIL = 200


class SchemaError(Exception):
    """Values of a schema cannot be read, whatever they are; the text says why."""


class Registry:
    """A client that is made again after an error, with secrets and certificates as their files are then."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._client: SchemaRegistryClient | None = None

    def schema(self, number: int | str, form: str | None) -> Schema:
        """The schema with this id, or with this GUID if it is a text.

        form: of its text, None as it was registered
        raises: SchemaError if the registry does not know it; AbortableError if it does not answer
        """

        def ask(client: SchemaRegistryClient) -> Schema:
            if isinstance(number, str):
                return client.get_schema_by_guid(number, fmt=form)
            return client.get_schema(number, fmt=form)

        found: Schema = self._asked(f"schema {number}", ask)
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
        try:
            if self._client is None:
                self._client = self._connected()
            return _found(self._client, what, ask)
        except SchemaError:
            raise
        except SchemaRegistryError as error:
            self._client = None
            advice = f"it answers {error.http_status_code}; it is asked again"
            if error.http_status_code == _NOT_FOUND:
                advice = "it answers 404, and not as a schema registry; check the path of input.registry.url"
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
        settings = self._settings
        options: dict[str, Any] = {"url": settings.url, "timeout": _ANSWER_S, "max.retries": 0}
        if settings.username is not None:
            secret = secret_text(settings, "password", "input.registry") or ""
            options["basic.auth.user.info"] = f"{settings.username}:{secret}"
        for name, option in (("ca_file", "ca"), ("certificate_file", "certificate"), ("key_file", "key")):
            if getattr(settings, name) is not None:
                options[f"ssl.{option}.location"] = getattr(settings, name)
        return SchemaRegistryClient(options)


def _found(client: SchemaRegistryClient, what: str, ask: Callable[[Any], Any]) -> Any:
    """What is asked for. raises: SchemaError if the registry does not know it; any error of the client"""
    try:
        return ask(client)
    except SchemaRegistryError as error:
        if error.error_code in _UNKNOWN or (error.http_status_code == _NOT_FOUND and _is_registry(client)):
            raise SchemaError(f"the registry does not know {what}") from error
        raise


def _is_registry(client: SchemaRegistryClient) -> bool:
    """Whether a subject is known, or unknown as a registry says it."""
    try:
        # No schema by its id: the client keeps that for later, in whatever format it was asked for.
        client.get_version("twinsieve", 1)
    except SchemaRegistryError as error:
        return error.error_code in _UNKNOWN
    return True
