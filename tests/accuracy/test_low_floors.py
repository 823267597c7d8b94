"""The index of profiles with a low floor finds similar bodies from there on; by string truth, differences off.

`python -m bench.floors` prints recall, cost and losses of many layouts.
"""

from __future__ import annotations

import pytest

from tests.accuracy.data_sets import POOLED, WEIBO
from tests.accuracy.quality import NO_GUARD, evaluate, pooled_near
from tests.generated import LANGUAGES, plain_bodies, profile_of, stream, true_pairs
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.stage_config import band_layout
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of, variant_config
from twinsieve.pipeline.tools.evaluate.scores import Counts, score
from twinsieve.pipeline.tools.evaluate.truth import Pair, Truth, ideal_pass
from twinsieve.stages.contract import BandLayout, Bodies, Kind, SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

ROWS = 1_600
IDS = [str(row) for row in range(ROWS)]
EDITS = 0.3
FLOORS = {"titles": 7_500, "microblog": 7_000}


def layout_of(profile: str) -> BandLayout:
    settings, findings = check_tree(tree_of({"profile": profile}))
    assert settings is not None, findings
    assert settings.near.similarity == FLOORS[profile]
    return band_layout(settings)


def near_counts(language: str, layout: BandLayout, truth: Truth, texts: list[str], at: int) -> Counts:
    text = TextConfig(profile=profile_of(language), body_rule="letters")
    bodies, prints = Scheme(SchemeConfig(text=text, layout=layout)).read(texts)
    config = variant_config(SieveConfig(layout=layout), NO_GUARD, at, len(texts))
    return _score(truth, bodies, BatchSieve(config).judge(batch_of(bodies, prints)).kinds.tolist())


def _score(truth: Truth, bodies: Bodies, kinds: list[int]) -> Counts:
    dropped = [kind != Kind.UNIQUE for kind in kinds]
    return score(truth, dropped, bodies.body_lengths.tolist()).near


@pytest.fixture(scope="module")
def streams() -> dict[str, tuple[list[str], list[Pair]]]:
    """Posts of each language, and their true pairs down to the lowest floor."""
    made = {}
    for language in LANGUAGES:
        texts = stream(language, ROWS, seed=12, most_edits=EDITS).texts
        made[language] = (
            texts,
            true_pairs(IDS, plain_bodies(texts, language, "letters"), min(FLOORS.values())),
        )
    return made


@pytest.mark.parametrize(("profile", "least"), [("titles", 0.99), ("microblog", 0.987)])
def test_in_every_language_the_profile_finds_what_its_floor_asks_for(
    streams: dict[str, tuple[list[str], list[Pair]]], profile: str, least: float
) -> None:
    at = FLOORS[profile]
    found, by_default = {}, {}
    for language, (texts, pairs) in streams.items():
        truth = ideal_pass(IDS, pairs, at)
        found[language] = near_counts(language, layout_of(profile), truth, texts, at)
        by_default[language] = near_counts(language, BandLayout(), truth, texts, at)
    assert min(counts.to_drop for counts in found.values()) > 190
    assert {name: counts.recall for name, counts in found.items() if counts.recall < 0.975} == {}
    # The default layout is made for .80.
    whole, default = (sum(each.values(), Counts()) for each in (found, by_default))
    assert whole.recall >= least
    assert whole.precision == 1.0
    assert whole.wrongly_kept < default.wrongly_kept


@pytest.mark.usefixtures("data_dir")
def test_near_recall_at_75_on_real_posts_is_what_is_stated() -> None:
    layout = layout_of("titles")
    assert layout == layout_of("microblog")
    weibo = evaluate(WEIBO, 7_500, (NO_GUARD,), layout).runs[0].scores.near
    pooled = pooled_near([evaluate(data, 7_500, (NO_GUARD,), layout) for data in POOLED])
    assert (weibo.to_drop, pooled.to_drop) == (1_347, 1_659)
    assert weibo.recall >= 0.985
    assert pooled.recall >= 0.975
    assert min(weibo.precision, pooled.precision) >= 0.995
