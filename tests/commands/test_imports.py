"""What a command loads: only what it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

_ROLES = ("worker", "index", "service", "kafka")
_REPORTS = ("tools", "status_pages", "pages.render", "pages.plots")


@pytest.mark.parametrize(
    ("loads", "parts", "others"),
    [
        ("from twinsieve.pipeline.commands.cli import main; main(['lint'])", _ROLES, ()),
        ("import twinsieve.pipeline.service.run", _REPORTS, ("duckdb", "jinja2", "matplotlib")),
    ],
    ids=["lint on files loads no role", "a process on Kafka loads no report"],
)
def test_a_command_loads_nothing_of(loads: str, parts: tuple[str, ...], others: tuple[str, ...]) -> None:
    told = "import sys; print(*sys.modules, sep=chr(10), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{loads}; {told}"], capture_output=True, text=True, check=True
    )
    names = (*(f"twinsieve.pipeline.{part}" for part in parts), *others)
    found = [
        line for line in done.stderr.splitlines() if any(f"{line}.".startswith(f"{name}.") for name in names)
    ]
    assert found == []
