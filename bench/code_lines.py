"""Lines of Python code in the program and the rest at some commits: `python -m bench.code_lines REV [REV …]`.

Blank lines, comments and docstrings (also those below a constant) do not count. `--without` leaves files out
at all commits: those that were moved elsewhere, for a move is no saving.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from pathlib import PurePosixPath

_PARTS = {"program": ("stages", "pipeline", "twinsieve"), "the rest": ("tests", "bench", "scripts")}
_FOLDERS = [folder for folders in _PARTS.values() for folder in folders]
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines that hold code.

    >>> code_lines('"Doc."\\n\\nx = 1  # one\\n"What x is."\\n')
    1
    """
    strings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _SILENT:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - strings)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def counted(revision: str, without: list[str]) -> dict[str, int]:
    """Lines of code by file."""
    names = _git("ls-tree", "-r", "--name-only", revision, *_FOLDERS).splitlines()
    return {
        name: code_lines(_git("show", f"{revision}:{name}"))
        for name in names
        if name.endswith(".py") and not any(PurePosixPath(name).match(pattern) for pattern in without)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("revisions", nargs="+")
    parser.add_argument("--without", action="append", default=[], help="a pattern of file names")
    options = parser.parse_args()
    for revision in options.revisions:
        lines = counted(revision, options.without)
        files = {folder: [name for name in lines if name.startswith(f"{folder}/")] for folder in _FOLDERS}
        for part, folders in _PARTS.items():
            by_folder = {folder: sum(lines[name] for name in files[folder]) for folder in folders}
            print(f"{revision}: {part} {sum(by_folder.values())}, {by_folder}")


if __name__ == "__main__":
    main()
