"""How well the sieve drops what it should, on sets whose true pairs are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.accuracy.data_sets import ARTICLES, DataSet, data_dir
from twinsieve.pipeline.tools.evaluate.evaluate import (
    VARIANTS,
    EvaluationReport,
    Variant,
    batch_of,
    read_texts,
    run_evaluate,
    variant_config,
)
from twinsieve.pipeline.tools.evaluate.scores import Counts
from twinsieve.stages.contract import MAX_SEGMENT, BandLayout, Kind, NearConfig, SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

NO_GUARD = Variant("letters", "off")


def scheme_of(data: DataSet) -> SchemeConfig:
    """The default scheme under the profile that the set's truth was made with."""
    return SchemeConfig(text=TextConfig(profile=data.profile))


_DEFAULT = BandLayout()


def evaluate(
    data: DataSet,
    at: int,
    variants: Sequence[Variant] = VARIANTS,
    layout: BandLayout = _DEFAULT,
    segment: int = MAX_SEGMENT,
) -> EvaluationReport:
    """The report on all rows of a set that its pairs cover. segment: kept messages of a segment"""
    return run_evaluate(
        data.texts,
        data.pairs,
        scheme=replace(scheme_of(data), layout=layout),
        sieve=SieveConfig(layout=layout, near=NearConfig(segment=segment)),
        similarity=at,
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
    config = variant_config(SieveConfig(), Variant("product", "guards"), at, len(ids))
    verdicts = BatchSieve(config).judge(batch)
    dropped = [row for row, kind in enumerate(verdicts.kinds.tolist()) if kind != Kind.UNIQUE]
    return {frozenset((ids[row], ids[int(verdicts.leaders[row])])) for row in dropped}, planted
