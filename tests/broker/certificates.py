"""A throw-away certificate authority with one valid and one expired server certificate."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Certificates:
    """PEM files: the authority's certificate, and two key stores (key, certificate) signed by it."""

    authority: Path
    valid: Path
    expired: Path


def make_certificates(folder: Path) -> Certificates:
    """Certificates for localhost and 127.0.0.1, written into the folder with the openssl command."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "ca.cnf"
    config.write_text(_CA_CONFIG.format(folder=folder))
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01\n")
    authority, key = folder / "ca.pem", folder / "ca.key"
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    _openssl("req", "-x509", *new_key, "-keyout", key, "-out", authority, "-days", 30, "-subj", "/CN=test-ca")

    def signed(name: str, start: str, end: str) -> Path:
        leaf_key, request, leaf = folder / f"{name}.key", folder / f"{name}.csr", folder / f"{name}.crt"
        _openssl("req", *new_key, "-keyout", leaf_key, "-out", request, "-subj", "/CN=localhost")
        sign = ["-batch", "-notext", "-config", config, "-cert", authority, "-keyfile", key, "-in", request]
        sign += ["-out", leaf, "-startdate", start, "-enddate", end, "-extensions", "server"]
        _openssl("ca", *sign)
        store = folder / f"{name}.pem"
        store.write_text(leaf_key.read_text() + leaf.read_text())
        return store

    return Certificates(
        authority,
        valid=signed("valid", "20200101000000Z", "20490101000000Z"),
        expired=signed("expired", "20200101000000Z", "20210101000000Z"),
    )


def _openssl(*arguments: object) -> None:
    command = ["openssl", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
