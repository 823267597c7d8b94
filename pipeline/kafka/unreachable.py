"""The error for a broker that cannot be reached: one line with the cause and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from twinsieve.pipeline.broker.records import BrokerError, FatalError
from twinsieve.pipeline.settings.model import KafkaSettings, SecuritySettings

_OF_PASSWORDS = "user {user} or its password; check kafka.security.username and the password"
_OF_TOKENS = (
    "the token of {user}; check kafka.security.token_scope, and which issuer and audience the broker expects"
)
_OF_AWS = "the role of this machine; check that it may do kafka-cluster:Connect there"
# Each key is a regular expression that is searched in all reports of the client; the first match wins.
_REPLACED = {
    "authentication failed|authenticationfailed|invalid credentials": "refused {login}",
    # A TLS "alert" comes from the broker, so it is about our certificate.
    "alert certificate|alert bad certificate|alert unknown ca": (
        "{shown}; set kafka.security.certificate_file and key_file to one of an authority that it trusts"
    ),
    "certificate has expired|certificate expired": "its TLS certificate has expired; renew it on the broker",
    "hostname mismatch|ip address mismatch|certificate is not valid for|certificate verify failed": (
        "its TLS certificate is not trusted; set kafka.security.ca_file to the authority that signed it, "
        "and use the host name the certificate is for"
    ),
}
"""Secrets and certificates: somebody may replace them while the process runs."""
# These do not go away by waiting, those in _MAY_PASS may.
_CERTAIN = _REPLACED | {
    "unsupported sasl|unsupportedsasl|not enabled in the server|unsupported mechanism": (
        "does not offer {mechanism}; set kafka.security.mechanism to one that it offers"
    ),
    "wrong version number|handshake failed|record layer|packet length too long": (
        "the TLS handshake fails; kafka.security.protocol is {protocol}, check that this port speaks TLS"
    ),
    r"invalid frame length|invalidreceiveerror|incorrect security\.protocol": (
        "answers in another protocol; kafka.security.protocol is {protocol}, try ssl or sasl_ssl"
    ),
}
_CLOSED = "socket disconnected|connection reset"
_MAY_PASS = {
    "dns|name or service not known|name resolution": ("the host name is not known; check kafka.bootstrap"),
    _CLOSED: "closes the connection at {step}",
    "refused": "nothing listens there; start the broker or correct kafka.bootstrap",
}


def _login(security: SecuritySettings) -> str:
    """What a broker refuses if it refuses a login."""
    if security.aws_region is not None:
        return _OF_AWS
    return _OF_TOKENS if security.mechanism == "oauthbearer" else _OF_PASSWORDS


def unreachable(settings: KafkaSettings, reports: Sequence[str]) -> BrokerError:
    """The error for a broker that cannot be reached.

    reports: what the client logged or raised, in any order
    """
    where = f"broker {settings.bootstrap}"
    security = settings.security
    user = repr(security.username)
    words = {
        "mechanism": security.mechanism.upper(),
        "protocol": security.protocol,
        "login": _login(security).format(user=user),
        "shown": "does not accept our TLS certificate"
        if security.certificate_file
        else "asks for a TLS certificate",
        # A broker that refuses a login may close the connection before the client has read the refusal.
        "step": f"login; user {user} or its password is probably wrong"
        if "sasl" in security.protocol
        else "once; check kafka.security.protocol",
    }
    signs = _signs_in(reports)
    if signs is not None:
        advice = (_CERTAIN | _MAY_PASS)[signs]
        if signs in _REPLACED:
            return FatalError(f"{where}: {advice.format(**words)}", denied=True)
        return BrokerError(f"{where}: {advice.format(**words)}", retryable=signs in _MAY_PASS)
    last = " ".join(reports[-1].split())[:200] if reports else "no answer"
    return BrokerError(f"{where}: cannot be reached ({last}); check kafka.bootstrap", retryable=True)


def is_refused(report: str) -> bool:
    """Whether a client says that a login or a certificate is refused, which somebody may replace."""
    return _signs_in([report]) in _REPLACED


def is_plain(reports: Sequence[str]) -> bool:
    """Whether these reports name a cause that a few more seconds seldom remove. A broker that is starting may
    close connections for a while, so a closed connection does not count."""
    return _signs_in(reports) not in (None, _CLOSED)


def _signs_in(reports: Sequence[str]) -> str | None:
    low = " | ".join(reports).lower()
    return next((signs for signs in _CERTAIN | _MAY_PASS if re.search(signs, low)), None)
