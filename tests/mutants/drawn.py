"""Mutants drawn by a seed: one token of a folder is another one, wherever the draw falls.

Kernels need not be compiled to be examined by pairs of texts, so those of `stages/differ` run in plain Python:
seconds in place of minutes. Tests that need machine instructions (tails) or read every list are left out there.
"""

from __future__ import annotations

import io
import random
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tokenize import NAME, NUMBER, OP, TokenInfo

_INSTEAD = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "+", "//": "*", "%": "//", "&": "|", "|": "&", "^": "&", "<<": ">>", ">>": "<<",
    "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=",
    "and": "or", "or": "and", "not": "", "True": "False", "False": "True", "YES": "NO", "NO": "YES",
    "min": "max", "max": "min", "break": "continue", "continue": "break",
}  # fmt: skip
"""What stands for a token; a whole number becomes the next one."""


INTERPRETED = {
    "stages/differ": tuple(
        f"tests/stages/differ/test_{name}.py"
        for name in (
            *("alphabets", "calendar_names", "denials", "difference_traps", "differences", "elsewhere"),
            *("headlines", "numbers_written", "one_word", "said", "spellings", "writings"),
        )
    )
}
"""The tests that run without compiled kernels, by the folder of the program that they examine."""


@dataclass(frozen=True)
class DrawnMutant:
    """One token of a file exchanged. line: from 1 on; column: from 0 on; old, new: the token

    tests: pytest arguments; interpreted: whether they run without compiled kernels
    """

    path: str
    line: int
    column: int
    old: str
    new: str
    tests: tuple[str, ...]
    interpreted: bool

    @property
    def name(self) -> str:
        """Where the token stands, and what takes its place: `stages/differ/align.py:181:14 < becomes <=`."""
        return f"{self.path}:{self.line}:{self.column} {self.old} becomes {self.new or 'nothing'}"

    def applied(self, root: Path) -> str:
        """The file's text with the defect."""
        lines = (root / self.path).read_text("utf-8").splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.column] + self.new + line[self.column + len(self.old) :]
        return "".join(lines)


def drawn(root: Path, folder: str, count: int, seed: int) -> list[DrawnMutant]:
    """So many mutants of a folder, the same ones for the same seed and code."""
    tests = INTERPRETED.get(folder, (f"tests/{folder}",))
    files = sorted((root / folder).glob("*.py"))
    every = [mutant for file in files for mutant in _of_file(file, str(file.relative_to(root)), tests)]
    return random.Random(seed).sample(every, count)


def _of_file(file: Path, path: str, tests: tuple[str, ...]) -> Iterator[DrawnMutant]:
    """Annotations, defaults, imports and decorators are left out: nothing is decided there."""
    text = file.read_text("utf-8")
    in_head = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        in_head |= token.string in ("def", "import", "from", "@", "class")
        in_head &= token.type != tokenize.NEWLINE
        new = None if in_head else _instead(token)
        if new is not None:
            yield DrawnMutant(path, *token.start, token.string, new, tests, tests in INTERPRETED.values())


def _instead(token: TokenInfo) -> str | None:
    if token.type == NUMBER and token.string.isdecimal():
        return str(int(token.string) + 1)
    return _INSTEAD.get(token.string) if token.type in (OP, NAME) else None
