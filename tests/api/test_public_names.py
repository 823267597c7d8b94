"""`import twinsieve` is quick and gives the public names, each at its first use."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import twinsieve


def _python(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_an_import_loads_nothing_of_weight() -> None:
    heavy = "numba, llvmlite, numpy, pydantic, yaml, pandas, polars, pyarrow, twinsieve.stages, twinsieve.pipeline"
    code = f"import sys, twinsieve; print([one for one in '{heavy}'.split(', ') if one in sys.modules])"
    assert _python(code) == "[]"


def test_a_sieve_loads_no_library_of_columns_and_no_broker() -> None:
    code = (
        "import sys; from twinsieve import Sieve, simhash, find_all;"
        "print([one for one in ('pandas', 'polars', 'pyarrow', 'kafka', 'confluent_kafka', 'click', 'rich') "
        "if one in sys.modules])"
    )
    assert _python(code) == "[]"


def test_errors_and_the_version_come_without_numpy() -> None:
    code = "import sys; from twinsieve import UsageError, __version__; print(__version__, 'numpy' in sys.modules)"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S* False", _python(code))


def test_all_names_are_there_and_no_other() -> None:
    assert len(set(twinsieve.__all__)) == len(twinsieve.__all__)
    for name in twinsieve.__all__:
        assert getattr(twinsieve, name) is not None
        assert name in dir(twinsieve)
    with pytest.raises(AttributeError, match="module 'twinsieve' has no attribute 'Seive'"):
        twinsieve.Seive  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_the_names_that_exist(root: Path) -> None:
    """Under TYPE_CHECKING stand the imports that `__getattr__` makes."""
    source = (root / "twinsieve" / "__init__.py").read_text("utf-8")
    seen = {name: module for module, name in re.findall(r"from (\S+) import \w+ as (\w+)", source)}
    assert seen == twinsieve._MODULES
    assert {*seen, "__version__"} == set(twinsieve.__all__)
