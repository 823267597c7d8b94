"""Write the parts of the documentation that come from the code: python -m scripts.generated_docs.

A part stands between `<!-- from the code: NAME -->` and `<!-- end -->`; what stands there is replaced. So
are the comments of the examples in config/, but for the first; their values stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from scripts import label_tables
from scripts.settings_text import all_keys, example
from twinsieve.pipeline.files.format import formats
from twinsieve.pipeline.service.metrics import declared
from twinsieve.pipeline.settings.client_options import ALLOWED
from twinsieve.pipeline.settings.load import Override, load_settings
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.sizing.process_memory import held_by
from twinsieve.stages.differ.rules import Rule

ROOT = Path(__file__).resolve().parent.parent
_PART = re.compile(r"(<!-- from the code: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rules_table() -> str:
    """Every rule, in the order in which they are asked."""
    rows = ["| rule | kind | in short | two bodies are kept apart when |", "|---|---|---|---|"]
    for rule in Rule:
        if rule:
            limits = f" ({', '.join(f'`{limit}`' for limit in rule.limits)})" if rule.limits else ""
            rows.append(f"| {rule.words} | {rule.category.value} | {rule.meaning} | {rule.line}{limits} |")
    return "\n".join(rows) + "\n"


def formats_table() -> str:
    """Every format of files, with its endings."""
    rows = ["| `--format` | format | endings | may be compressed |", "|---|---|---|---|"]
    for kind in formats():
        endings = ", ".join(f"`{ending}`" for ending in kind.endings)
        rows.append(f"| `{kind.name}` | {kind.title} | {endings} | {'yes' if kind.packs else 'no'} |")
    return "\n".join(rows) + "\n"


def metrics_table() -> str:
    """Every metric of a process."""
    rows = ["| metric | labels | what it shows | alert |", "|---|---|---|---|"]
    for metric in declared().values():
        name = f"{metric.name}_total" if metric.kind.word == "counter" else metric.name
        cells = (f"`{name}`", ", ".join(metric.labels), metric.means, metric.alert)
        rows.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n".join(rows) + "\n"


_WINDOWS = ((200_000, 2_000_000), (1_000_000, 10_000_000), (4_000_000, 40_000_000), (16_000_000, 100_000_000))
_PARTITIONS = 8


def memory_table() -> str:
    """The worst-case memory of each role as `lint` computes it, for windows of several sizes."""
    rows = [
        "| `near.window.messages` / `exact.window.messages` | worker, MiB | index, MiB |",
        "|---|---|---|",
    ]
    for windows in _WINDOWS:
        keys = zip(("near", "exact"), windows, strict=True)
        changed = [Override(f"{stage}.window.messages", str(count), "--set") for stage, count in keys]
        held = held_by(load_settings(None, {}, changed), _PARTITIONS)
        is_default = windows == (Settings().near.window.messages, Settings().exact.window.messages)
        name = f"{windows[0]:,} / {windows[1]:,}{' (default)' if is_default else ''}"
        rows.append(f"| {name} | {held.worker / 2**20:,.0f} | {held.index / 2**20:,.0f} |")
    return "\n".join(rows) + "\n"


def options_table() -> str:
    """The options of kafka-python that may be given."""
    rows = ["| option | values |", "|---|---|"]
    for name, values in ALLOWED.items():
        shown = (
            f"{values.start:,} to {values.stop - 1:,}"
            if isinstance(values, range)
            else ", ".join(f"`{value}`" for value in values)
        )
        rows.append(f"| `{name}` | {shown} |")
    return "\n".join(rows) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "client options": options_table,
    "formats": formats_table,
    "memory": memory_table,
    "metrics": metrics_table,
    "rules": rules_table,
    "settings": all_keys,
    **label_tables.PARTS,
}
"""The text of each part, by its name."""


def rewritten(path: Path) -> str:
    """The page with its parts as the code has them now; an example of settings as a whole."""
    if path.suffix == ".yaml":
        return example(path, complete=path.stem == "production")
    return _PART.sub(lambda part: f"{part[1]}{PARTS[part[2]]()}{part[3]}", path.read_text("utf-8"))


def pages() -> list[Path]:
    """All pages that hold such a part, and the examples of settings."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    with_parts = [path for path in every if _PART.search(path.read_text("utf-8"))]
    return [*with_parts, *sorted((ROOT / "config").glob("*.yaml"))]


def main() -> None:
    """Write every page that has changed."""
    for path in pages():
        before, after = path.read_text("utf-8"), rewritten(path)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
