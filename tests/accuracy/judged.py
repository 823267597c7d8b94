"""How the drops of pairs that somebody read and judged hold up: precision, and what each guard does to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from twinsieve.pipeline.evaluate.evaluate import APART, batch_of
from twinsieve.pipeline.evaluate.truth import read_lines
from twinsieve.stages.contract import SIMILARITY_SCALE, Flag, Kind, SieveConfig, Window
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.judge.sieve import Sieve

HEADER = "set\tlater_id\tearlier_id\tsimilarity\tlabel\treason"
LABELS = ("same", "different", "unsure")


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """Two rows of one set that a reader labelled (see LABELS); similarity out of SIMILARITY_SCALE."""

    set: str
    later: str
    earlier: str
    similarity: int
    label: str
    reason: str


@dataclass(slots=True)
class JudgedRun:
    """What the sieve does with each judged pair alone, the earlier message first.

    dropped, kept: pairs by label; kept_apart: (pair, guard) of those that a guard alone kept
    """

    similarity: int
    number_guard: bool
    card_guard: bool
    dropped: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    kept_apart: list[tuple[JudgedPair, str]] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """same / (same + different) among the dropped; `unsure` is left out; 1.0 if nothing was dropped."""
        same, different = self.dropped["same"], self.dropped["different"]
        return same / (same + different) if same + different else 1.0


def read_judged(path: Path) -> list[JudgedPair]:
    """Every pair of a judged file: six columns by tabs, with a header.

    raises: UsageError naming path and line; FileError if it cannot be read
    """
    lines = read_lines(path)
    if not lines or lines[0] != HEADER:
        raise UsageError(f"{path}:1: not a file of judged pairs; its first line must be {HEADER.split()}")
    pairs = []
    for number, line in enumerate(lines[1:], start=2):
        cells = line.split("\t")
        if len(cells) != 6 or cells[4] not in LABELS:
            raise UsageError(f"{path}:{number}: expected 6 columns, the fifth one of {', '.join(LABELS)}")
        try:
            similarity = round(float(cells[3]) * SIMILARITY_SCALE)
        except (ValueError, OverflowError) as error:
            raise UsageError(f"{path}:{number}: similarity {cells[3]!r} is not a number") from error
        pairs.append(JudgedPair(cells[0], cells[1], cells[2], similarity, cells[4], cells[5]))
    return pairs


def run_judged(
    pairs: Sequence[JudgedPair],
    texts: Mapping[tuple[str, str], str],
    scheme: SchemeConfig,
    sieve: SieveConfig,
    similarities: Sequence[int],
) -> list[JudgedRun]:
    """One run for each similarity and each setting of the two guards; all pairs under one scheme.

    Each pair has a scope of its own, so that no pair meets another.
    texts: by (set, id)
    raises: UsageError if a text is missing
    """
    missing = [(p.set, i) for p in pairs for i in (p.later, p.earlier) if (p.set, i) not in texts]
    if missing:
        raise UsageError(
            f"judged pair names {missing[0][1]!r}, which {missing[0][0]} does not hold; give that set"
        )
    both = [texts[pair.set, name] for pair in pairs for name in (pair.earlier, pair.later)]
    batch = batch_of(*Scheme(scheme).read(both), scopes=[1 + row // 2 for row in range(len(both))])
    runs = []
    for similarity in similarities:
        for number_guard, card_guard in ((False, False), (True, False), (False, True), (True, True)):
            near = replace(
                sieve.near,
                similarity=similarity,
                window=Window(len(both)),
                number_guard=number_guard,
                card_guard=card_guard,
            )
            exact = replace(sieve.exact, window=Window(len(both)))
            verdicts = Sieve(replace(sieve, exact=exact, near=near, scoped=True)).judge(batch)
            run = JudgedRun(similarity, number_guard, card_guard)
            dropped, kept = Counter[str](), Counter[str]()
            later_rows = zip(pairs, verdicts.kinds[1::2].tolist(), verdicts.flags[1::2].tolist(), strict=True)
            for pair, kind, flags in later_rows:
                (kept if kind == Kind.UNIQUE else dropped)[pair.label] += 1
                if kind == Kind.UNIQUE and Flag(flags) & APART:
                    guards = [flag.name or "" for flag in Flag(flags) & APART]
                    run.kept_apart.append((pair, " ".join(guards).lower()))
            run.dropped = {label: dropped[label] for label in LABELS}
            run.kept = {label: kept[label] for label in LABELS}
            runs.append(run)
    return runs


def pool(runs: Sequence[JudgedRun]) -> JudgedRun:
    """Runs of the same setting over several sets, as one."""
    first = runs[0]
    return JudgedRun(
        first.similarity,
        first.number_guard,
        first.card_guard,
        {label: sum(run.dropped[label] for run in runs) for label in LABELS},
        {label: sum(run.kept[label] for run in runs) for label in LABELS},
        [apart for run in runs for apart in run.kept_apart],
    )


def judged_table(runs: Sequence[JudgedRun], name: str) -> Table:
    """Precision of drops among judged pairs, one row for each similarity and setting of the guards."""
    table = Table(title=Text(f"judged pairs, {name}"), title_justify="left")
    for column in ("similarity", "number guard", "card guard"):
        table.add_column(column)
    table.add_column("dropped " + "/".join(LABELS), justify="right")
    table.add_column("precision", justify="right")
    table.add_column("kept apart " + "/".join(LABELS), justify="right")
    for run in runs:
        apart = [sum(pair.label == label for pair, _ in run.kept_apart) for label in LABELS]
        table.add_row(
            f"{run.similarity / SIMILARITY_SCALE:.4g}",
            "on" if run.number_guard else "off",
            "on" if run.card_guard else "off",
            "/".join(str(run.dropped[label]) for label in LABELS),
            f"{run.precision:.3f}",
            "/".join(str(count) for count in apart),
        )
    return table
