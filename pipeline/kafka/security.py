"""Passwords and TLS settings, checked before a client hides what is wrong with them.

Passwords come from the environment (through the settings) or from files, and are never printed.
"""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Literal

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings, SecuritySettings

_HANDSHAKE_S = 3.0
_REFUSAL_S = 1.0


def secret_text(security: SecuritySettings, name: Literal["password", "key_password"]) -> str | None:
    """The secret itself, or None where neither a value nor a file is set; a trailing line end is cut.

    raises: ConfigError when the file cannot be read; the text never holds the secret
    """
    value, file = getattr(security, name), getattr(security, f"{name}_file")
    if value is not None:
        return str(value.get_secret_value())
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        key = f"kafka.security.{name}_file"
        raise ConfigError([f"{key}: {file!r} cannot be read ({reason}); make it readable"]) from error


def tls_context(settings: KafkaSettings) -> ssl.SSLContext:
    """A context with the settings' certificates.

    raises: ConfigError for a file that cannot be used; both clients report one only as a failed connection
    """
    security = settings.security
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
        context.check_hostname = security.check_hostname
        # From Python 3.13 on, the default refuses an authority whose certificate lacks an extension, as those
        # made with `openssl req -x509` do. No other Kafka client does, librdkafka included.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if security.certificate_file is not None:
            password = secret_text(security, "key_password") or ""
            context.load_cert_chain(security.certificate_file, security.key_file, password)
    except (OSError, ssl.SSLError) as error:
        named = security.ca_file, security.certificate_file, security.key_file
        files = ", ".join(name for name in named if name)
        raise ConfigError([f"kafka.security: {files}: {error.strerror or error}; give PEM files"]) from error
    return context


def handshake_problem(settings: KafkaSettings) -> list[str]:
    """What OpenSSL says of the first broker that answers, or that it speaks TLS where none is asked for.

    A client may say only that the connection was lost: of a certificate of ours that the broker refuses, and
    of a TLS port that is spoken to in plain text.
    """
    wants_tls = "ssl" in settings.security.protocol
    context = tls_context(settings) if wants_tls else _unverified()
    for address in settings.bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            with (
                socket.create_connection((host.strip("[]"), int(port)), _HANDSHAKE_S) as plain,
                context.wrap_socket(plain, server_hostname=host.strip("[]")) as tls,
            ):
                if not wants_tls:
                    return ["incorrect security.protocol: it speaks TLS"]
                # From TLS 1.3 on a server refuses our certificate, or the lack of one, after the handshake.
                tls.settimeout(_REFUSAL_S)
                tls.recv(1)
                return []
        except ssl.SSLError as error:
            return [str(error)] if wants_tls else []
        except (OSError, ValueError):
            continue
    return []


def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
