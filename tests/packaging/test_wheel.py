"""A wheel installs `twinsieve` and nothing else at the top, so no other package can break it."""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.conftest import Environment, build
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.settings.examples import example_names

Make = Callable[[], Environment]

_IMPORTS = """
import twinsieve, twinsieve.stages.judge.batch_sieve, twinsieve.pipeline.dedup.job
print(twinsieve.__file__)
print(twinsieve.stages.judge.batch_sieve.__file__)
"""


@pytest.fixture(scope="session")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of another project, which owns `pipeline` and `stages` at the top."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "stranger"\nversion = "1"\n'
        '[tool.setuptools]\npackages = ["pipeline", "stages"]\n'
    )
    for name in ("pipeline", "stages"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"OWNER = 'stranger {name}'\n")
    return build(folder, "wheel", tmp_path_factory.mktemp("stranger-wheel"))


def test_the_wheel_holds_the_package_and_nothing_else(root: Path, wheel: Path) -> None:
    """Every module, every data file and every example is there, and no test, bench or compiled file."""
    expected = {
        str(Path(folder, name).relative_to(root))
        for folder, folders, names in os.walk(root / "twinsieve", followlinks=True)
        for name in names
        if "__pycache__" not in Path(folder).parts
        and (name.endswith((".py", "py.typed")) or Path(folder).name in ("data", "words", "examples"))
    }
    assert {
        "twinsieve/examples/kafka.yaml",
        "twinsieve/pipeline/commands/cli.py",
        "twinsieve/py.typed",
    } <= expected
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if name.startswith(f"twinsieve-{program_version()}.dist-info/")}
    assert names - about == expected
    assert wheel.name == f"twinsieve-{program_version()}-py3-none-any.whl"
    assert {Path(name).name for name in about} >= {"METADATA", "RECORD", "entry_points.txt", "LICENSE"}


def test_it_runs_beside_a_package_that_owns_pipeline_and_outlives_it(
    wheel: Path, stranger: Path, environment: Make
) -> None:
    own = environment()
    own.install(wheel, stranger)
    assert (own.site / "pipeline" / "__init__.py").read_text() == "OWNER = 'stranger pipeline'\n"
    places = [
        str(own.site / "twinsieve" / "__init__.py"),
        str(own.site / "twinsieve" / "stages" / "judge" / "batch_sieve.py"),
    ]
    assert own.run("python", "-m", "twinsieve", "--version") == f"twinsieve {program_version()}\n"
    both = own.run("python", "-c", _IMPORTS + "import stages, pipeline; print(pipeline.OWNER)")
    assert both.splitlines() == [*places, "stranger pipeline"]
    own.run("twinsieve", "lint")
    own.pip("uninstall", "--yes", "--quiet", "stranger")
    assert own.run("python", "-c", _IMPORTS).split() == places
    listed = own.run("twinsieve", "config", "list").splitlines()
    assert [line.split()[0] for line in listed] == example_names()
    assert not (own.site / "pipeline").exists()


def test_removing_it_leaves_the_other_package_whole(wheel: Path, stranger: Path, environment: Make) -> None:
    own = environment()
    own.install(stranger, wheel)
    own.pip("uninstall", "--yes", "--quiet", "twinsieve")
    assert own.run("python", "-c", "import pipeline, stages; print(stages.OWNER)") == "stranger stages\n"
    assert not (own.site / "twinsieve").exists()


@pytest.mark.parametrize("files", ["copied", "without_links"])
def test_an_editable_installation_runs_the_files_of_the_checkout(
    files: str, request: pytest.FixtureRequest, tmp_path: Path, environment: Make
) -> None:
    checkout, own = tmp_path / "checkout", environment()
    shutil.copytree(request.getfixturevalue(files), checkout, symlinks=True)
    own.install("--editable", checkout)
    places = own.run("python", "-c", _IMPORTS).split()
    assert {Path(place).resolve() for place in places} == {
        checkout / "twinsieve" / "__init__.py",
        checkout / "stages" / "judge" / "batch_sieve.py",
    }
    assert own.run("twinsieve", "config", "show", "kafka") == (checkout / "config" / "kafka.yaml").read_text()
    (checkout / "pipeline" / "basics" / "program.py").write_text(
        "def program_version() -> str:\n    return 'edited'\n"
    )
    assert own.run("python", "-m", "twinsieve", "--version") == "twinsieve edited\n"
