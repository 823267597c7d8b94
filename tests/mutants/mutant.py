"""One deliberate defect, and who must notice it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EDGES = ("tests/model/test_model_edges.py",)
CRASH = ("tests/crash/test_crash_at_every_step.py",)
RETENTION = ("tests/retention/test_log_and_decisions.py",)


class MutantError(Exception):
    """A mutant does not fit the code any more."""


@dataclass(frozen=True)
class Mutant:
    """An exact replacement in one file.

    name: what is done wrong; path: from the root; old: must stand in the file exactly once
    tests: pytest arguments; one of these tests must fail
    interpreted: whether they run without compiled kernels
    """

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    interpreted: bool = False

    def applied(self, root: Path) -> str:
        """The file's text with the defect.

        raises: MutantError where the text to replace is missing, or is there more than once
        """
        text = (root / self.path).read_text("utf-8")
        found = text.count(self.old)
        if found != 1:
            raise MutantError(
                f"{self.name}: its text stands {found} times in {self.path}; correct tests/mutants"
            )
        return text.replace(self.old, self.new)
