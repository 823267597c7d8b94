"""Compare the sieve with the labels of pairs: precision and recall by set, by similarity and by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import NormalDist

from rich.table import Table
from rich.text import Text

from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.messages.verdict_values import similarity_at
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.evaluate.row_names import is_by_number
from twinsieve.pipeline.tools.evaluate.truth import read_lines
from twinsieve.stages.contract import Batch, Kind, SieveConfig, Window
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

LABELS = ("same", "different", "unsure")
_COLUMNS = ["later_id", "earlier_id", "label"]
_BANDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """The names of two rows (`row_names`), and the label of the pair (one of LABELS).

    set: name of the group of pairs to which it belongs; "" for none
    """

    set: str
    later: str
    earlier: str
    label: str


@dataclass(frozen=True, slots=True)
class JudgedVerdict:
    """The verdict on the later message of a pair that was judged alone, the earlier message first.

    similarity: similarity of the two messages if the later one was dropped, else None
    reason: why the later message was kept although it is similar
    """

    pair: JudgedPair
    dropped: bool
    similarity: float | None
    reason: Rule


@dataclass(frozen=True, slots=True)
class Share:
    """The share hits / of, with its 95 % confidence interval (Wilson)."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share, 0 to 1; 1 if `of` is 0."""
        return self.hits / self.of if self.of else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the 95 % interval."""
        return self.interval_at(0.95)

    def interval_at(self, level: float) -> tuple[float, float]:
        """Both ends of the interval that holds the true share with a probability of `level`."""
        return wilson(self.value, self.of, level)

    def __str__(self) -> str:
        if not self.of:
            return "–"
        low, high = self.interval
        return f"{self.value:.3f} ({low:.2f}-{high:.2f})"


def wilson(share: float, of: float, level: float) -> tuple[float, float]:
    """Both ends of the confidence interval of a share. For shares near 1 the usual interval would exceed 1;
    this one does not.

    of: number of cases, not necessarily whole; with none the interval is 0 to 1
    level: probability with which the interval holds the true share, as 0.95
    source: Wilson 1927
    """
    if not of:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle, spread = share + z**2 / (2 * of), z * sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    return (middle - spread) / (1 + z**2 / of), (middle + spread) / (1 + z**2 / of)


def precision(verdicts: Iterable[JudgedVerdict]) -> Share:
    """The share of pairs labelled `same` among the dropped pairs, without pairs labelled `unsure`."""
    labels = Counter(verdict.pair.label for verdict in verdicts if verdict.dropped)
    return Share(labels["same"], labels["same"] + labels["different"])


def recall(verdicts: Iterable[JudgedVerdict]) -> Share:
    """The share of dropped pairs among the pairs labelled `same`."""
    same = [verdict.dropped for verdict in verdicts if verdict.pair.label == "same"]
    return Share(sum(same), len(same))


def read_judged(path: Path) -> list[JudgedPair]:
    """The pairs of a tab-separated file with a header and the columns later_id, earlier_id, label, and
    optionally set. Other columns are ignored.

    raises: UsageError, which names path and line, for another format, and for a pair of a row with itself;
        FileError if the file cannot be read
    """
    lines = read_lines(path)
    names = lines[0].split("\t") if lines else []
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise UsageError(f"{path}:1: the header lacks {', '.join(missing)}; separate its columns with tabs")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{path}:1: the header has the column {twice!r} twice; remove one")
    pairs = []
    for number, line in enumerate(lines[1:], start=2):
        values = line.split("\t")
        if len(values) != len(names):
            raise UsageError(
                f"{path}:{number}: {len(values)} columns, expected {len(names)}, as in the header"
            )
        cells = dict(zip(names, values, strict=True))
        if cells["label"] not in LABELS:
            raise UsageError(f"{path}:{number}: label {cells['label']!r} is not one of {', '.join(LABELS)}")
        if cells["later_id"] == cells["earlier_id"]:
            raise UsageError(f"{path}:{number}: both ids are {cells['later_id']!r}; a pair has two rows")
        pairs.append(JudgedPair(cells.get("set", ""), cells["later_id"], cells["earlier_id"], cells["label"]))
    return pairs


def names_in(pairs: Iterable[JudgedPair]) -> set[str]:
    """The names of all rows in these pairs."""
    return {name for pair in pairs for name in (pair.later, pair.earlier)}


def judge_pairs(
    pairs: Sequence[JudgedPair], texts: Mapping[str, str], scheme: SchemeConfig, sieve: SieveConfig
) -> list[JudgedVerdict]:
    """The verdict on each pair. A pair has its own scope, so that it is not compared with other pairs.

    texts: the text of each name
    raises: UsageError if the text of a pair is missing
    """
    return verdicts_of(pairs, batch_of_pairs(pairs, texts, scheme), sieve)


def batch_of_pairs(pairs: Sequence[JudgedPair], texts: Mapping[str, str], scheme: SchemeConfig) -> Batch:
    """Two rows for each pair, the earlier message first, in a scope of their own.

    texts: the text of each name
    raises: UsageError if the text of a pair is missing
    """
    for pair in pairs:
        for name in (pair.later, pair.earlier):
            if name not in texts:
                what, advice = "row", ""
                if not is_by_number(name):
                    what, advice = "id", ", and its field of ids with --id-field"
                raise UsageError(
                    f"a labelled pair names {what} {name!r}, which is not in the input; give the labels of "
                    f"this input{advice}"
                )
    both = [texts[name] for pair in pairs for name in (pair.earlier, pair.later)]
    return batch_of(*Scheme(scheme).read(both), scopes=[1 + row // 2 for row in range(len(both))])


def verdicts_of(pairs: Sequence[JudgedPair], batch: Batch, sieve: SieveConfig) -> list[JudgedVerdict]:
    """The verdict on each pair. batch: the result of `batch_of_pairs` for these pairs"""
    if not pairs:
        return []
    window = Window(len(batch))
    exact, near = replace(sieve.exact, window=window), replace(sieve.near, window=window)
    judged = BatchSieve(replace(sieve, exact=exact, near=near, scoped=True)).judge(batch)
    verdicts = []
    for number, pair in enumerate(pairs):
        row = 2 * number + 1
        kind = Kind(int(judged.kinds[row]))
        similarity = 1.0 if kind == Kind.EXACT else similarity_at(judged, row) if kind == Kind.NEAR else None
        verdicts.append(JudgedVerdict(pair, kind != Kind.UNIQUE, similarity, Rule(int(judged.reasons[row]))))
    return verdicts


def judged_tables(verdicts: Sequence[JudgedVerdict]) -> list[Table]:
    """Tables of precision and recall by set, of precision by similarity, and of labels of the kept pairs by
    reason."""
    by_set = Table(title=Text("judged pairs"), title_justify="left")
    for name in ("set", "dropped " + "/".join(LABELS), "precision", "recall of same"):
        by_set.add_column(name, justify="left" if name == "set" else "right")
    sets = sorted({verdict.pair.set for verdict in verdicts})
    groups = [(name, [verdict for verdict in verdicts if verdict.pair.set == name]) for name in sets]
    for name, some in [*groups, *([("all", list(verdicts))] if len(sets) > 1 else [])]:
        # A set may be called anything, also "all".
        shown = printable(name) or ("all" if len(sets) == 1 else "(no set)")
        by_set.add_row(Text(shown), _labels(some, dropped=True), str(precision(some)), str(recall(some)))
    bands = Table(title=Text("dropped, by similarity"), title_justify="left")
    for name in ("similarity", "/".join(LABELS), "precision"):
        bands.add_column(name, justify="right")
    for low, high in zip(_BANDS, (*_BANDS[1:], 2.0), strict=True):
        some = [row for row in verdicts if row.similarity is not None and low <= row.similarity < high]
        if some:
            bands.add_row(f"from {low:g}", _labels(some, dropped=True), str(precision(some)))
    reasons = Table(title=Text("kept apart, by reason"), title_justify="left")
    reasons.add_column("reason")
    reasons.add_column("/".join(LABELS), justify="right")
    for reason in Rule:
        some = [verdict for verdict in verdicts if reason and verdict.reason == reason]
        if some:
            reasons.add_row(reason.words, _labels(some, dropped=False))
    return [by_set, bands, reasons]


def _labels(verdicts: Iterable[JudgedVerdict], *, dropped: bool) -> str:
    counts = Counter(verdict.pair.label for verdict in verdicts if verdict.dropped == dropped)
    return "/".join(str(counts[label]) for label in LABELS)
