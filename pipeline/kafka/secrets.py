"""Passwords for the broker: from the environment (through the settings) or from files, never printed."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from twinsieve.pipeline.settings import ConfigError


def secret_text(key: str, value: SecretStr | None, file: str | None) -> str | None:
    """The secret itself, or None where neither a value nor a file is set; a trailing line end is cut.

    key: the setting's name, for the error
    raises: ConfigError when the file cannot be read; the text never holds the secret
    """
    if value is not None:
        return value.get_secret_value()
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError([f"{key}_file: {file!r} cannot be read ({reason}); make it readable"]) from error
