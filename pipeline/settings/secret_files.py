"""Secrets as their files hold them now: a file may be replaced while a process runs."""

from __future__ import annotations

import logging
from pathlib import Path

from pydantic import SecretStr

from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.model import RegistrySettings, SecuritySettings

_log = logging.getLogger("twinsieve")


def secret_text(
    section: SecuritySettings | RegistrySettings, name: str, where: str = "kafka.security"
) -> str | None:
    """The secret for a new client, without a line end: as its file holds it now, because it may have been
    replaced since the start. None if neither a value nor a file is set.

    If there is no file, or it is gone, cannot be read or is a pipe, it is the secret as it was at the start.

    section, name, where: `name` and `name_file` are keys of this section, which `where` names
    raises: ConfigError if the file cannot be read, and never could; the error text never contains the secret
    """
    value: SecretStr | None = getattr(section, name)
    file: str | None = getattr(section, f"{name}_file")
    known = None if value is None else value.get_secret_value()
    if file is None or (known is not None and not Path(file).is_file()):
        return known
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        problem = f"{where}.{name}_file: {file!r} cannot be read ({reason}); make it readable"
        if known is None:
            raise ConfigError([problem]) from error
        _log.warning("%s; the secret that it held at the start is used", problem)
        return known
