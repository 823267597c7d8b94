"""Pairs of real posts that a language model labelled, and the settings that each set of them is judged under."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping

import orjson

from tests.accuracy.data_sets import data_dir
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, JudgedVerdict, judge_pairs, read_judged
from twinsieve.stages.contract import SieveConfig
from twinsieve.stages.judge.scheme import SchemeConfig

PROFILES = {
    "weibo_dev": "microblog",
    "comments_dev": "microblog",
    "tweets_dev": "plain",
    "world_dev": "plain",
    "headlines_dev": "titles",
    "titles_dev": "titles",
    "sms_dev": "sms",
}
"""The profile that README names for the kind of text of each set. The limits of the profiles were chosen on
labelled pairs of these sets."""
MORE_PROFILES = {
    "th_posts_dev": "plain",
    "ko_comments_dev": "plain",
    "ar_tweets_dev": "plain",
    "id_products_dev": "titles",
    "ja_reviews_dev": "default",
    "ja_tweets_dev": "default",
}
"""The same for sets of five more languages. No limit was chosen on them; the rules for Japanese and Thai were
written with drops of whole runs in view."""
GUARDS = {"near": {"similarity": 0.85, "differences": "guards"}}
"""A similarity and the guards alone, to compare the differences with."""
_MORE_FILE = "judged5_dev.tsv"
_FILES = ("judged_dev.tsv", "judged2_dev.tsv", "judged3_dev.tsv")


def configured(profile: str, keys: Mapping[str, object] | None = None) -> tuple[SchemeConfig, SieveConfig]:
    """The settings of a profile. keys: what is set besides, as in a settings file"""
    settings, findings = check_tree(tree_of({"profile": profile, **(keys or {})}), on_files=True)
    assert settings is not None, findings
    return scheme_config(settings), sieve_config(settings, "")


def judged_alone(
    profile: str = "", keys: Mapping[str, object] | None = None, *, more: bool = False
) -> dict[str, list[JudgedVerdict]]:
    """The verdict on every labelled pair in a scope of its own, by set.

    profile: of all sets; "" for that of each set
    keys: what is set besides; more: the sets of MORE_PROFILES
    """
    return {
        name: judge_pairs(labelled_pairs(name), texts_of(name), *configured(profile or own, keys))
        for name, own in (MORE_PROFILES if more else PROFILES).items()
    }


def drops_alone() -> dict[str, list[JudgedVerdict]]:
    """The verdict on every labelled drop of whole runs of commit 282acbd1 as a pair, by set."""
    return {
        name: judge_pairs(some, texts_of(name), *configured(profile))
        for name, profile in (PROFILES | MORE_PROFILES).items()
        if (some := labelled_drops(name))
    }


def judged_pairs() -> list[JudgedPair]:
    """Every labelled pair of the sets in PROFILES."""
    return [pair for name in _FILES for pair in read_judged(data_dir() / name)]


def labelled_pairs(name: str) -> list[JudgedPair]:
    """Every labelled pair of a set, drawn by similarity."""
    pairs = read_judged(data_dir() / _MORE_FILE) if name in MORE_PROFILES else judged_pairs()
    return [pair for pair in pairs if pair.set == name]


def labelled_drops(name: str) -> list[JudgedPair]:
    """Every labelled drop of a whole run of commit 282acbd1 over a set."""
    return [pair for pair in read_judged(data_dir() / "drops_dev.tsv") if pair.set == name]


def texts_of(name: str) -> dict[str, str]:
    """The texts of a set, by id."""
    with gzip.open(data_dir() / f"{name}.jsonl.gz") as lines:
        rows = [orjson.loads(line) for line in lines]
    return {row["id"]: row["text"] for row in rows}


def hard_labels() -> tuple[int, list[str], int]:
    """(hard pairs with the wanted verdict, classes without any, how many pairs want one)"""
    lines = (data_dir() / "hard_dev.jsonl").read_bytes().splitlines()
    rows = [row for row in map(orjson.loads, lines) if row["want"] != "either"]
    texts = {f"{number}{side}": row[side] for number, row in enumerate(rows) for side in ("earlier", "later")}
    pairs = [JudgedPair(row["class"], f"{n}later", f"{n}earlier", "unsure") for n, row in enumerate(rows)]
    right = Counter[str]()
    for row, verdict in zip(rows, judge_pairs(pairs, texts, *configured("microblog")), strict=True):
        right[row["class"]] += verdict.dropped == (row["want"] == "drop")
    return right.total(), [kind for kind, count in right.items() if not count], len(rows)
