"""Compares the sieve with readers' labels of pairs: precision and recall by set, band and reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path

from rich.table import Table
from rich.text import Text

from twinsieve.pipeline.evaluate.evaluate import batch_of
from twinsieve.pipeline.evaluate.truth import read_lines
from twinsieve.pipeline.messages.columns import similarity_at
from twinsieve.stages.contract import Batch, Kind, SieveConfig, Window
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

LABELS = ("same", "different", "unsure")
_COLUMNS = ["later_id", "earlier_id", "label"]
_Z = 1.96
_BANDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """Two rows of one set and a reader's label (LABELS)."""

    set: str
    later: str
    earlier: str
    label: str


@dataclass(frozen=True, slots=True)
class JudgedVerdict:
    """The verdict on a pair alone, the earlier message first.

    similarity: of the drop, or None for a kept one; reason: why it was kept though alike
    """

    pair: JudgedPair
    dropped: bool
    similarity: float | None
    reason: Rule


@dataclass(frozen=True, slots=True)
class Share:
    """hits of `of`, and the 95 % interval around it (Wilson)."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """0 to 1; 1 where there is nothing to hit."""
        return self.hits / self.of if self.of else 1.0

    @property
    def interval(self) -> tuple[float, float]:
        """source: Wilson 1927; exact enough for shares near 1, where the plain one leaves the range"""
        if not self.of:
            return 0.0, 1.0
        n, p = self.of, self.value
        middle, spread = p + _Z**2 / (2 * n), _Z * sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return (middle - spread) / (1 + _Z**2 / n), (middle + spread) / (1 + _Z**2 / n)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} ({low:.2f}-{high:.2f})"


def precision(verdicts: Iterable[JudgedVerdict]) -> Share:
    """`same` among the dropped ones; `unsure` counts for nothing."""
    labels = Counter(verdict.pair.label for verdict in verdicts if verdict.dropped)
    return Share(labels["same"], labels["same"] + labels["different"])


def recall(verdicts: Iterable[JudgedVerdict]) -> Share:
    """Dropped among the `same` ones."""
    same = [verdict.dropped for verdict in verdicts if verdict.pair.label == "same"]
    return Share(sum(same), len(same))


def read_judged(path: Path) -> list[JudgedPair]:
    """The pairs of a file with a header and columns by tabs: later_id, earlier_id, label, perhaps set; others
    are passed over.

    raises: UsageError naming path and line; FileError if it cannot be read
    """
    lines = read_lines(path)
    names = lines[0].split("\t") if lines else []
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        raise UsageError(f"{path}:1: the header lacks {', '.join(missing)}; columns stand between tabs")
    pairs = []
    for number, line in enumerate(lines[1:], start=2):
        cells = dict(zip(names, line.split("\t"), strict=False))
        if len(cells) < len(names) or cells["label"] not in LABELS:
            raise UsageError(f"{path}:{number}: expected {len(names)} columns, the label one of {LABELS}")
        pairs.append(JudgedPair(cells.get("set", ""), cells["later_id"], cells["earlier_id"], cells["label"]))
    return pairs


def judge_pairs(
    pairs: Sequence[JudgedPair], texts: Mapping[str, str], scheme: SchemeConfig, sieve: SieveConfig
) -> list[JudgedVerdict]:
    """The verdict on each pair. texts: by id

    raises: UsageError if a text is missing
    """
    return verdicts_of(pairs, batch_of_pairs(pairs, texts, scheme), sieve)


def batch_of_pairs(pairs: Sequence[JudgedPair], texts: Mapping[str, str], scheme: SchemeConfig) -> Batch:
    """Two rows a pair, the earlier message first, in a scope of its own, so that no pair meets another.

    raises: UsageError if a text is missing
    """
    for pair in pairs:
        for name in (pair.later, pair.earlier):
            if name not in texts:
                raise UsageError(f"a judged pair names {name!r}, which the input does not hold")
    both = [texts[name] for pair in pairs for name in (pair.earlier, pair.later)]
    return batch_of(*Scheme(scheme).read(both), scopes=[1 + row // 2 for row in range(len(both))])


def verdicts_of(pairs: Sequence[JudgedPair], batch: Batch, sieve: SieveConfig) -> list[JudgedVerdict]:
    """The verdicts on pairs from their batch, under one more configuration. batch: of `batch_of_pairs`"""
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
    """Precision and recall by set and by band; what each reason kept apart."""
    by_set = Table(title=Text("judged pairs"), title_justify="left")
    for name in ("set", "dropped " + "/".join(LABELS), "precision", "recall of same"):
        by_set.add_column(name, justify="left" if name == "set" else "right")
    sets = sorted({verdict.pair.set for verdict in verdicts})
    for name in [*sets, *(["all"] if len(sets) > 1 else [])]:
        some = [verdict for verdict in verdicts if name in ("all", verdict.pair.set)]
        by_set.add_row(name or "all", _labels(some, dropped=True), str(precision(some)), str(recall(some)))
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
