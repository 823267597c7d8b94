"""The extra `reports`: packages of pages, plots and `audit`."""

from __future__ import annotations

from importlib.util import find_spec

from twinsieve.stages.errors import UsageError

_PACKAGES = ("duckdb", "jinja2", "matplotlib")


def require_reports(asker: str) -> None:
    """Refuse to begin without the extra `reports`. asker: the command or setting that needs it

    raises: UsageError, which says what to install
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{asker} needs {', '.join(missing)}: pip install {' '.join(missing)}, or in a checkout "
            "pip install '.[reports]'"
        )
