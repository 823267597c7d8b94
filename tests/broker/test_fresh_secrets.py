"""Secrets for new clients, read from files that are replaced meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import SecuritySettings
from twinsieve.pipeline.settings.secret_files import secret_text


def _security(file: Path | None, known: str | None = "old") -> SecuritySettings:
    return SecuritySettings(
        password=None if known is None else SecretStr(known),
        password_file=None if file is None else str(file),
    )


def test_it_is_what_the_file_has_now(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("new\n", "utf-8")
    assert secret_text(_security(file), "password") == "new"
    assert secret_text(_security(file, known=None), "password") == "new"
    assert secret_text(_security(None), "password") == "old"


def test_a_variable_counts_before_the_file_for_clients_too(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("kafka: {security: {protocol: sasl_ssl, username: me, password_file: password}}")
    (tmp_path / "password").write_text("of the file", "utf-8")
    variable = {"TWINSIEVE_KAFKA__SECURITY__PASSWORD": "of the variable"}
    assert secret_text(load_settings(file, variable).kafka.security, "password") == "of the variable"
    security = load_settings(file).kafka.security
    (tmp_path / "password").write_text("replaced", "utf-8")
    assert secret_text(security, "password") == "replaced"


def test_a_file_that_is_gone_or_a_pipe_leaves_what_is_known(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for file in (tmp_path / "none", tmp_path, pipe):
        assert secret_text(_security(file), "password") == "old"


def test_a_file_that_cannot_be_read_leaves_what_is_known_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"\xff\xfehunter2")
    assert secret_text(_security(file), "password") == "old"
    assert "not UTF-8" in caplog.text
    assert "hunter2" not in caplog.text
    with pytest.raises(ConfigError, match=r"kafka\.security\.password_file"):
        secret_text(_security(file, known=None), "password")
