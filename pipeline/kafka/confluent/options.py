"""Translates our settings into options of librdkafka, and its errors into those of `broker.records`."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from twinsieve.pipeline.kafka.deadline import METADATA_S
from twinsieve.pipeline.kafka.errors import REFUSED_TIME, ErrorRules, Meaning
from twinsieve.pipeline.kafka.security import tls_context
from twinsieve.pipeline.kafka.tokens import token_callback, token_source
from twinsieve.pipeline.settings.client_options import librdkafka_options
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.settings.secret_files import secret_text

_log = logging.getLogger(__name__)
_EVERY_S = 5.0
_NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token"
"""The endpoint of tokens is away. No broker has refused anything, so a start waits as well."""
_LOCAL = "Local: "
"""The start of an error of librdkafka itself, inside the text of another error."""
_FENCED_PRODUCER = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
_MOVED_ON = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)
_REFUSED_RECORD = (
    KafkaError.INVALID_RECORD,
    KafkaError.INVALID_TIMESTAMP,
    # Another message of its batch was refused.
    KafkaError._INVALID_DIFFERENT_RECORD,
)
_NOT_ALLOWED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
)


class ClientEvents:
    """Receives the errors that librdkafka reports by callback instead of raising them: lost connections, and
    the fatal error of a client, which is kept in `fatal`. A refused login is one, because only a new client
    reads the secret again; a login during which the connection was lost is tried again by librdkafka."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged_s = -_EVERY_S
        self.fatal: KafkaError | None = None

    def options(self) -> dict[str, Any]:
        """Options that make a client report its errors to this object."""
        # Without a logger librdkafka writes to stderr itself, in a format of its own.
        logger = logging.Logger("librdkafka")
        logger.addHandler(logging.NullHandler())
        return {"error_cb": self, "logger": logger}

    def __call__(self, error: KafkaError) -> None:
        with self._lock:
            refused = error.code() == KafkaError._AUTHENTICATION and not _lost_during_login(error)
            if error.fatal() or refused:
                self.fatal = error
            # librdkafka reports every failed connection; one line every few seconds is enough.
            now = time.monotonic()
            quiet = now - self._logged_s < _EVERY_S
            if not quiet:
                self._logged_s = now
        if not quiet:
            _log.warning("%s", error.str())


def common_options(settings: KafkaSettings, client_id: str) -> dict[str, Any]:
    """Options that consumers and producers share.

    raises: ConfigError for a secret or certificate file that cannot be used
    """
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap,
        "client.id": client_id,
        "security.protocol": security.protocol,
        # The maximum is short, so that a client reconnects soon after a broker is back. An attempt costs the
        # broker little. The first pause is short, because a new client needs several connections and
        # waits for half of this pause before it opens the next one.
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 300,
        # By default, when no broker is reachable, librdkafka 2.16 drops its list of brokers and starts again
        # from the bootstrap addresses. It then reconnects half a second later, and an open transaction never
        # continues: it waits for its old coordinator, whose thread has ended (librdkafka issue 5511). With
        # "none" host names are still resolved again.
        "metadata.recovery.strategy": "none",
        # A call that waits for the broker may overrun its own limit by this much.
        "socket.timeout.ms": min(30_000, settings.request_timeout_ms),
        "log.connection.close": False,
        "topic.metadata.refresh.interval.ms": int(METADATA_S * 1000),
    }
    if "ssl" in security.protocol:
        tls_context(settings)
        if security.ca_file is not None:
            options["ssl.ca.location"] = security.ca_file
        if security.certificate_file is not None:
            options["ssl.certificate.location"] = security.certificate_file
            options["ssl.key.location"] = security.key_file or security.certificate_file
            password = secret_text(security, "key_password")
            if password is not None:
                options["ssl.key.password"] = password
        if not security.check_hostname:
            options["ssl.endpoint.identification.algorithm"] = "none"
    if "sasl" in security.protocol:
        options["sasl.mechanism"] = security.mechanism.upper()
        if security.mechanism == "oauthbearer":
            options["oauth_cb"] = token_callback(token_source(security))
        else:
            options["sasl.username"] = security.username or ""
            options["sasl.password"] = secret_text(security, "password") or ""
    return options | librdkafka_options(settings)


def cause(error: Exception) -> KafkaError | None:
    """The KafkaError inside an exception of confluent-kafka."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, KafkaError) else None


def code_of(error: Exception) -> int | None:
    """The error code of the KafkaError inside an exception, None without one."""
    inner = cause(error)
    return None if inner is None else inner.code()


def reason(error: Exception) -> str:
    """One line that describes an error of confluent-kafka."""
    inner = cause(error)
    if inner is not None and inner.code() == KafkaError.INVALID_TIMESTAMP:
        return REFUSED_TIME
    text = " ".join((inner.str() if inner is not None else str(error)).split())
    return f"{inner.name()}: {text}"[:300] if inner is not None else text[:300]


def may_be_fenced(error: Exception) -> bool:
    """Whether the error means that a newer producer has this one's transactional id, or may mean it.

    After the first report every call fails with just "fatal", so that code counts too.
    """
    return code_of(error) in (*_FENCED_PRODUCER, KafkaError._FATAL)


def _meaning(error: Exception) -> Meaning:
    inner = cause(error)
    if inner is None:
        return Meaning.FAILED
    # A fenced consumer gets the code _FATAL; only the error text says that it was fenced.
    displaced = inner.code() == KafkaError._FATAL and "group.instance.id" in inner.str()
    if displaced or inner.code() == KafkaError.FENCED_INSTANCE_ID:
        return Meaning.MEMBER_FENCED
    if inner.code() == KafkaError._AUTHENTICATION and _NO_TOKEN in inner.str():
        return Meaning.FINISHED
    if _lost_during_login(inner):
        return Meaning.FAILED
    if inner.code() in _NOT_ALLOWED:
        return Meaning.DENIED
    if inner.code() in _FENCED_PRODUCER:
        return Meaning.EPOCH_OVER
    if inner.fatal() or inner.code() == KafkaError._FATAL:
        return Meaning.FINISHED
    if inner.code() in _MOVED_ON:
        return Meaning.MOVED_ON
    if _too_large(error) or inner.code() in _REFUSED_RECORD:
        return Meaning.REFUSED_RECORD
    return Meaning.FAILED


def _lost_during_login(error: KafkaError) -> bool:
    """Whether the connection was lost during a login: librdkafka gives that the code of a refused login.
    A broker that is held up loses many."""
    return error.code() == KafkaError._AUTHENTICATION and _LOCAL in error.str()


def _too_large(error: Exception) -> bool:
    return code_of(error) in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)


ERRORS = ErrorRules((KafkaException,), reason, _meaning, may_be_fenced, _too_large)
