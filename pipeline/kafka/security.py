"""TLS settings, checked here because the client library hides what is wrong with them."""

from __future__ import annotations

import socket
import ssl

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import KafkaSettings
from twinsieve.pipeline.settings.secret_files import secret_text

_HANDSHAKE_S = 3.0
_REFUSAL_S = 1.0


def tls_context(settings: KafkaSettings) -> ssl.SSLContext:
    """A TLS context with the certificates of the settings.

    raises: ConfigError for a file that cannot be used; the client library would report only a failed
        connection
    """
    security = settings.security
    try:
        context = ssl.create_default_context(cafile=security.ca_file)
        context.check_hostname = security.check_hostname
        # From Python 3.13 on, the default refuses an authority whose certificate lacks an extension, and
        # certificates made with `openssl req -x509` lack it. No other Kafka client refuses them.
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
    """OpenSSL's error from a TLS handshake with the first bootstrap address that answers, or nothing.

    If the settings do not ask for TLS, the result says instead whether the broker speaks TLS.
    The client library may report only a lost connection in two cases: the broker refuses our certificate, or
    the client speaks plain text to a TLS port. This handshake finds the cause.

    returns: one text, or an empty list if no problem was found or no address answers
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
                # With TLS 1.3 the server checks our certificate only after the handshake, so the refusal of a
                # wrong or missing certificate arrives with the first read.
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
