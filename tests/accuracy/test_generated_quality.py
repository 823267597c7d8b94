"""What is claimed of accuracy on real posts, on generated ones of every language: these tests run everywhere.

The truth is a full comparison by rapidfuzz of bodies made by regular expressions (`tests/generated.py`), so that a
broken kernel cannot hide behind itself. Bounds are at least as tight as those on real posts in `test_quality.py`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
import pytest
from rapidfuzz.distance import Indel, LCSseq

from bench.articles import generate_articles
from tests.generated import (
    LANGUAGES,
    Stream,
    articles,
    plain_bodies,
    polls,
    profile_of,
    stream,
    true_pairs,
)
from tests.property.streams import table, told_by_oracle
from twinsieve.pipeline.tools.evaluate.evaluate import (
    EvaluationReport,
    Variant,
    batch_of,
    run_evaluate,
    variant_config,
)
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, JudgedVerdict, judge_pairs, precision
from twinsieve.pipeline.tools.evaluate.scores import Counts
from twinsieve.pipeline.tools.evaluate.truth import HEADER
from twinsieve.stages.contract import (
    SIMILARITY_SCALE,
    STORED_LENGTH,
    Batch,
    Kind,
    SieveConfig,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

ROWS = 1_000
LEAST = 8_000
NO_GUARD = Variant("letters", "off")
PRODUCT = Variant("product", "off")
GUARDED = Variant("product", "guards")
LEAST_F1 = dict.fromkeys(LANGUAGES, (0.9965, 0.994)) | {"ru": (0.9955, 0.992)}
"""F1 of all rows and of near ones at .85. Russian reached the bounds of the others with 24 x 4 bands of letters
and pairs; the index of 28 x 3 bands by script, better on all other sets, measures .9960 and .9929 on it."""


class Files(NamedTuple):
    """Posts of one language and their true pairs, as `evaluate` reads them."""

    language: str
    posts: Path
    pairs: Path

    def report(self, at: int, *variants: Variant) -> EvaluationReport:
        return run_evaluate(
            self.posts,
            self.pairs,
            scheme=scheme_of(self.language),
            sieve=SieveConfig(),
            similarity=at,
            rows=ROWS,
            variants=variants,
        )


def scheme_of(language: str) -> SchemeConfig:
    return SchemeConfig(text=TextConfig(profile=profile_of(language)))


def batch_in(language: str, texts: list[str]) -> Batch:
    return batch_of(*Scheme(scheme_of(language)).read(texts))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Files]:
    folder = tmp_path_factory.mktemp("generated")
    made = []
    for language in LANGUAGES:
        texts = stream(language, ROWS).texts
        ids = [str(row) for row in range(ROWS)]
        pairs = true_pairs(ids, plain_bodies(texts, language, "letters"), LEAST)
        lines = [
            f"{pair.later}\t{pair.earlier}\t{pair.similarity / SIMILARITY_SCALE:.4f}\t"
            f"{'body' if pair.equal else 'near'}"
            for pair in pairs
        ]
        one = Files(language, folder / f"{language}.jsonl", folder / f"{language}.tsv")
        one.posts.write_bytes(
            b"".join(
                orjson.dumps({"id": name, "text": text}) + b"\n"
                for name, text in zip(ids, texts, strict=True)
            )
        )
        one.pairs.write_text("\n".join([HEADER, *lines, ""]))
        made.append(one)
    return made


@pytest.fixture(scope="module")
def reports(files: list[Files]) -> dict[str, EvaluationReport]:
    return {one.language: one.report(8_500, NO_GUARD, PRODUCT, GUARDED) for one in files}


def near_counts(reports: dict[str, EvaluationReport], run: int) -> Counts:
    return sum((report.runs[run].scores.near for report in reports.values()), Counts())


@pytest.mark.parametrize("run", [0, 1], ids=["truth's body rule", "product's body rule"])
def test_every_language_at_85_reaches_the_f1_of_real_posts(
    reports: dict[str, EvaluationReport], run: int
) -> None:
    assert {language for language, report in reports.items() if report.near_to_drop < 250} == set()
    short = {
        language: (report.runs[run].scores.every.f1, report.runs[run].scores.near.f1)
        for language, report in reports.items()
        if report.runs[run].scores.every.f1 < LEAST_F1[language][0]
        or report.runs[run].scores.near.f1 < LEAST_F1[language][1]
    }
    assert short == {}
    assert near_counts(reports, run).f1 >= 0.997


def test_near_recall_at_85_is_high_for_every_length(reports: dict[str, EvaluationReport]) -> None:
    names = ("8-16", "16-32", "32-64", "64-140", "140-")
    counts = {
        name: sum((report.runs[0].scores.near_by_length[name] for report in reports.values()), Counts())
        for name in names
    }
    assert min(count.to_drop for count in counts.values()) > 60
    assert {name: count.recall for name, count in counts.items() if count.recall < 0.985} == {}


def test_every_language_at_80_reaches_the_near_f1_of_real_posts(files: list[Files]) -> None:
    reports = {one.language: one.report(8_000, NO_GUARD) for one in files}
    found = {language: report.runs[0].scores.near.f1 for language, report in reports.items()}
    assert min(found.values()) >= 0.992, found
    assert near_counts(reports, 0).f1 >= 0.995


def test_guards_keep_few_rows_and_drop_no_others(reports: dict[str, EvaluationReport]) -> None:
    for report in reports.values():
        free, guarded = report.runs[1], report.runs[2]
        # One row in 25 is its source with another number; edits that hit numbers and negations come on top.
        assert 0.02 * ROWS < sum(guarded.kept_apart.values()) < 0.09 * ROWS
        assert guarded.scores.every.wrongly_dropped <= free.scores.every.wrongly_dropped + 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_near_verdict_names_an_earlier_kept_post_and_how_alike_it_is(language: str) -> None:
    texts = stream(language, ROWS, seed=2).texts
    batch = batch_in(language, texts)
    plain = [row.key for row in plain_bodies(texts, language, "product")]
    verdicts = BatchSieve(variant_config(SieveConfig(), GUARDED, 8_500, ROWS)).judge(batch)
    near = np.flatnonzero(verdicts.kinds == Kind.NEAR).tolist()
    assert len(near) > 190
    wrong = []
    for row in near:
        leader = int(verdicts.leaders[row])
        a, b = plain[row], plain[leader]
        said = (int(verdicts.matched[row]), int(verdicts.compared[row]))
        alike = said == (2 * LCSseq.similarity(a, b), len(a) + len(b))
        if not (alike and leader < row and verdicts.kinds[leader] == Kind.UNIQUE):
            wrong.append((row, leader, said))
        assert Indel.normalized_similarity(a, b) >= 0.85 - 1e-9
    assert wrong == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_articles_lead_to_the_planted_pairs_and_to_nothing_else(language: str) -> None:
    made = articles(language, 150, 10)
    batch = batch_in(language, made.texts)
    assert batch.bodies.body_lengths.min() > STORED_LENGTH
    verdicts = BatchSieve(variant_config(SieveConfig(), PRODUCT, 8_500, len(made))).judge(batch)
    found = {
        row: int(verdicts.leaders[row]) for row in np.flatnonzero(verdicts.kinds != Kind.UNIQUE).tolist()
    }
    planted = {row: source for row, source in enumerate(made.sources) if source >= 0}
    assert len(planted) == 10
    assert found == planted


def test_reprints_of_generated_articles_are_dropped_and_what_looks_like_them_is_kept() -> None:
    rows = list(generate_articles(500, seed=4, truth=True))
    batch = batch_in("en", ["\n".join((row["title"], row["lead"], row["text"])) for row in rows])
    kinds = BatchSieve(variant_config(SieveConfig(), GUARDED, 7_000, len(rows))).judge(batch).kinds.tolist()
    dropped = Counter(row["kind"] for row, kind in zip(rows, kinds, strict=True) if kind != Kind.UNIQUE)
    total = Counter(row["kind"] for row in rows)
    assert min(total[kind] for kind in ("numbers", "topic")) > 10
    assert set(dropped) == {"whole", "cut", "new_title", "moved", "agency"}
    assert dropped["whole"] == total["whole"]
    assert {kind: count for kind, count in dropped.items() if count < 0.8 * total[kind]} == {}


def judged_of(name: str, made: Stream) -> list[JudgedPair]:
    """Repeats that are alike enough to be dropped, with what the generator knows of them."""
    rows = plain_bodies(made.texts, name, "product")
    pairs = []
    for row, (origin, source) in enumerate(zip(made.origins, made.sources, strict=True)):
        if source < 0:
            continue
        similarity = int(SIMILARITY_SCALE * Indel.normalized_similarity(rows[row].key, rows[source].key))
        if similarity >= 8_500:
            label = "different" if origin in ("number", "answer") else "same"
            pairs.append(JudgedPair(name, str(row), str(source), label))
    return pairs


def test_guards_raise_the_precision_of_drops_among_pairs_of_known_origin() -> None:
    free: list[JudgedVerdict] = []
    guarded: list[JudgedVerdict] = []
    for language, made in [(name, stream(name, 500, seed=3)) for name in LANGUAGES] + [("zh", polls(250))]:
        texts = {str(row): text for row, text in enumerate(made.texts)}
        pairs, scheme = judged_of(language, made), scheme_of(language)
        for variant, verdicts in ((PRODUCT, free), (GUARDED, guarded)):
            config = variant_config(SieveConfig(), variant, 8_500, len(texts))
            verdicts += judge_pairs(pairs, texts, scheme, config)
    assert sum(one.dropped for one in free if one.pair.label == "different") > 90
    assert precision(free).value < 0.9 < 0.99 <= precision(guarded).value
    kept = [one.pair.label for one in guarded if one.reason and not one.dropped]
    assert kept.count("different") >= 2 * kept.count("same")


@pytest.mark.matrix
@pytest.mark.parametrize("language", LANGUAGES)
def test_sieve_that_scans_gives_the_plain_loops_verdicts(language: str) -> None:
    texts = [*stream(language, 400, seed=4).texts, *(polls(60).texts if language == "zh" else [])]
    batch = batch_in(language, texts)
    config = variant_config(SieveConfig(), GUARDED, 8_500, len(texts))
    config = replace(config, near=replace(config.near, candidates="scan"))
    verdicts = BatchSieve(config).judge(batch)
    rows = zip(table(verdicts), told_by_oracle(config, batch), strict=True)
    different = [(row, found, expected) for row, (found, expected) in enumerate(rows) if found != expected]
    assert different == []
    assert Rule.NUMBER in verdicts.reasons
    assert (Rule.CARD in verdicts.reasons) == (language == "zh")
