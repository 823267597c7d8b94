"""The unit of systemd names options, paths, times, codes and a limit that are those of the program."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from twinsieve.pipeline.commands.cli import cli
from twinsieve.pipeline.commands.kafka import logs
from twinsieve.pipeline.service.stop_limits import stop_s
from twinsieve.pipeline.settings import ConfigError
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by

_UNIT = "deploy/systemd/twinsieve@.service"
_MAX_EXPOSURE = 1.5
"""Of 10, in the words of systemd-analyze."""


@pytest.fixture
def text(root: Path) -> str:
    """The unit as systemd reads it for the process `a`."""
    return (root / _UNIT).read_text("utf-8").replace("%i", "a").replace("%S", "/var/lib")


@pytest.fixture
def unit(text: str) -> Mapping[str, str]:
    """Its settings; of a setting with several lines the last."""
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_command_is_one_of_the_program(text: str) -> None:
    (command,) = re.findall(r"^ExecStart=/opt/twinsieve/bin/twinsieve (.*)$", text, re.MULTILINE)
    (arguments,) = re.findall(r'^Environment="ARGUMENTS=(.*)"$', text, re.MULTILINE)
    words = command.replace("$ARGUMENTS", arguments).split()
    words[words.index("-c") + 1] = "/no/such/file.yaml"
    result = CliRunner().invoke(cli, words)
    assert "/no/such/file.yaml" in f"{result.exception} {result.output}"


def test_only_codes_that_ask_for_somebody_end_the_restarts(unit: Mapping[str, str]) -> None:
    never = {int(code) for code in unit["RestartPreventExitStatus"].split()}
    assert never == {ConfigError.exit_code, logs.NEEDS_SOMEBODY}
    assert (unit["Restart"], unit["StartLimitIntervalSec"]) == ("always", "0")


def test_the_last_snapshot_has_its_time(unit: Mapping[str, str]) -> None:
    assert int(unit["TimeoutStopSec"]) >= stop_s(Settings())


def test_the_limit_of_memory_holds_what_lint_counts(root: Path, unit: Mapping[str, str]) -> None:
    least = held_by(load_settings(root / "config/kafka.yaml"), partitions=4).limit
    assert least <= int(unit["MemoryMax"].removesuffix("G")) << 30 <= 2 * least


def test_the_state_lies_where_the_unit_may_write(text: str, unit: Mapping[str, str]) -> None:
    assert f"state.dir=/var/lib/{unit['StateDirectory']}" in text
    assert f"NUMBA_CACHE_DIR=/var/cache/{unit['CacheDirectory']}" in text


@pytest.mark.needs("systemd")
def test_systemd_finds_no_fault_and_little_exposure(root: Path, tmp_path: Path) -> None:
    """The program need not be where the unit has it."""
    file = tmp_path / "twinsieve@.service"
    file.write_text((root / _UNIT).read_text("utf-8").replace("/opt/twinsieve/bin/twinsieve", "/bin/true"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    told = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    (exposure,) = re.findall(r"Overall exposure level for \S+: ([\d.]+)", told.stdout)
    assert float(exposure) <= _MAX_EXPOSURE
