"""Kernels are called without Numba: with the machine code for the types that Numba sees, and with no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinsieve.stages.fingerprint.tokens import fill_tokens
from twinsieve.stages.kernel import Kernel, kernel
from twinsieve.stages.lent_tuples import lent
from twinsieve.stages.machine_code import fingerprint, types_of


class Same(NamedTuple):
    """Two fields, of one type or of two."""

    first: Any
    second: Any


class Other(NamedTuple):
    """Another tuple with the same fields."""

    first: Any
    second: Any


_DTYPES = ("bool", "int8", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Arrays of every number and order; some may not be written."""
    shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    dtype = np.dtype(draw(st.sampled_from(_DTYPES)))
    array: np.ndarray[Any, Any] = np.zeros(shape, dtype)
    match draw(st.sampled_from(["as it is", "columns first", "every second"])):
        case "columns first":
            array = np.asfortranarray(array)
        case "every second":
            array = np.zeros([2 * each for each in shape], dtype)[tuple(slice(None, None, 2) for _ in shape)]
    array.flags.writeable = draw(st.booleans())
    return array


_ONE = (
    arrays()
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats()
    | st.sampled_from([np.uint64(1), np.int32(1), np.float32(1), np.bool_(True)])
)
_TUPLES = st.builds(Same, _ONE, _ONE) | st.builds(Other, _ONE, _ONE)
_ARGUMENTS = st.lists(_ONE | _TUPLES | st.builds(Same, _TUPLES, _ONE), min_size=1, max_size=4).map(tuple)


@given(_ARGUMENTS)
def test_types_are_named_as_numba_names_them(arguments: tuple[Any, ...]) -> None:
    assert types_of(arguments) == str(tuple(lent(numba.typeof(each)) for each in arguments))


@given(_ARGUMENTS, _ARGUMENTS)
def test_equal_fingerprints_mean_equal_types(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    if fingerprint(first) == fingerprint(second):
        assert tuple(map(numba.typeof, first)) == tuple(map(numba.typeof, second))


@pytest.mark.parametrize(
    "unknown",
    [None, 2**63, "a", (1, 2), np.zeros(2, ">u4"), np.zeros(2, "M8[s]"), np.zeros(2, [("a", "u4")])],
)
def test_what_is_not_known_here_has_no_name(unknown: object) -> None:
    assert types_of((unknown,)) is None
    assert types_of((Same(1, unknown),)) is None


def _total(numbers: np.ndarray[Any, Any]) -> float:
    """The sum of an array, as a float."""
    total = 0.0
    for number in numbers:
        total += number
    return total


def test_a_call_with_other_types_goes_to_other_machine_code(own_folder: Path) -> None:
    numbers = np.arange(6)
    for process in range(2):
        total = kernel(_total)
        for _ in range(2):
            assert total(numbers) == 15.0
            assert total(numbers.astype(np.float32)) == 15.0
            assert total(numbers[::2]) == 6.0
            assert total(numbers.astype(np.uint8)) == 15.0
        # As in a second process, which loads what the first has compiled.
        assert ("dispatcher" in vars(total)) == (process == 0)
    assert len(list(own_folder.glob("*.kernel"))) == 4


def test_what_numba_refuses_is_refused(own_folder: Path) -> None:
    total = kernel(_total)
    with pytest.raises(numba.TypingError):
        total("text")
    with pytest.raises(TypeError):
        total()
    assert not own_folder.exists()


def test_loaded_code_and_the_dispatcher_give_the_same() -> None:
    assert isinstance(fill_tokens, Kernel)
    chars = np.array([ord(c) for c in "武汉ab"], np.uint32)
    results = []
    for call in (fill_tokens, fill_tokens.dispatcher):
        tokens = np.zeros(4, np.uint64)
        count = call(chars, np.zeros(4, np.uint8), 0, 4, True, np.uint64(1), tokens)
        results.append((count, tokens.tolist()))
    assert results[0] == results[1]
    assert results[0][0] == 3


_DEDUP = """
import sys
from twinsieve.pipeline.commands import cli
sys.argv = ["twinsieve", "dedup", "-q", {source!r}, "-o", "-"]
try:
    cli.main()
finally:
    print("numba.core" in sys.modules, file=sys.stderr)
    from numba import njit
    print(njit(lambda n: n + 1)(1), file=sys.stderr)
"""


def test_dedup_runs_without_numba_which_can_be_imported_later(root: Path, tmp_path: Path) -> None:
    source = tmp_path / "posts.jsonl"
    source.write_text('{"text":"one two three"}\n{"text":"one two three"}\n{"text":"four"}\n')
    subprocess.run([sys.executable, "-m", "twinsieve", "warm-up", "-q"], cwd=root, check=True)
    script = _DEDUP.format(source=str(source))
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n") == 2
    assert done.stderr.split() == ["False", "2"]


_IN_A_THREAD = """
import sys, threading
def work():
    from twinsieve.stages.intrinsics import mix64
    import numpy as np
    print("numba.core" in sys.modules, mix64(np.uint64(1)))
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_where_other_threads_run_numba_is_imported_as_usual(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IN_A_THREAD], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", str(0x5692161D100B05E5)]
