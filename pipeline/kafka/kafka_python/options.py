"""Settings in kafka-python's words, and its errors in ours."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from kafka import errors
from kafka.net.compat import KafkaNetClient

from twinsieve.pipeline.broker.ports import AbortableError, BrokerError, FatalError
from twinsieve.pipeline.kafka.kafka_python.log_filters import ConnectionFailures, quieten
from twinsieve.pipeline.kafka.secrets import secret_text
from twinsieve.pipeline.kafka.tls import handshake_problem, tls_context
from twinsieve.pipeline.kafka.unreachable import unreachable
from twinsieve.pipeline.settings.model import KafkaSettings

_GRANT = "grant it (twinsieve topics acls prints what is needed)"
_REQUEST_TIMEOUT_MS = 30_000
_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_FENCED_MEMBER = (errors.FencedInstanceIdError, errors.UnreleasedInstanceIdError)
_FENCED_PRODUCER = (errors.ProducerFencedError, errors.InvalidProducerEpochError)
_NOT_ALLOWED = (errors.AuthorizationError, errors.SaslAuthenticationFailedError)


def common_options(settings: KafkaSettings, client_id: str, connect_timeout_s: float) -> dict[str, Any]:
    """Options that consumer, producer and admin share.

    raises: ConfigError for a secret or certificate file that cannot be used
    """
    quieten()
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "client_id": client_id,
        "request_timeout_ms": min(_REQUEST_TIMEOUT_MS, settings.request_timeout_ms),
        "bootstrap_timeout_ms": int(connect_timeout_s * 1000),
        # The default of 30 s would add up to that much to every return of a broker.
        "reconnect_backoff_max_ms": 1000,
        "security_protocol": security.protocol.upper(),
    }
    if "ssl" in security.protocol:
        options["ssl_context"] = tls_context(settings)
        options["ssl_check_hostname"] = security.check_hostname
    if "sasl" in security.protocol:
        options["sasl_mechanism"] = security.mechanism.upper()
        options["sasl_plain_username"] = security.username
        options["sasl_plain_password"] = secret_text(
            "kafka.security.password", security.password, security.password_file
        )
    return options


def warn_without_crc32c() -> None:
    """Says once that kafka-python computes its checksums in Python (measured: half of its speed)."""
    if importlib.util.find_spec("crc32c") is None:
        _log.warning("crc32c is not installed, so kafka-python runs at half speed; pip install crc32c")


def translated(error: Exception, doing: str) -> BrokerError:
    """The port's error for one of kafka-python's, chained by the caller; `doing` says what failed where."""
    # After the first error a producer says of every call that an earlier one failed, and with what.
    error = next((each for each in error.args if isinstance(each, errors.AuthorizationError)), error)
    said = f"{doing}: {reason(error)}"
    if isinstance(error, _FENCED_MEMBER):
        return FatalError(f"{said}; another process runs as this member, so this one ends", fenced=True)
    if isinstance(error, _FENCED_PRODUCER):
        return FatalError(f"{said}; the transaction timed out or another process has this slot")
    if isinstance(error, _NOT_ALLOWED):
        return FatalError(f"{said}; {_GRANT}", denied=True)
    if isinstance(error, errors.InvalidTxnStateError | errors.IllegalStateError):
        return FatalError(f"{said}; the producer is finished")
    return AbortableError(said)


def reason(error: Exception) -> str:
    """One line that says what kafka-python ran into; requests and responses are cut off."""
    if isinstance(error, errors.TopicAuthorizationFailedError):
        return f"not allowed for topic {_names(error)}"
    if isinstance(error, errors.GroupAuthorizationFailedError):
        return f"not allowed for group {_names(error)}"
    if isinstance(error, errors.TopicAlreadyExistsError):
        return "exists already"
    text = " ".join(str(error).split())
    name = type(error).__name__
    return (text if text.startswith(name) else f"{name}: {text}" if text else name)[:300]


def _names(error: Exception) -> str:
    found = error.args[0] if error.args else "?"
    return (
        ", ".join(sorted(map(str, found)))
        if isinstance(found, set | frozenset | list | tuple)
        else str(found)
    )


def connected(settings: KafkaSettings, make: Callable[[Callable[..., Any]], _T]) -> _T:
    """What `make` builds: a client that has reached a broker.

    make: called with what kafka-python takes as `kafka_client`
    raises: BrokerError in one line: unreachable, wrong password, certificate not accepted
    """
    heard = ConnectionFailures()
    log = logging.getLogger("kafka.net.manager")
    # First, as the filter that thins out repeated lines would keep them from it.
    log.filters.insert(0, heard)
    networks: list[KafkaNetClient] = []

    def network(**options: Any) -> KafkaNetClient:
        networks.append(KafkaNetClient(**options))
        return networks[-1]

    try:
        return make(network)
    except errors.KafkaError as error:
        # A constructor that fails leaves its network thread behind, which goes on connecting.
        for client in networks:
            client.close()
        raise unreachable(settings, [*handshake_problem(settings), *heard.reasons, reason(error)]) from error
    finally:
        log.removeFilter(heard)
