"""The tables of README.md and docs/BENCHMARKS.md on labelled pairs, from the counts of them."""

from __future__ import annotations

from collections.abc import Callable

from tests.accuracy.label_counts import HALF, NONE, OTHERS, OWN, PROFILE, WHOLE_RUN, Counts, stored
from tests.accuracy.labels import configured
from tests.accuracy.whole_runs import RUN_PROFILES
from twinsieve.pipeline.tools.evaluate.judged import Share
from twinsieve.stages.contract import SIMILARITY_SCALE

_TEXTS = {
    "weibo_dev": "Weibo posts",
    "comments_dev": "comments on Weibo",
    "tweets_dev": "English tweets",
    "world_dev": "tweets in many languages",
    "th_posts_dev": "Thai posts",
    "ko_comments_dev": "Korean comments",
    "ar_tweets_dev": "Arabic tweets",
    "headlines_dev": "English headlines",
    "titles_dev": "Chinese titles",
    "id_products_dev": "Indonesian product titles",
    "sms_dev": "Chinese spam SMS",
    "ja_reviews_dev": "Japanese hotel reviews",
    "ja_tweets_dev": "Japanese jokes",
}
"""What each set holds, in the order of the tables."""


_FIRST = ("weibo_dev", "comments_dev", "tweets_dev", "headlines_dev")
_WEAK = {
    "weibo_dev": "another post before a shared topic;",
    "comments_dev": "another remark before the same words;",
    "tweets_dev": "a newer count, another remark on the same event;",
    "world_dev": "a newer count, another remark on the same event;",
    "th_posts_dev": "a short question or answer about another thing;",
    "ar_tweets_dev": "another comment before the same tags;",
    "headlines_dev": "one changed word changes the event;",
    "id_products_dev": "another size or model of one product;",
    "sms_dev": "another bank or offer in one template;",
    "ja_reviews_dev": "another thing praised in the same words;",
    "ja_tweets_dev": "the same joke with another punchline;",
}
"""What is wrong with wrong drops of a set."""
_GOOD = 0.95


def by_profile() -> str:
    """For README: what to expect of the profile for each kind of text."""
    table = stored()
    rows = [
        "| your texts | profile | threshold | sample of drops: right / wrong / unsure | precision "
        "| unseen kind: precision | unseen kind: recall |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, texts in _TEXTS.items():
        run, others = table[WHOLE_RUN].get(name), table[OTHERS].get(name)
        if run is None:
            continue
        similarity = configured(RUN_PROFILES[name])[1].near.similarity / SIMILARITY_SCALE
        pairs = [shown(others.precision), shown(others.recall)] if others else ["–", "–"]
        cells = [texts, _profile(name), f"{similarity:.2f}".lstrip("0"), _labels(run), shown(run.precision)]
        rows.append(f"| {' | '.join([*cells, *pairs])} |")
    return "\n".join(rows) + "\n"


def in_short() -> str:
    """For the first screen of README: the same sample of drops in a sentence."""
    run = stored()[WHOLE_RUN]
    told = {name: f"{run[name].right} of {run[name].right + run[name].wrong}" for name in _FIRST}
    posts = f"{told['weibo_dev']} Weibo posts and {told['comments_dev']} Weibo comments"
    english = f"{told['tweets_dev']} English tweets and {told['headlines_dev']} English headlines"
    kind = "With the [profile](#which-profile) for the kind of text"
    begin = f"**How good is it?** {kind}, near drops are right for\n{posts}"
    return f"{begin}, for {english}, by the labels of a language model.\n"


def weak_cases() -> str:
    """For README: the kinds of texts where the sample of drops was least right, the weakest first."""
    run = stored()[WHOLE_RUN]
    weak = [name for name in _WEAK if run[name].precision.value < _GOOD]
    rows = [
        f"- {_TEXTS[name]}, {run[name].right} of {run[name].right + run[name].wrong}: {_WEAK[name]}"
        for name in sorted(weak, key=lambda name: run[name].precision.value)
    ]
    return "\n".join(rows) + "\n"


def of_pairs() -> str:
    """For BENCHMARKS: the labelled pairs of each set, judged under its profile and without one."""
    with_profile, without = stored()[PROFILE], stored()[NONE]
    head = ["texts", "profile", "right / wrong / unsure", "precision", "recall"]
    head += ["no profile: right / wrong / unsure", "precision", "recall"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in [name for name in _TEXTS if name in with_profile]:
        cells = [_TEXTS[name], _profile(name), *_of_pairs(with_profile[name])]
        cells += _of_pairs(without[name]) if name in without else ["–"] * 3
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def by_half() -> str:
    """For BENCHMARKS: the pairs of each half under limits chosen on its other half, and the own ones."""
    other, own = stored()[HALF], stored()[OWN]
    head = ["profile", "half", "limits of the other half: right / wrong / unsure", "precision", "recall"]
    head += ["limits of the profile: right / wrong / unsure", "precision", "recall"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in other:
        profile, half = name.split()
        cells = [f"`{profile}`", half, *_of_pairs(other[name]), *_of_pairs(own[name])]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _of_pairs(counts: Counts) -> list[str]:
    return [_labels(counts), shown(counts.precision), shown(counts.recall)]


def shown(share: Share) -> str:
    """A share and its 95 % interval in percent.

    >>> shown(Share(51, 72)), shown(Share(0, 0))
    ('70.8 % (59–80)', '–')
    """
    if not share.of:
        return "–"
    low, high = share.interval
    return f"{share.value * 100:.1f} % ({low * 100:.0f}–{high * 100:.0f})"


def _profile(name: str) -> str:
    profile = RUN_PROFILES[name]
    return "none" if profile == "default" else f"`{profile}`"


def _labels(counts: Counts) -> str:
    return f"{counts.right} / {counts.wrong} / {counts.unsure}"


PARTS: dict[str, Callable[[], str]] = {
    "labels by profile": by_profile,
    "labels in short": in_short,
    "weak cases": weak_cases,
    "labels of pairs": of_pairs,
    "labels by half": by_half,
}
