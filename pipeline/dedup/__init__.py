"""`twinsieve dedup`: one run over files, its outputs, its state and its report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Keep = Literal["first", "last", "longest"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is to write; `--help` needs this and loads nothing else.

    output … stats: paths, `-` for stdout, None for no file; state: is read first, where it is there
    mark: all rows are written, each with its verdict
    keep: which row of a cluster is written
    examples: how many dropped rows are shown
    """

    output: str
    duplicates: str | None = None
    dead_letter: str | None = None
    clusters: str | None = None
    kept_apart: str | None = None
    stats: str | None = None
    state: str | None = None
    mark: bool = False
    keep: Keep = "first"
    examples: int = 0

    @property
    def shows_leaders(self) -> bool:
        """Whether an output has more of a kept row than its position."""
        shown = (self.duplicates, self.clusters, self.kept_apart)
        return self.mark or bool(self.examples) or any(name is not None for name in shown)

    @property
    def shows_apart(self) -> bool:
        """Whether an output has the words that keep a row apart."""
        return self.mark or self.kept_apart is not None

    def reports(self) -> dict[str, str | None]:
        """Flag → name of every output except the kept rows and the state."""
        return {
            "--duplicates": self.duplicates,
            "--dead-letter": self.dead_letter,
            "--clusters": self.clusters,
            "--kept-apart": self.kept_apart,
            "--stats": self.stats,
        }

    def outputs(self) -> dict[str, str]:
        """Flag → name of every requested output except the state."""
        reports = {flag: name for flag, name in self.reports().items() if name is not None}
        return {"-o": self.output, **reports}
