"""How well the sieve drops what it should, on sets whose true pairs are known."""

from __future__ import annotations

from collections.abc import Sequence

from tests.accuracy.data_sets import ARTICLES, POOLED, WEIBO, DataSet, data_dir
from tests.accuracy.judged import JudgedRun, pool, read_judged, run_judged
from twinsieve.pipeline.evaluate.evaluate import (
    VARIANTS,
    EvaluationReport,
    Variant,
    batch_of,
    read_texts,
    run_evaluate,
    variant_config,
)
from twinsieve.pipeline.evaluate.scores import Counts
from twinsieve.stages.contract import Kind, SieveConfig
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.judge.sieve import Sieve
from twinsieve.stages.text.rules import TextConfig

NO_GUARD = Variant("letters", number_guard=False, card_guard=False)
JUDGED_SETS = (WEIBO, *POOLED[:3])


def scheme_of(data: DataSet) -> SchemeConfig:
    """The default scheme under the profile that the set's truth was made with."""
    return SchemeConfig(text=TextConfig(profile=data.profile))


def evaluate(data: DataSet, at: int, variants: Sequence[Variant] = VARIANTS) -> EvaluationReport:
    """The report on all rows of a set that its pairs cover."""
    return run_evaluate(
        data.texts,
        data.pairs,
        scheme=scheme_of(data),
        sieve=SieveConfig(),
        at=at,
        rows=data.rows,
        variants=variants,
    )


def pooled_near(reports: Sequence[EvaluationReport], variant: Variant = NO_GUARD) -> Counts:
    """Near counts of one variant over the rows of several sets."""
    runs = [run for report in reports for run in report.runs if run.variant == variant]
    return sum((run.scores.near for run in runs), Counts())


def article_pairs(at: int) -> tuple[set[frozenset[str]], set[frozenset[str]]]:
    """(found, planted) pairs of long articles; found: every dropped one with its leader."""
    lines = (data_dir() / "articles_dev.truth.tsv").read_text().splitlines()[1:]
    planted = {frozenset(line.split("\t")) for line in lines}
    ids, texts = read_texts(ARTICLES.texts)
    batch = batch_of(*Scheme(scheme_of(ARTICLES)).read(texts))
    config = variant_config(SieveConfig(), Variant("product", True, True), at, len(ids))
    verdicts = Sieve(config).judge(batch)
    dropped = [row for row, kind in enumerate(verdicts.kinds.tolist()) if kind != Kind.UNIQUE]
    return {frozenset((ids[row], ids[int(verdicts.leaders[row])])) for row in dropped}, planted


def judged_runs(similarities: Sequence[int]) -> dict[str, list[JudgedRun]]:
    """Runs by set, and all of them pooled under `all`."""
    pairs = read_judged(data_dir() / "judged_dev.tsv")
    runs = {}
    for data in JUDGED_SETS:
        name = f"{data.name}_dev"
        texts = {(name, row): text for row, text in zip(*read_texts(data.texts), strict=True)}
        own = [pair for pair in pairs if pair.set == name]
        runs[name] = run_judged(own, texts, scheme_of(data), SieveConfig(), similarities)
    return runs | {"all": [pool(same) for same in zip(*runs.values(), strict=True)]}
