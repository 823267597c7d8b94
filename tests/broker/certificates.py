"""A throw-away certificate authority: a valid and an expired server certificate, and one of a client."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.broker.distribution import need

KEY_PASSWORD = "key-secret"
"""Of the client's key."""

_CA_CONFIG = """[ca]
default_ca = own
[own]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[server]
subjectAltName = DNS:localhost, IP:127.0.0.1
"""
_VALID = "20200101000000Z", "20490101000000Z"


@dataclass(frozen=True)
class Certificates:
    """PEM files: the authority's certificate, and key stores (key, certificate).

    valid, expired: of a server, signed by the authority
    client: of a client named `client`, signed by it; its key is encrypted with KEY_PASSWORD
    stranger: of a client of the same name, signed by itself
    """

    authority: Path
    valid: Path
    expired: Path
    client: Path
    stranger: Path


def need_openssl() -> None:
    """Install the openssl command where it is missing. raises: NoBrokerError where that cannot be done"""
    need("openssl", "openssl", "OpenSSL")


def make_certificates(folder: Path, issuer: str = "test-ca") -> Certificates:
    """Certificates for localhost and 127.0.0.1, written into the folder with the openssl command.

    issuer: name of the authority; a client that trusts another one of the same name shows that one's certificate too

    raises: NoBrokerError where that is missing
    """
    need_openssl()
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "ca.cnf"
    config.write_text(_CA_CONFIG.format(folder=folder))
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01\n")
    authority, key = folder / "ca.pem", folder / "ca.key"
    authority_key = ["-newkey", "rsa:2048", "-nodes", "-keyout", key]
    _openssl("req", "-x509", *authority_key, "-out", authority, "-days", 30, "-subj", f"/CN={issuer}")

    def signed(name: str, subject: str, start: str, end: str, password: str = "") -> Path:
        leaf_key, request, leaf = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.crt"
        hidden = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        new_key = ["-newkey", "rsa:2048", *hidden, "-keyout", leaf_key]
        _openssl("req", *new_key, "-out", request, "-subj", f"/CN={subject}")
        sign = ["-batch", "-notext", "-config", config, "-cert", authority, "-keyfile", key, "-in", request]
        sign += ["-out", leaf, "-startdate", start, "-enddate", end]
        _openssl("ca", *sign, *(["-extensions", "server"] if subject == "localhost" else []))
        return _stored(folder / f"{name}.pem", leaf_key, leaf)

    own_key, own = folder / "stranger.key", folder / "stranger.crt"
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", own_key, "-out", own),
        *("-days", 30, "-subj", "/CN=client"),
    )
    return Certificates(
        authority,
        valid=signed("valid", "localhost", *_VALID),
        expired=signed("expired", "localhost", "20200101000000Z", "20210101000000Z"),
        client=signed("client", "client", *_VALID, KEY_PASSWORD),
        stranger=_stored(folder / "stranger.pem", own_key, own),
    )


def _stored(store: Path, key: Path, certificate: Path) -> Path:
    store.write_text(key.read_text() + certificate.read_text())
    return store


def _openssl(*arguments: object) -> None:
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
