"""What is built on Numba's private parts is refused with any Numba but 0.68, and callees serve kernels alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
import pytest
from numba import int64, njit
from numpy.typing import NDArray

from twinsieve.stages.errors import UsageError
from twinsieve.stages.kernel import kernel
from twinsieve.stages.machine_code import REQUIREMENT, require_version
from twinsieve.stages.numba_private import Callee


def _prints(numbers: NDArray[np.int64]) -> int:
    print(numbers)
    return len(numbers)


def _counts(numbers: NDArray[np.int64]) -> int:
    return len(numbers)


def _callee(function: Callable[..., int]) -> Callee:
    entry = cast("Any", njit)(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return Callee(function, entry.targetoptions)


def test_a_callee_that_needs_objects_of_python_is_not_compiled() -> None:
    with pytest.raises(TypeError, match="_prints needs objects of Python: make it an entry, not a callee"):
        _callee(_prints).compile((int64[:],))


def test_a_callee_serves_kernels_and_not_python() -> None:
    callee = _callee(_counts)

    @njit  # type: ignore[untyped-decorator]
    def entry(numbers: NDArray[np.int64]) -> int:
        return callee(numbers)  # type: ignore[no-any-return]

    assert entry(np.zeros(3, np.int64)) == 3
    with pytest.raises(TypeError, match="_counts has no entry for Python: only kernels call it"):
        callee(np.zeros(3, np.int64))


@kernel(callee=True)
def _called(numbers: NDArray[np.int64]) -> int:
    return len(numbers)


@kernel(callee=True, inlined=True)
def _inlined(numbers: NDArray[np.int64]) -> int:
    return _called(numbers)


@kernel
def _entry(numbers: NDArray[np.int64]) -> int:
    return _inlined(numbers) + _called(numbers)


def test_a_kernel_is_inlined_if_it_says_so_and_not_because_its_caller_does(own_folder: Path) -> None:
    """Numba hands the option on to what it compiles meanwhile: then all rules were part of each of their callers."""
    assert _entry(np.zeros(3, np.int64)) == 6
    inlined = {}
    for each in (_called, _inlined):
        (made,) = cast("Any", each).dispatcher.overloads.values()
        inlined[each.__name__] = "alwaysinline" in str(made.library._get_module_for_linking())
    assert inlined == {"_called": False, "_inlined": True}


_LAST = """
import numpy as np
from numba import njit
from types import FunctionType
from twinsieve.stages.kernel import kernel

def last(numbers, index):
    return numbers[index]

def of_module(name):
    return FunctionType(last.__code__, {"__name__": name}, "last")

numbers = np.arange(3)
for made in (kernel(of_module("twinsieve.stages.elsewhere")), njit(of_module("elsewhere"))):
    for index in (2, -1, 3):
        try:
            print(int(made(numbers, index)), end=" ")
        except IndexError:
            print("IndexError", end=" ")
"""


def test_a_negative_index_is_none_in_a_kernel_and_counts_from_the_end_elsewhere(
    tmp_path: Path,
) -> None:
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", _LAST], env=os.environ | checked, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["2", "IndexError", "IndexError", "2", "2", "IndexError"]


@pytest.mark.parametrize("version", ["0.67.0", "0.69.0", "0.680.1", "1.0"])
def test_a_version_that_the_private_parts_do_not_fit_is_refused(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba, "__version__", version)
    with pytest.raises(UsageError, match=rf"Numba {version} is installed.*install 'numba>=0\.68,<0\.69'"):
        require_version()


def test_later_versions_of_0_68_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "__version__", "0.68.20")
    require_version()


def test_the_package_requires_what_the_error_names(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    assert REQUIREMENT in project["dependencies"]


@pytest.mark.parametrize("command", ["warm-up", "dedup", "run"])
def test_another_numba_ends_a_command_with_one_line_before_any_kernel_is_made(
    command: str, root: Path
) -> None:
    """The modules that another version may lack are not looked for: here they cannot be imported."""
    settings = str(root / "config" / "kafka.yaml")
    arguments = {"warm-up": [], "dedup": ["/dev/null"], "run": ["-c", settings]}[command]
    script = (
        "import sys, numba; numba.__version__ = '0.70.0'; sys.modules['numba.core.caching'] = None\n"
        f"from twinsieve.pipeline.commands import cli; sys.argv = {['twinsieve', command, *arguments]!r}\n"
        "sys.exit(cli.main())"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == UsageError.exit_code, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert "Numba 0.70.0 is installed" in line
    assert ended.stdout == ""
