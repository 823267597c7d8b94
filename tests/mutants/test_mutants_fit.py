"""The list of mutants fits the code; `make mutants` lets the tests have a go at them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.every import EVERY
from tests.mutants.mutant import Mutant, MutantError


@pytest.mark.parametrize("mutant", EVERY, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_a_file_that_can_still_be_compiled(mutant: Mutant, root: Path) -> None:
    compile(mutant.applied(root), mutant.path, "exec")
    assert mutant.old != mutant.new
    for test in mutant.tests:
        assert (root / test).exists(), test


def test_there_are_enough_of_them_and_names_are_told_apart() -> None:
    assert len(EVERY) >= 40
    assert len({mutant.name for mutant in EVERY}) == len(EVERY)


def test_a_mutant_that_no_longer_fits_is_refused(root: Path) -> None:
    gone = Mutant("gone", "pipeline/worker/worker.py", "no such text anywhere", "")
    many = Mutant("many", "pipeline/worker/worker.py", "self", "")
    for mutant in (gone, many):
        with pytest.raises(MutantError, match="correct tests/mutants"):
            mutant.applied(root)
