"""How well the sieve drops what it should, on sets whose true pairs are known."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
from rapidfuzz.fuzz import ratio
from rapidfuzz.process import cdist

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
from twinsieve.stages.contract import MAX_SEGMENT, MIN_NEAR_LENGTH, BandLayout, Kind, NearConfig, SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

NO_GUARD = Variant("letters", "off")
_OWN_BODIES = Variant("product", "off")


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


def own_truth_near(name: str, at: int) -> Counts:
    """Near counts of a set under the profile `plain`, differences off, by a full comparison of its own bodies."""
    texts = data_dir() / f"{name}_dev.jsonl.gz"
    ids, bodies = _bodies_of(texts)
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.tsv"
        pairs.write_text(
            "\n".join(["later\tearlier\tsimilarity\tkind", *_similar_pairs(ids, bodies, at)]) + "\n"
        )
        report = run_evaluate(
            texts,
            pairs,
            scheme=SchemeConfig(text=TextConfig(profile="plain")),
            sieve=SieveConfig(),
            similarity=at,
            rows=len(ids),
            variants=[_OWN_BODIES],
        )
    return pooled_near([report], _OWN_BODIES)


def _bodies_of(texts: Path) -> tuple[list[str], list[str]]:
    """Ids and bodies of a set."""
    with gzip.open(texts) as lines:
        rows = [orjson.loads(line) for line in lines]
    bodies, _ = Scheme(SchemeConfig(text=TextConfig(profile="plain"))).read([row["text"] for row in rows])
    found = [bodies.text(row)[:length] for row, length in enumerate(bodies.body_lengths.tolist())]
    return [row["id"] for row in rows], found


def _similar_pairs(ids: Sequence[str], bodies: Sequence[str], at: int) -> Iterator[str]:
    """A line for each two rows whose bodies are similar; short bodies are similar only if they are equal."""
    for start in range(0, len(bodies), 500):
        some = bodies[start : start + 500]
        scores = cdist(some, bodies, scorer=ratio, score_cutoff=at / 100, dtype=np.float32, workers=-1)
        for row, column in zip(*np.nonzero(scores), strict=True):
            later, earlier = start + int(row), int(column)
            alike = min(len(bodies[later]), len(bodies[earlier])) >= MIN_NEAR_LENGTH
            if earlier < later and (alike or bodies[later] == bodies[earlier] != ""):
                kind = "body" if bodies[later] == bodies[earlier] else "near"
                yield f"{ids[later]}\t{ids[earlier]}\t{scores[row, column] / 100:.4f}\t{kind}"


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
