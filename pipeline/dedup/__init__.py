"""Implements `twinsieve dedup`: one run over files, with its outputs, its state and its report."""

from __future__ import annotations

from typing import Literal, NamedTuple

Keep = Literal["first", "last", "longest", "none"]


class Wanted(NamedTuple):
    """The outputs that the user requested. Defined here so that `--help` needs no larger module.

    output, duplicates, dead_letter, clusters, kept_apart, stats: path of each output file, `-` for stdout,
        None for no file
    state: folder of the state, which is read first if it exists; None for no state
    mark: write all rows, each with its verdict
    keep: which row of a cluster is written; none: a row with a duplicate is not written either
    examples: number of dropped rows to show; with `kept_apart` also one pair that was kept apart
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
        """Whether an output shows the id, text or place of a leader, not just its position."""
        shown = (self.duplicates, self.clusters, self.kept_apart)
        return self.mark or bool(self.examples) or any(name is not None for name in shown)

    @property
    def shows_apart(self) -> bool:
        """Whether an output shows the words because of which a row was kept although a leader is similar."""
        return self.mark or self.kept_apart is not None

    def reports(self) -> dict[str, str | None]:
        """Name of every output except the kept rows and the state, by flag; None if not requested."""
        return {
            "--duplicates": self.duplicates,
            "--dead-letter": self.dead_letter,
            "--clusters": self.clusters,
            "--kept-apart": self.kept_apart,
            "--stats": self.stats,
        }

    def outputs(self) -> dict[str, str]:
        """Name of every requested output except the state, by flag."""
        reports = {flag: name for flag, name in self.reports().items() if name is not None}
        return {"-o": self.output, **reports}
