"""What a test needs and cannot get leaves the test out, and the last line of the run says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accuracy.data_sets import missing_files
from tests.needs import NEEDS, LeftOut, last_line, needs_of

_MEASURED = (
    "tests/stages/fingerprint/test_accuracy.py::test_weak_bits_are_the_ones_an_edit_flips_in_real_posts"
)
_OTHER = "tests/house/test_surface.py"
_BROKER = "tests/broker/test_topics.py"
_NO_DATA = "1 test on real posts left out: TWINSIEVE_DATA is not set"


def run_tests(root: Path, *arguments: str, **setting: str) -> tuple[int, list[str]]:
    """Exit code and lines of a run of tests in a process of its own, with these variables besides the usual ones."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CI", "TWINSIEVE_", "PYTEST_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=root,
        env=kept | setting,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def commands(folder: Path, **scripts: str) -> str:
    """A folder with these shell scripts alone, for PATH."""
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize("processes", [["-p", "no:xdist"], ["-n", "2"]])
def test_without_data_the_last_line_counts_what_was_left_out_and_the_rest_passes(
    root: Path, processes: list[str]
) -> None:
    code, lines = run_tests(root, *processes, _MEASURED, _OTHER)
    assert code == 0, lines
    assert lines[-1] == _NO_DATA
    assert "passed" in lines[-2]
    assert "skipped" not in "".join(lines)


def test_whoever_requires_all_is_told_what_to_set(root: Path) -> None:
    code, lines = run_tests(root, "-p", "no:xdist", _MEASURED, _OTHER, TWINSIEVE_REQUIRE_ALL="1")
    assert code == pytest.ExitCode.USAGE_ERROR, lines
    assert "ERROR: TWINSIEVE_REQUIRE_ALL is set, and not every test can run here:" in lines
    assert f"  {_NO_DATA}; set TWINSIEVE_DATA to their folder" in lines
    assert "passed" not in "".join(lines)


def test_a_folder_without_the_posts_is_an_error(root: Path, tmp_path: Path) -> None:
    (tmp_path / missing_files(tmp_path)[0]).touch()
    code, lines = run_tests(root, "-n", "2", _MEASURED, _OTHER, TWINSIEVE_DATA=str(tmp_path))
    assert code == pytest.ExitCode.USAGE_ERROR, lines
    first, *others = missing_files(tmp_path)
    (said,) = [line for line in lines if line.startswith("ERROR")]
    assert f"TWINSIEVE_DATA is {tmp_path}, where {first} is missing, and {len(others)} more" in said
    assert "passed" not in "".join(lines)


def test_only_who_asks_is_left_out(root: Path) -> None:
    code, lines = run_tests(
        root, "-p", "no:xdist", _OTHER, TWINSIEVE_REQUIRE_ALL="1", TWINSIEVE_DATA="/nowhere"
    )
    assert code == 0, lines
    assert lines[-1] == last_line([])


def test_without_java_the_memory_variants_run_and_the_others_are_left_out(root: Path, tmp_path: Path) -> None:
    """Neither Java nor anything to install it with is on the path."""
    setting = {"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    code, lines = run_tests(root, "-p", "no:xdist", _BROKER, **setting)
    assert code == 0, lines
    assert re.fullmatch(
        r"\d+ tests on a real Kafka left out: Java 17 or newer is not installed, and cannot be installed here "
        r"\((not root|no apt-get)\)",
        lines[-1],
    )
    assert re.match(r"[1-9]\d* passed, [1-9]\d* deselected", lines[-2])
    code, lines = run_tests(
        root, "-p", "no:xdist", _BROKER, "--collect-only", TWINSIEVE_REQUIRE_ALL="1", **setting
    )
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "install Java 17 or newer, Maven and OpenSSL" in "".join(lines)


def test_without_a_network_the_reason_is_mavens(root: Path, tmp_path: Path) -> None:
    path = commands(
        tmp_path,
        java="echo 'OpenJDK Runtime Environment (build 21.0.1+12)' >&2",
        mvn="echo '[WARNING] slow'; echo '[ERROR] Unknown host repository.example'; exit 1",
    )
    code, lines = run_tests(
        root, "-p", "no:xdist", "--collect-only", _BROKER, PATH=path, XDG_CACHE_HOME=str(tmp_path / "cache")
    )
    assert code == 0, lines
    assert lines[-1].endswith(
        "left out: Kafka 4.2.0 could not be fetched with Maven: [ERROR] Unknown host repository.example"
    )


def test_tests_that_take_minutes_are_left_out_by_choice(root: Path) -> None:
    long = ("-p", "no:xdist", "--collect-only", "tests/broker/test_leaders_die.py")
    code, lines = run_tests(root, *long, TWINSIEVE_REQUIRE_ALL="1")
    assert (code, lines[-1]) == (
        pytest.ExitCode.NO_TESTS_COLLECTED,
        "1 test of minutes left out: `make long` runs them",
    )


def test_a_broker_that_was_lent_needs_no_java(root: Path, tmp_path: Path) -> None:
    code, lines = run_tests(
        root, "-p", "no:xdist", "--collect-only", _BROKER, PATH=str(tmp_path), TWINSIEVE_TEST_BOOTSTRAP="x:1"
    )
    assert (code, lines[-1]) == (0, last_line([]))


def test_a_mark_that_names_no_need_is_an_error(request: pytest.FixtureRequest) -> None:
    asks = pytest.Function.from_parent(request.node.parent, name="asks", callobj=lambda: None)
    asks.add_marker(pytest.mark.needs("own broker"))
    assert [need.name for need in needs_of(asks)] == ["own broker"]
    asks.add_marker(pytest.mark.needs("Jvaa"))
    with pytest.raises(pytest.UsageError, match=r"asks: needs \['Jvaa'\], which NEEDS does not hold"):
        list(needs_of(asks))


def test_every_reason_has_its_place_in_the_line() -> None:
    posts = LeftOut(31, "on real posts", "TWINSIEVE_DATA is not set", "set it")
    broker = LeftOut(1, "on a real Kafka", "Java 17 or newer is not installed", "install it")
    assert last_line([posts, broker]) == (
        "31 tests on real posts left out: TWINSIEVE_DATA is not set; "
        "1 test on a real Kafka left out: Java 17 or newer is not installed"
    )


def test_needs_have_names_and_fixtures_of_their_own() -> None:
    assert len({need.name for need in NEEDS}) == len(NEEDS)
    assert len(frozenset().union(*(need.fixtures for need in NEEDS))) == sum(
        len(need.fixtures) for need in NEEDS
    )
