"""The pages of the project, and what stands in their blocks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
"""Every page, the README first."""

_BLOCK = re.compile(r"^```(?P<kind>[a-z]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """The page's path below the project's folder."""
    return str(page.relative_to(ROOT))


def blocks(text: str, kind: str) -> list[str]:
    """Content of the blocks of this kind, in the order of the page."""
    return [block["text"] for block in _BLOCK.finditer(text) if block["kind"] == kind]


def code_in(text: str) -> list[str]:
    """What stands between backticks, in a line or as a block."""
    without = _BLOCK.sub("", text)
    return [block["text"] for block in _BLOCK.finditer(text)] + re.findall(r"`([^`]+)`", without)


def commands(page: Path, program: str) -> list[list[str]]:
    """The words of each command in the page's `sh` blocks that calls this program.

    Blocks that begin with docker are left out: tests/broker/test_first_posts.py runs them as a whole.
    """
    texts = [text for text in blocks(page.read_text("utf-8"), "sh") if not text.startswith("docker ")]
    lines = "".join(texts).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.startswith(f"{program} ")]


def anchors(page: Path) -> set[str]:
    """Names of the headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
