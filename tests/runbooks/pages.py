"""The pages of docs/runbooks, and the commands that stand in them with what they say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.played import rules

FOLDER = Path(__file__).resolve().parents[2] / "docs/runbooks"
SECTIONS = ("Look", "Do", "It is over", "What it costs")


@dataclass(frozen=True, slots=True)
class Command:
    """A line of a page. shows: lines that its output contains in the state that the page is about"""

    line: str
    shows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A step of the decision tree. The answer is yes if its commands show what stands behind them.

    leads_to: pages for a yes
    """

    asked: list[Command]
    leads_to: list[str]


def names() -> list[str]:
    """Every page but the list of them, without its ending."""
    return sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")


def text(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text("utf-8")


def headings(name: str) -> list[str]:
    return re.findall(r"^## (.+)$", text(name), re.MULTILINE)


def commands(name: str, section: str) -> list[Command]:
    """The commands of a section, in order."""
    return _commands_in(_section(name, section))


def questions() -> list[Question]:
    """The decision tree for "nothing comes out", in order."""
    steps = re.split(r"^\d+\. ", _section("README", "Nothing comes out: which page?"), flags=re.MULTILINE)[1:]
    return [Question(_commands_in(step), re.findall(r"\]\(([\w-]+)\.md\)", step)) for step in steps]


def _section(name: str, title: str) -> str:
    return text(name).partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _commands_in(section: str) -> list[Command]:
    blocks = re.findall(r"^ *```console\n(.*?)^ *```$", section, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    ends = [*starts, len(lines)][1:]
    return [
        Command(lines[start].removeprefix("$ "), tuple(lines[start + 1 : end]))
        for start, end in zip(starts, ends, strict=True)
    ]


def alert_of(name: str) -> str | None:
    """The alert that leads to a page; None if none does."""
    wanted = f"docs/runbooks/{name}.md"
    alerts = [rule for rule in rules() if "alert" in rule]
    return next((rule["alert"] for rule in alerts if rule["annotations"]["runbook_url"] == wanted), None)
