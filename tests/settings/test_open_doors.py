"""Settings that work and let strangers in, or look on: lint and each start that connects say so."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.calling import Run
from tests.logfmt import flush_log
from twinsieve.pipeline.commands.kafka.run import settings_to_connect
from twinsieve.pipeline.settings.checks import open_doors, open_pages
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import Settings


def _keys(security: dict[str, object] | None = None, listen: str = "127.0.0.1:8080") -> list[str]:
    settings = Settings.model_validate({"kafka": {"security": security or {}}, "http": {"listen": listen}})
    return [key for key, _ in open_doors(settings) + open_pages(settings)]


def test_the_defaults_are_closed() -> None:
    assert _keys() == []


@pytest.mark.parametrize(
    ("protocol", "mechanism", "warned"),
    [
        ("sasl_plaintext", "plain", True),
        ("sasl_ssl", "plain", False),
        ("sasl_plaintext", "scram-sha-512", False),
        ("plaintext", "plain", False),
    ],
)
def test_a_password_in_clear_is_told(protocol: str, mechanism: str, warned: bool) -> None:
    found = _keys({"protocol": protocol, "mechanism": mechanism, "username": "me"})
    assert found == ["kafka.security.mechanism"] * warned


@pytest.mark.parametrize(
    ("protocol", "endpoint", "warned"),
    [
        ("sasl_ssl", "https://login.example/token", []),
        ("sasl_plaintext", "https://login.example/token", ["protocol"]),
        ("sasl_ssl", "http://login.example/token", ["token_endpoint"]),
    ],
)
def test_a_token_or_its_secret_in_clear_is_told(protocol: str, endpoint: str, warned: list[str]) -> None:
    login = {"mechanism": "oauthbearer", "username": "me", "token_endpoint": endpoint}
    assert _keys({"protocol": protocol, **login}) == [f"kafka.security.{key}" for key in warned]


@pytest.mark.parametrize(("protocol", "warned"), [("ssl", True), ("sasl_ssl", True), ("plaintext", False)])
def test_host_names_that_are_not_checked_are_told(protocol: str, warned: bool) -> None:
    assert (
        _keys({"protocol": protocol, "check_hostname": "false"}) == ["kafka.security.check_hostname"] * warned
    )


@pytest.mark.parametrize(
    ("listen", "warned"),
    [
        ("0.0.0.0:8080", True),
        ("[::]:8080", True),
        ("[::1]:8080", False),
        ("localhost:1", False),
        ("none", False),
    ],
)
def test_pages_on_all_addresses_are_told(listen: str, warned: bool) -> None:
    assert _keys(listen=listen) == ["http.listen"] * warned


@pytest.mark.parametrize(
    ("mode", "warned"),
    [
        (0o600, False),
        (0o400, False),
        (0o640, True),
        (0o604, True),
        (0o620, True),
        (0o602, True),
        (0o666, True),
    ],
)
@pytest.mark.parametrize("key", ["password_file", "key_password_file", "key_file"])
def test_a_file_with_a_secret_that_others_may_use_is_told(
    tmp_path: Path, run: Run, mode: int, warned: bool, key: str
) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "secret").chmod(mode)
    settings = Settings.model_validate({"kafka": {"security": {key: str(tmp_path / "secret")}}})
    assert [found for found, _ in open_doors(settings)] == [f"kafka.security.{key}"] * warned


def test_a_file_of_another_user_may_be_read_by_the_group(tmp_path: Path, stranger: int) -> None:
    """So a process without the rights of root is given one, as by Kubernetes."""
    path = tmp_path / "secret"
    path.write_text("s3cret\n")
    settings = Settings.model_validate({"kafka": {"security": {"password_file": str(path)}}})
    os.chown(path, stranger, -1)
    for mode, count in ((0o440, 0), (0o460, 1), (0o444, 1)):
        path.chmod(mode)
        assert len(open_doors(settings)) == count


def test_a_secret_by_a_pipe_is_nobodys(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o666)
    settings = Settings.model_validate({"kafka": {"security": {"password_file": str(tmp_path / "pipe")}}})
    assert open_doors(settings) == []


@pytest.mark.parametrize("has_pages", [True, False])
def test_lint_and_run_warn_and_go_on(
    tmp_path: Path, run: Run, capfd: pytest.CaptureFixture[str], log_as_before: None, has_pages: bool
) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "secret").chmod(0o666)
    (tmp_path / "my.yaml").write_text(
        "kafka: {security: {protocol: sasl_plaintext, mechanism: plain, username: me, password_file: secret}}\n"
        "http: {listen: 0.0.0.0:8080}\n"
        "input: {topics: [a]}\n"
        "output: {topic: b}\n"
    )
    ran = run("lint", tmp_path / "my.yaml")
    warned = [line.split()[1] for line in ran.out.splitlines() if line.startswith("warning: ")]
    doors, pages = ["kafka.security.mechanism", "kafka.security.password_file"], ["http.listen"]
    assert (ran.code, warned, "s3cret" in ran.out) == (0, doors + pages, False)

    settings_to_connect(_Flags(tmp_path / "my.yaml"), has_pages=has_pages)  # type: ignore[arg-type]
    flush_log()
    said = capfd.readouterr().err
    assert [key for key in doors + pages if key in said] == doors + pages * has_pages
    assert "s3cret" not in said


@dataclass
class _Flags:
    """Settings as the command line names them."""

    path: Path

    def settings(self, *, on_files: bool) -> Settings:
        return load_settings(self.path, on_files=on_files)
