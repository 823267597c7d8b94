"""Why a broker cannot be reached, in one line that says what to do; the same words for both clients."""

from __future__ import annotations

from collections.abc import Sequence

from twinsieve.pipeline.broker.ports import BrokerError
from twinsieve.pipeline.settings.model import KafkaSettings

_CAUSES = (
    (
        ("authentication failed", "invalid credentials"),
        "refused user {user!r} or its password; check kafka.security.username and the password",
        False,
    ),
    (
        ("unsupported sasl", "unsupportedsasl", "not enabled in the server", "unsupported mechanism"),
        "does not offer {mechanism}; set kafka.security.mechanism to one that it offers",
        False,
    ),
    (
        # An alert is what the other side says of ours.
        ("alert certificate", "alert bad certificate", "alert unknown ca"),
        "{shown}; set kafka.security.certificate_file and key_file to one of an authority that it trusts",
        False,
    ),
    (
        ("certificate has expired", "certificate expired"),
        "its TLS certificate has expired; renew it on the broker",
        False,
    ),
    (
        (
            "hostname mismatch",
            "ip address mismatch",
            "certificate is not valid for",
            "certificate verify failed",
        ),
        "its TLS certificate is not trusted; set kafka.security.ca_file to the authority that signed it, "
        "and use the host name the certificate is for",
        False,
    ),
    (
        (
            "ssl handshake",
            "wrong version number",
            "handshake failed",
            "record layer",
            "packet length too long",
        ),
        "does not speak TLS as asked; kafka.security.protocol is {protocol}",
        False,
    ),
    (
        ("invalid frame length", "invalidreceiveerror", "incorrect security.protocol"),
        "answers in another protocol; kafka.security.protocol is {protocol}, try ssl or sasl_ssl",
        False,
    ),
    (
        ("dns", "name or service not known", "failed to resolve", "name resolution"),
        "the host name is not known; check kafka.bootstrap",
        True,
    ),
    (
        ("socket disconnected", "connection reset", "disconnected while requesting"),
        "closes the connection at {step}",
        True,
    ),
    (("refused",), "nothing listens there; start the broker or correct kafka.bootstrap", True),
)
"""First match wins, over all that was heard: what is certain comes before what may be a passing state."""


def unreachable(settings: KafkaSettings, heard: Sequence[str]) -> BrokerError:
    """The error for a broker that cannot be reached.

    heard: what the client logged or raised, in any order
    """
    where = f"broker {settings.bootstrap}"
    security = settings.security
    words = {
        "user": security.username or "",
        "mechanism": security.mechanism.upper(),
        "protocol": security.protocol,
        "shown": "does not accept our TLS certificate"
        if security.certificate_file
        else "asks for a TLS certificate",
        # A broker that refuses a login may close the connection before its answer was read.
        "step": f"login; user {security.username!r} or its password is probably wrong"
        if "sasl" in security.protocol
        else "once; check kafka.security.protocol",
    }
    low = " | ".join(heard).lower()
    for signs, said, retryable in _CAUSES:
        if any(sign in low for sign in signs):
            return BrokerError(f"{where}: {said.format(**words)}", retryable=retryable)
    last = " ".join(heard[-1].split())[:200] if heard else "no answer"
    return BrokerError(f"{where}: cannot be reached ({last}); check kafka.bootstrap", retryable=True)
