"""How well the sieve drops what it should: the accuracy tables of docs/BENCHMARKS.md.

    python -m bench.quality [weibo] [pooled] [articles] [languages]

Data: TWINSIEVE_DATA (tests/accuracy/data_sets.py). Windows cover the whole input. `languages`: five more
languages, whose true pairs are found here by a full comparison of this version's own bodies; takes minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console

from bench.machine import machine_line
from tests.accuracy.data_sets import MORE_LANGUAGES, POOLED, WEIBO
from tests.accuracy.quality import article_pairs, evaluate, own_truth_near, pooled_near
from twinsieve.pipeline.tools.evaluate.evaluate import (
    VARIANTS,
)
from twinsieve.pipeline.tools.evaluate.report_tables import report_tables
from twinsieve.stages.contract import SIMILARITY_SCALE


def show_weibo(console: Console) -> None:
    for at in (8_500, 8_000):
        console.print(*report_tables(evaluate(WEIBO, at)), sep="\n")


def show_pooled(console: Console) -> None:
    reports = [evaluate(data, 8_500) for data in POOLED]
    for report in reports:
        console.print(*report_tables(report), sep="\n")
    for variant in VARIANTS:
        near = pooled_near(reports, variant)
        console.print(
            f"pooled, {variant}: near F1 {near.f1:.4f}, P {near.precision:.4f}, R {near.recall:.4f} "
            f"({near.to_drop:,} rows to drop, {near.wrongly_kept} wrongly kept, "
            f"{near.wrongly_dropped} wrongly dropped)"
        )


def show_articles(console: Console) -> None:
    for at in (8_500, 8_000):
        found, planted = article_pairs(at)
        hits = len(found & planted)
        console.print(
            f"articles_dev at {at / SIMILARITY_SCALE}: {hits} of {len(planted)} planted pairs found, "
            f"{len(found) - hits} others dropped"
        )


def show_languages(console: Console) -> None:
    for name in MORE_LANGUAGES:
        near = own_truth_near(name, 8_500)
        console.print(
            f"{name}_dev at .85, own bodies, no differences: near F1 {near.f1:.4f}, {near.to_drop:,} rows to "
            f"drop, {near.wrongly_kept} wrongly kept, {near.wrongly_dropped} wrongly dropped"
        )


PARTS: dict[str, Callable[[Console], None]] = {
    "weibo": show_weibo,
    "pooled": show_pooled,
    "articles": show_articles,
    "languages": show_languages,
}


def main() -> None:
    console = Console(width=180, highlight=False)
    console.print(machine_line())
    for name in sys.argv[1:] or ("weibo", "pooled", "articles"):
        PARTS[name](console)


if __name__ == "__main__":
    main()
