"""What a test needs and cannot get leaves the test out, and the last line of the run says so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.accuracy.data_sets import missing_files
from tests.broker import distribution
from tests.needs import NEEDS, LeftOut, Plugin, last_line, needs_of

_MEASURED = "tests/accuracy/test_quality.py::test_hard_pairs_get_the_wanted_verdict"
_OTHER = "tests/packaging/test_lock_files.py"
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


@dataclass(frozen=True)
class Sorted:
    """What the plugin makes of tests: how many run, and what it says of the others."""

    kept: int
    left_out: list[LeftOut]


@pytest.fixture
def sort(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Sorted]:
    """Hands tests that need these things to a plugin as of a run in one process; None needs nothing."""
    for name in list(os.environ):
        if name.startswith("TWINSIEVE_"):
            monkeypatch.delenv(name)
    # What was found before this test does not count.
    monkeypatch.setattr(distribution, "class_path", distribution.class_path.__wrapped__)

    def sort(*needs: str | None) -> Sorted:
        items: list[pytest.Item] = []
        for number, need in enumerate(needs):
            item = pytest.Function.from_parent(request.node.parent, name=f"t{number}", callobj=lambda: None)
            if need is not None:
                item.add_marker(pytest.mark.needs(need))
            items.append(item)
        deselected: list[pytest.Item] = []
        hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
        plugin = Plugin(SimpleNamespace(hook=hook))  # type: ignore[arg-type]
        plugin.pytest_collection_modifyitems(items)
        assert len(items) + len(deselected) == len(needs)
        return Sorted(len(items), plugin._left_out or [])

    return sort


def test_without_data_the_last_line_counts_what_was_left_out_and_the_rest_passes(root: Path) -> None:
    code, lines = run_tests(root, "-n", "2", _MEASURED, _OTHER)
    assert code == 0, lines
    assert lines[-1] == _NO_DATA
    assert "passed" in lines[-2]
    assert "skipped" not in "".join(lines)


def test_whoever_requires_all_is_told_what_to_set(
    sort: Callable[..., Sorted], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(sort("posts", None).left_out[0]) == _NO_DATA
    monkeypatch.setenv("TWINSIEVE_REQUIRE_ALL", "1")
    with pytest.raises(pytest.UsageError) as error:
        sort("posts", None)
    assert str(error.value).splitlines() == [
        "TWINSIEVE_REQUIRE_ALL is set, and not every test can run here:",
        f"  {_NO_DATA}; set TWINSIEVE_DATA to their folder",
    ]


def test_a_folder_without_the_posts_is_an_error(root: Path, tmp_path: Path) -> None:
    (tmp_path / missing_files(tmp_path)[0]).touch()
    code, lines = run_tests(root, "-n", "2", _MEASURED, _OTHER, TWINSIEVE_DATA=str(tmp_path))
    assert code == pytest.ExitCode.USAGE_ERROR, lines
    first, *others = missing_files(tmp_path)
    (said,) = [line for line in lines if line.startswith("ERROR")]
    assert f"TWINSIEVE_DATA is {tmp_path}, where {first} is missing, and {len(others)} more" in said
    assert "passed" not in "".join(lines)


def test_only_who_asks_is_left_out(sort: Callable[..., Sorted], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSIEVE_REQUIRE_ALL", "1")
    monkeypatch.setenv("TWINSIEVE_DATA", "/nowhere")
    assert sort(None, None) == Sorted(2, [])


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


def test_whoever_requires_all_is_told_to_install_java(
    sort: Callable[..., Sorted], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TWINSIEVE_REQUIRE_ALL", "1")
    with pytest.raises(pytest.UsageError, match="; install Java 17 or newer, Maven and OpenSSL"):
        sort("broker", None)


def test_without_a_network_the_reason_is_mavens(
    sort: Callable[..., Sorted], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = commands(
        tmp_path,
        java="echo 'OpenJDK Runtime Environment (build 21.0.1+12)' >&2",
        mvn="echo '[WARNING] slow'; echo '[ERROR] Unknown host repository.example'; exit 1",
    )
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = sort("broker", None)
    assert found.kept == 1
    assert last_line(found.left_out).endswith(
        "left out: Kafka 4.2.0 could not be fetched with Maven: [ERROR] Unknown host repository.example"
    )


def test_tests_that_take_minutes_are_left_out_by_choice(
    sort: Callable[..., Sorted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSIEVE_REQUIRE_ALL", "1")
    found = sort("minutes", None)
    assert (found.kept, last_line(found.left_out)) == (
        1,
        "1 test of minutes left out: `make long` runs them",
    )
    monkeypatch.setenv("TWINSIEVE_LONG", "1")
    assert sort("minutes", None) == Sorted(2, [])


def test_a_broker_that_was_lent_needs_no_java(
    sort: Callable[..., Sorted], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TWINSIEVE_TEST_BOOTSTRAP", "x:1")
    assert sort("broker", None) == Sorted(2, [])


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
