"""How many labelled pairs are dropped rightly and wrongly: the counts behind the tables of README.md and
docs/BENCHMARKS.md.

    python -m tests.accuracy.label_counts [SHEET.tsv]

counts them again with the real posts (TWINSIEVE_DATA) and writes `label_counts.tsv`; then
`python -m scripts.generated_docs` writes the tables. Ids, texts and reasons of the labels stay where they are.
SHEET.tsv: near drops of whole runs that `bench.whole_runs` drew, with labels; their counts replace those of
the sheet before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.accuracy.labels import judged_alone
from tests.accuracy.left_out import chosen_on_half, chosen_on_others
from twinsieve.pipeline.tools.evaluate.judged import JudgedVerdict, Share, read_judged

PROFILE = "profile of the set"
OTHERS = "limits of other sets"
HALF = "limits of the other half"
OWN = "limits of the profile"
"""On the same half as HALF; the name of its set is that of the profile and the number of the half."""
NONE = "no profile"
WHOLE_RUN = "whole run"
_PATH = Path(__file__).with_name("label_counts.tsv")
_HEADER = "measure\tset\tright\twrong\tunsure\tsame"


class Counts(NamedTuple):
    """Dropped pairs by label: `same` is right, `different` is wrong.

    same: pairs labelled `same`, dropped or not; 0 where only drops were labelled
    """

    right: int
    wrong: int
    unsure: int
    same: int

    @property
    def precision(self) -> Share:
        """Without the pairs labelled `unsure`."""
        return Share(self.right, self.right + self.wrong)

    @property
    def precision_at_worst(self) -> Share:
        """With the pairs labelled `unsure` as wrong."""
        return Share(self.right, self.right + self.wrong + self.unsure)

    @property
    def recall(self) -> Share:
        """Of the pairs labelled `same`, the share that was dropped."""
        return Share(self.right, self.same)

    def cells(self) -> tuple[str, str, str]:
        """Dropped pairs by label and both precisions, for a table."""
        return f"{self.right}/{self.wrong}/{self.unsure}", str(self.precision), str(self.precision_at_worst)


Table = dict[str, dict[str, Counts]]
"""Counts by measure and set."""


def counts_of(verdicts: Iterable[JudgedVerdict]) -> Counts:
    """The counts of pairs that were judged."""
    verdicts = list(verdicts)
    dropped = _by_label(one.pair.label for one in verdicts if one.dropped)
    return dropped._replace(same=sum(one.pair.label == "same" for one in verdicts))


def counted(sheet: Path | None = None) -> Table:
    """All counts, by the program and the labels as they are now; takes about half a minute.

    sheet: labelled drops of whole runs; without it, their counts are those in the file
    """
    halves = {f"{half.profile} {half.number}": half for half in chosen_on_half()}
    alone = {
        PROFILE: judged_alone() | judged_alone(more=True),
        OTHERS: {name: judged.pairs for name, (_, judged) in chosen_on_others().items()},
        HALF: {name: half.chosen.pairs for name, half in halves.items()},
        OWN: {name: half.shipped.pairs for name, half in halves.items()},
        NONE: judged_alone("default"),
    }
    found = {
        measure: {name: counts_of(some) for name, some in by_set.items()} for measure, by_set in alone.items()
    }
    return found | {WHOLE_RUN: whole_run_counts(sheet) if sheet else stored()[WHOLE_RUN]}


def whole_run_counts(labels: Path) -> dict[str, Counts]:
    """Labels of near drops, counted by set. labels: a file as `bench.whole_runs` draws it"""
    pairs = read_judged(labels)
    return {
        name: _by_label(pair.label for pair in pairs if pair.set == name)
        for name in dict.fromkeys(pair.set for pair in pairs)
    }


def stored() -> Table:
    """The counts in the file."""
    lines = _PATH.read_text("utf-8").splitlines()
    assert lines[0] == _HEADER
    table: Table = {}
    for measure, name, *numbers in (line.split("\t") for line in lines[1:]):
        table.setdefault(measure, {})[name] = Counts(*map(int, numbers))
    return table


def write(table: Mapping[str, Mapping[str, Counts]]) -> None:
    """Replace the file."""
    lines = [
        "\t".join([measure, name, *map(str, counts)])
        for measure, by_set in table.items()
        for name, counts in by_set.items()
    ]
    _PATH.write_text("\n".join([_HEADER, *lines, ""]), "utf-8")


def _by_label(labels: Iterable[str]) -> Counts:
    number = Counter(labels)
    return Counts(number["same"], number["different"], number["unsure"], 0)


if __name__ == "__main__":
    write(counted(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
