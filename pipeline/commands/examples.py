"""Examples at the end of a command's `--help`; `tests/cli/test_help.py` runs them."""

from __future__ import annotations


def examples(*lines: str) -> str:
    """An epilog for click that keeps one line for each example."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
