"""Settings in librdkafka's words, and its errors in ours."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from twinsieve.pipeline.kafka.errors import REFUSED_TIME, ErrorRules, Meaning
from twinsieve.pipeline.kafka.security import secret_text, tls_context
from twinsieve.pipeline.settings.model import KafkaSettings

_log = logging.getLogger(__name__)
_EVERY_S = 5.0
_FENCED_PRODUCER = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
_MOVED_ON = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.REBALANCE_IN_PROGRESS)
_NOT_ALLOWED = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,
)


class ClientEvents:
    """What librdkafka reports beside the calls: connection errors, and the fatal one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._logged_s = -_EVERY_S
        self.fatal: KafkaError | None = None

    def options(self) -> dict[str, Any]:
        """What a client needs to report here."""
        # Without a logger librdkafka writes to stderr by itself, in lines that are not ours.
        logger = logging.Logger("librdkafka")
        logger.addHandler(logging.NullHandler())
        return {"error_cb": self, "logger": logger}

    def __call__(self, error: KafkaError) -> None:
        with self._lock:
            if error.fatal():
                self.fatal = error
            # librdkafka reports every failed connection; one line every few seconds is enough.
            now = time.monotonic()
            quiet = now - self._logged_s < _EVERY_S
            if not quiet:
                self._logged_s = now
        if not quiet:
            _log.warning("%s", error.str())


def common_options(settings: KafkaSettings, client_id: str) -> dict[str, Any]:
    """Options that consumer and producer share.

    raises: ConfigError for a secret or certificate file that cannot be used
    """
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap.servers": settings.bootstrap,
        "client.id": client_id,
        "security.protocol": security.protocol,
        # A broker that is back is found within this time; each try costs it next to nothing.
        # Half of this also parts the connections of a new client, one of which it needs for every answer.
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 300,
        # When every broker is away librdkafka 2.16 would forget them all and begin again from the bootstrap
        # addresses. It is back half a second later then, and a transaction never: it waits for its old
        # coordinator, whose thread has ended (librdkafka issue 5511). Names are looked up again all the same.
        "metadata.recovery.strategy": "none",
        # A call that waits for the broker may overrun its own limit by this much.
        "socket.timeout.ms": min(30_000, settings.request_timeout_ms),
        "log.connection.close": False,
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
        options["sasl.username"] = security.username or ""
        options["sasl.password"] = secret_text(security, "password") or ""
    return options


def cause(error: Exception) -> KafkaError | None:
    """The KafkaError inside an exception of confluent-kafka."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, KafkaError) else None


def code_of(error: Exception) -> int | None:
    """The code of that KafkaError."""
    inner = cause(error)
    return None if inner is None else inner.code()


def reason(error: Exception) -> str:
    """One line that says what librdkafka ran into."""
    inner = cause(error)
    if inner is not None and inner.code() == KafkaError.INVALID_TIMESTAMP:
        return REFUSED_TIME
    text = " ".join((inner.str() if inner is not None else str(error)).split())
    return f"{inner.name()}: {text}"[:300] if inner is not None else text[:300]


def may_be_fenced(error: Exception) -> bool:
    """True where Kafka says that this producer's epoch is over, or only "fatal", as it does for each call
    after the first report."""
    return code_of(error) in (*_FENCED_PRODUCER, KafkaError._FATAL)


def _meaning(error: Exception) -> Meaning:
    inner = cause(error)
    if inner is None:
        return Meaning.FAILED
    # A fenced consumer gets _FATAL as a message, with the real code in its text alone.
    displaced = inner.code() == KafkaError._FATAL and "group.instance.id" in inner.str()
    if displaced or inner.code() == KafkaError.FENCED_INSTANCE_ID:
        return Meaning.MEMBER_FENCED
    if inner.code() in _NOT_ALLOWED:
        return Meaning.DENIED
    if inner.code() in _FENCED_PRODUCER:
        return Meaning.EPOCH_OVER
    if inner.fatal() or inner.code() == KafkaError._FATAL:
        return Meaning.FINISHED
    if inner.code() in _MOVED_ON:
        return Meaning.MOVED_ON
    return Meaning.FAILED


def _too_large(error: Exception) -> bool:
    return code_of(error) in (KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE)


ERRORS = ErrorRules((KafkaException,), reason, _meaning, may_be_fenced, _too_large)
