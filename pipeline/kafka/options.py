"""Our settings as options of kafka-python, and a client that is connected with them."""

from __future__ import annotations

import importlib.util
import logging
import selectors
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from kafka import errors
from kafka.net.compat import KafkaNetClient

from twinsieve.pipeline.kafka.deadline import METADATA_S
from twinsieve.pipeline.kafka.errors import reason
from twinsieve.pipeline.kafka.log_filters import ConnectionFailures, quieten
from twinsieve.pipeline.kafka.patches import check_batches, network_thread, require_version
from twinsieve.pipeline.kafka.security import handshake_problem, tls_context
from twinsieve.pipeline.kafka.tokens import TokenProvider, token_source
from twinsieve.pipeline.kafka.unreachable import is_plain, unreachable
from twinsieve.pipeline.settings.client_options import library_options
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.settings.secret_files import secret_text

_REQUEST_TIMEOUT_MS = 30_000
_FIRST_TRY_MS = 2_000
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def common_options(settings: KafkaSettings, client_id: str, connect_timeout_s: float) -> dict[str, Any]:
    """Options that consumers, producers and admin clients share.

    raises: ConfigError for a secret or certificate file that cannot be used, and for a version of
        kafka-python that is refused by `require_version` or `check_batches`
    """
    require_version()
    check_batches()
    quieten()
    security = settings.security
    options: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap.split(","),
        "client_id": client_id,
        "request_timeout_ms": min(_REQUEST_TIMEOUT_MS, settings.request_timeout_ms),
        "bootstrap_timeout_ms": int(connect_timeout_s * 1000),
        # With the default of 30 s a client could need that long to reconnect to a broker that is back.
        "reconnect_backoff_max_ms": 1000,
        "metadata_max_age_ms": int(METADATA_S * 1000),
        "selector": Selector,
        "security_protocol": security.protocol.upper(),
    }
    if "ssl" in security.protocol:
        options["ssl_context"] = tls_context(settings)
        options["ssl_check_hostname"] = security.check_hostname
    if "sasl" in security.protocol:
        options["sasl_mechanism"] = security.mechanism.upper()
        if security.mechanism == "oauthbearer":
            options["sasl_oauth_token_provider"] = TokenProvider(token_source(security))
        else:
            options["sasl_plain_username"] = security.username
            options["sasl_plain_password"] = secret_text(security, "password")
    return options | library_options(settings)


class Selector(selectors.DefaultSelector):
    """The usual selector, which says at once that a socket is not registered.

    kafka-python asks for each socket before it registers it, for each of its waits. Python's own answer
    describes the socket twice, with four system calls.
    """

    def __init__(self) -> None:
        super().__init__()
        self._registered: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._registered[fileobj] = super().register(fileobj, events, data)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = self._registered[fileobj] = super().modify(fileobj, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        self._registered.pop(fileobj, None)
        return super().unregister(fileobj)

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._registered[fileobj]


def warn_without_crc32c() -> None:
    """Log a warning if kafka-python computes its checksums in Python (measured: half of its speed)."""
    if importlib.util.find_spec("crc32c") is None:
        _log.warning("crc32c is not installed, so kafka-python runs at half speed; pip install crc32c")


def connected(settings: KafkaSettings, make: Callable[..., _T], **options: Any) -> _T:
    """The client that `make` builds with these options; it has reached a broker.

    While it connects, kafka-python's lines do not reach the log: the error has their cause. If every address
    fails within _FIRST_TRY_MS and the cause is plain, there is no second try.

    raises: BrokerError in one line: unreachable, wrong password, certificate not accepted
    """
    networks: list[KafkaNetClient] = []
    caller = threading.get_ident()

    def network(**client_options: Any) -> KafkaNetClient:
        networks.append(KafkaNetClient(**client_options))
        return networks[-1]

    def threads() -> set[int | None]:
        return {caller, *map(network_thread, networks)}

    addresses, limit_ms = options["bootstrap_servers"], options["bootstrap_timeout_ms"]
    first_ms = min(_FIRST_TRY_MS, limit_ms)
    failures = ConnectionFailures(threads)
    with failures.collecting():
        for timeout_ms in (first_ms, limit_ms - first_ms):
            try:
                return make(**{**options, "kafka_client": network, "bootstrap_timeout_ms": timeout_ms})
            except errors.KafkaError as error:
                # If a constructor fails, its network thread continues to run and to connect, so close it.
                for client in networks:
                    client.close()
                reports = [*handshake_problem(settings), *failures.reasons, reason(error)]
                refusal = unreachable(settings, reports)
                refusal.__cause__ = error
            if is_plain(reports) and len(failures.failed_addresses) >= len(addresses):
                break
    raise refusal
