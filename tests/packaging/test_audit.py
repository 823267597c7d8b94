"""The real pip-audit, asked by the release, before a server that plays PyPI: it passes what is known to be well, and
nothing else.

pip-audit has PyPI's address in its code, so it is led here by HTTPS_PROXY, and trusts the server by REQUESTS_CA_BUNDLE.
Source: https://docs.pypi.org/api/json (`vulnerabilities` of a version)
"""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.dist import tools_of
from scripts.release import TOOLS, audit

pytestmark = pytest.mark.needs("pip-audit")
_WEAK = {"id": "PYSEC-2030-1", "aliases": ["CVE-2030-1"], "fixed_in": ["2.0"], "summary": "it forgets"}
_PYPI = {
    "/pypi/well/1.0/json": [],
    "/pypi/weak/1.0/json": [_WEAK],
    "/pypi/withdrawn/1.0/json": [_WEAK | {"withdrawn": "2030-01-31T00:00:00Z"}],
}


class _Answers(BaseHTTPRequestHandler):
    tls: ssl.SSLContext

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.connection = self.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)  # type: ignore[assignment]
        self.close_connection = False

    def do_GET(self) -> None:
        known = _PYPI.get(self.path)
        self.send_response(404 if known is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"info": {}, "vulnerabilities": known}).encode())

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def pypi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-keyout", str(key)]
    command += ["-out", str(certificate), "-subj", "/CN=pypi.org", "-addext", "subjectAltName=DNS:pypi.org"]
    subprocess.run(command, check=True, capture_output=True)
    _Answers.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _Answers.tls.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever).start()
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield
        server.shutdown()


def _audit(folder: Path, *names: str) -> dict[str, list[str]]:
    """Ids of weak points by package. raises: SystemExit as the release does"""
    text = "".join(f"{name}==1.0 --hash=sha256:{'0' * 64}\n" for name in names)
    tool = tools_of("release", *TOOLS) / "pip-audit"
    audit(tool, [text], folder / "it", "--cache-dir", str(folder / "cache"))
    return _reported(folder)


def _reported(folder: Path) -> dict[str, list[str]]:
    found = json.loads((folder / "it.audit.json").read_text("utf-8"))["dependencies"]
    return {each["name"]: [weak["id"] for weak in each["vulns"]] for each in found}


@pytest.mark.usefixtures("pypi")
def test_packages_that_are_known_to_be_well_pass(tmp_path: Path) -> None:
    assert _audit(tmp_path, "well", "withdrawn") == {"well": [], "withdrawn": []}


@pytest.mark.usefixtures("pypi")
def test_a_known_weak_point_ends_the_release_and_stands_in_the_report(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="Found 1 known vulnerability in 1 package"):
        _audit(tmp_path, "well", "weak")
    assert _reported(tmp_path) == {"well": [], "weak": ["PYSEC-2030-1"]}


@pytest.mark.usefixtures("pypi")
def test_a_package_that_the_service_does_not_know_ends_the_release(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"stranger: .*could not be audited"):
        _audit(tmp_path, "well", "stranger")


def test_no_service_ends_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with pytest.raises(SystemExit, match="exit code 1"):
        _audit(tmp_path, "well")
