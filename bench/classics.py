"""Every classic recipe and the default on every data set: the tables of docs/CLASSICS.md.

    python -m bench.classics [--rows 2000] [--sets NAME …] [--recipes FILE …] [--page docs/CLASSICS.md]

Recipes: config/classic-*.yaml and the default, under the profile of the set. Sets: generated posts and
articles, and real ones where TWINSIEVE_DATA names their folder. A threshold (similarity, bits, or shared
hashes) is the best one by near F1 over the rows of the first half of a set; the scores are those of the rows
of the second half. Of the labelled pairs, every second one chooses the threshold, by F½, and the
others are judged. The famous pair is judged by the settings of the file. The tables replace those of the page
(a set that is missing leaves its table unchanged). Two runs differ in their times alone.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

from bench.classics_data import PAIR, markdown
from bench.classics_sets import AT, Rows, every_set
from bench.machine import machine_line
from tests.accuracy.data_sets import named_dir
from tests.accuracy.labels import judged_pairs, texts_of
from twinsieve.pipeline.settings.load import Override, check_tree, tree_of, tree_of_file
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    JudgedVerdict,
    batch_of_pairs,
    judge_pairs,
    precision,
    recall,
    verdicts_of,
)
from twinsieve.pipeline.tools.evaluate.scores import Scores, score
from twinsieve.pipeline.tools.evaluate.truth import Truth, ideal_pass
from twinsieve.stages.contract import SIMILARITY_SCALE, Batch, Kind, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "CLASSICS.md"
HEAD = (
    "recipe",
    "threshold",
    "precision",
    "recall",
    "near F1",
    "labels: threshold",
    "precision",
    "recall",
    "µs",
    "bytes",
    "the pair",
)
_TRIED: dict[str, tuple[str, tuple[str, ...]]] = {
    "text": ("near.similarity", ("0.7", "0.75", "0.8", "0.85", "0.9", "0.95")),
    "hamming": ("near.distances", tuple(f"8:{k}" for k in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12))),
    "signatures": ("near.signature.share", ("1", "2", "3", "4", "5", "6", "8", "10", "all")),
}
"""The key that holds the threshold of a method, and the values to try; a value that `lint` refuses is not."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A recipe with one value of its threshold."""

    value: str
    scheme: SchemeConfig
    sieve: SieveConfig

    @classmethod
    def of(cls, settings: Settings) -> Threshold:
        near = settings.near
        value = "–"
        if near.method == "text":
            value = f"{near.similarity / SIMILARITY_SCALE:g}"
        elif near.method == "hamming":
            value = "k " + ", ".join(str(k) for _, k in sorted(near.distances.items()))
        elif near.method == "signatures":
            value = f"share {near.signature.share or 'all'}"
        return cls(value, scheme_config(settings), sieve_config(settings, ""))


@dataclass(frozen=True, slots=True)
class Recipe:
    """A settings file, or the default (no path)."""

    path: Path | None

    @property
    def name(self) -> str:
        return "default" if self.path is None else self.path.stem.removeprefix("classic-")

    def thresholds(self, profile: str) -> list[Threshold]:
        """The recipe as its file has it, then with every other threshold that its method takes."""
        settings = self._settings(profile)
        assert settings is not None
        key, values = _TRIED.get(settings.near.method, ("", ()))
        others = [self._settings(profile, Override(key, value, "bench.classics")) for value in values]
        by_value: dict[str, Threshold] = {}
        for threshold in (Threshold.of(each) for each in (settings, *others) if each is not None):
            by_value.setdefault(threshold.value, threshold)
        return list(by_value.values())

    def _settings(self, profile: str, *more: Override) -> Settings | None:
        """Its settings under a profile; None if they are refused with these overrides."""
        tree = tree_of({}) if self.path is None else tree_of_file(self.path)
        overrides = [Override("profile", profile, "bench.classics"), *more]
        settings, findings = check_tree(tree, None, overrides, on_files=True)
        if findings and not more:
            sys.exit("\n".join(map(str, findings)))
        return None if findings else settings


def recipes(paths: Sequence[Path]) -> list[Recipe]:
    """The default, then the given files, or all classic ones."""
    return [Recipe(None), *map(Recipe, paths or sorted((ROOT / "config").glob("classic-*.yaml")))]


class Measured:
    """One set under one recipe. Texts are read once for each scheme."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._truth = ideal_pass(rows.ids, rows.true_pairs, AT)
        self._batches: dict[SchemeConfig, tuple[Batch, float]] = {}
        self._pairs = labelled().get(rows.name, [])
        self._pair_batches: dict[SchemeConfig, Batch] = {}

    def halves(self, threshold: Threshold) -> tuple[Scores, Scores]:
        """Scores of the first and of the second half of the rows, in one run over all."""
        batch = self._batch(threshold)[0]
        dropped = (_sieve(threshold, len(batch)).judge(batch).kinds != Kind.UNIQUE).tolist()
        lengths, middle, truth = batch.bodies.body_lengths.tolist(), len(batch) // 2, self._truth
        first, second = (
            score(
                Truth(truth.leaders[part], truth.similarities[part], truth.seen_before[part]),
                dropped[part],
                lengths[part],
            )
            for part in (slice(None, middle), slice(middle, None))
        )
        return first, second

    def cost(self, threshold: Threshold) -> tuple[float, float]:
        """(µs a message, bytes a kept message) of all rows."""
        batch, seconds = self._batch(threshold)
        sieve = _sieve(threshold, len(batch))
        start = perf_counter()
        sieve.judge(batch)
        seconds += perf_counter() - start
        stats = sieve.stats()
        return seconds / len(batch) * 1e6, stats.bytes_used / stats.held

    def by_labels(self, thresholds: Sequence[Threshold]) -> tuple[str, str, str]:
        """(threshold, precision, recall) of every second labelled pair; the others choose the threshold."""
        if not self._pairs:
            return "–", "–", "–"

        def worth(judged: tuple[str, list[JudgedVerdict]]) -> float:
            return _f_half(precision(judged[1][::2]).value, recall(judged[1][::2]).value)

        value, verdicts = max(((each.value, self._on_pairs(each)) for each in thresholds), key=worth)
        return value, str(precision(verdicts[1::2])), str(recall(verdicts[1::2]))

    def _on_pairs(self, threshold: Threshold) -> list[JudgedVerdict]:
        if threshold.scheme not in self._pair_batches:
            texts = texts_of(self._rows.name)
            self._pair_batches[threshold.scheme] = batch_of_pairs(self._pairs, texts, threshold.scheme)
        return verdicts_of(self._pairs, self._pair_batches[threshold.scheme], threshold.sieve)

    def _batch(self, threshold: Threshold) -> tuple[Batch, float]:
        """All rows with their fingerprints, and the seconds it took to make them."""
        if threshold.scheme not in self._batches:
            scheme = Scheme(threshold.scheme)
            scheme.read(self._rows.texts[:20])
            start = perf_counter()
            batch = batch_of(*scheme.read(self._rows.texts))
            self._batches[threshold.scheme] = batch, perf_counter() - start
        return self._batches[threshold.scheme]


def _sieve(threshold: Threshold, rows: int) -> BatchSieve:
    """An empty sieve whose windows hold all rows."""
    exact, near, window = threshold.sieve.exact, threshold.sieve.near, Window(rows)
    return BatchSieve(
        replace(threshold.sieve, exact=replace(exact, window=window), near=replace(near, window=window))
    )


def _f_half(precision_: float, recall_: float) -> float:
    """F with beta 1/2. F1 would choose to drop all pairs where most of them are labelled the same."""
    below = 0.25 * precision_ + recall_
    return 1.25 * precision_ * recall_ / below if below else 0.0


def row(recipe: Recipe, rows: Rows) -> list[str]:
    """The line of one recipe in the table of one set."""
    measured, thresholds = Measured(rows), recipe.thresholds(rows.profile)
    halves = [measured.halves(each) for each in thresholds]
    # Of equal ones the first: that of the file.
    best = max(range(len(halves)), key=lambda number: halves[number][0].near.f1)
    scores = halves[best][1]
    micros, held = measured.cost(thresholds[best])
    return [
        recipe.name,
        thresholds[best].value,
        f"{scores.every.precision:.3f}",
        f"{scores.every.recall:.3f}",
        f"{scores.near.f1:.3f}",
        *measured.by_labels(thresholds),
        f"{micros:,.0f}",
        f"{held:,.0f}",
        "dropped" if _drops_pair(thresholds[0]) else "kept",
    ]


@cache
def labelled() -> dict[str, list[JudgedPair]]:
    """The labelled pairs, by set."""
    by_set: dict[str, list[JudgedPair]] = {}
    for pair in judged_pairs() if named_dir() is not None else []:
        by_set.setdefault(pair.set, []).append(pair)
    return by_set


def _drops_pair(threshold: Threshold) -> bool:
    texts = dict(zip(("earlier", "later"), PAIR, strict=True))
    pairs = [JudgedPair("", "later", "earlier", "same")]
    return judge_pairs(pairs, texts, threshold.scheme, threshold.sieve)[0].dropped


def tables(chosen: Sequence[Recipe], rows: int, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name of a set, its table), one after the other."""
    for make in every_set(rows):
        data = make()
        if names and data.name not in names:
            continue
        truth = ideal_pass(data.ids, data.true_pairs, AT)
        to_drop = sum(leader >= 0 for leader in truth.leaders[len(data.ids) // 2 :])
        note = f"{data.name}: {len(data.ids):,} messages; {to_drop:,} of the second half are to be dropped."
        yield data.name, f"{note}\n\n{markdown(HEAD, [row(recipe, data) for recipe in chosen])}"


def written(page: str, name: str, table: str) -> str:
    """The page with the new table of one set, if it shows that set."""
    place = re.compile(rf"(<!-- bench\.classics: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    return place.sub(lambda part: f"{part[1]}{table}{part[2]}", page)


def main() -> None:
    """Print machine and tables; write those into the page that it shows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000, help="of each set, at most")
    parser.add_argument("--sets", nargs="+", default=[], help="names of sets; default: all")
    parser.add_argument(
        "--recipes", nargs="+", type=Path, default=[], help="files; default: config/classic-*"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="the page that gets the tables")
    options = parser.parse_args()
    print(machine_line())
    page = options.page.read_text("utf-8")
    for name, table in tables(recipes(options.recipes), options.rows, options.sets):
        print(table, flush=True)
        page = written(page, name, table)
    options.page.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
