"""Write the parts of the documentation that come from the code: python -m scripts.pages.

A part stands between `<!-- from the code: NAME -->` and `<!-- end -->`; what stands there is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from twinsieve.stages.differ.rules import Rule

ROOT = Path(__file__).resolve().parent.parent
_PART = re.compile(r"(<!-- from the code: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rules_table() -> str:
    """Every rule, in the order in which they are asked."""
    rows = ["| rule | kind | two bodies are kept apart when |", "|---|---|---|"]
    for rule in Rule:
        if rule:
            limits = f" ({', '.join(f'`{limit}`' for limit in rule.limits)})" if rule.limits else ""
            rows.append(f"| {rule.words} | {rule.category.value} | {rule.line}{limits} |")
    return "\n".join(rows) + "\n"


PARTS: dict[str, Callable[[], str]] = {"rules": rules_table}
"""What each part holds, by its name."""


def rewritten(page: str) -> str:
    """The page with its parts as the code has them now."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}{found[3]}", page)


def pages() -> list[Path]:
    """All pages that hold such a part."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [path for path in every if _PART.search(path.read_text("utf-8"))]


def main() -> None:
    """Write every page anew that has changed."""
    for path in pages():
        before = path.read_text("utf-8")
        after = rewritten(before)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
