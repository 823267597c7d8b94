"""What the measurements of docs/CLASSICS.md share: the famous pair, generated texts, tables, plots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from twinsieve.pipeline.tools.generate.stream import generate_columns

PAIR = ("你妈妈喊你回家吃饭哦，回家罗回家罗", "你妈妈叫你回家吃饭啦，回家罗回家罗")
"""The pair that S1 compares."""


@cache
def posts(count: int, *, repeats: float = 0.28, seed: int = 1) -> list[str]:
    """Texts of generated posts."""
    return [text for part in generate_columns(count, seed, repeats=repeats) for text in part.texts]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; the first column stands left, the others right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)) + "\n"


def svg_pyplot() -> Any:
    """matplotlib.pyplot without a display; its SVG is the same for the same figure."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "twinsieve"
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, path: str) -> None:
    """Write the figure as SVG without the date."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")
