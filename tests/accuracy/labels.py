"""What readers said of pairs of real posts, and what the profile of each set does with them."""

from __future__ import annotations

import gzip
from collections import Counter

import orjson

from tests.accuracy.data_sets import data_dir
from twinsieve.pipeline.evaluate.evaluate import batch_of
from twinsieve.pipeline.evaluate.judged import JudgedPair, JudgedVerdict, judge_pairs, read_judged
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.stages.contract import Kind, SieveConfig
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

PROFILES = {
    "weibo_dev": "microblog",
    "comments_dev": "microblog",
    "titles_dev": "titles",
    "sms_dev": "sms",
    "tweets_dev": "plain",
    "world_dev": "plain",
    "headlines_dev": "titles",
}
"""The profile that README names for the kind of text of each set."""
ALPHABETS = ("tweets_dev", "world_dev", "headlines_dev")
_FILES = ("judged_dev.tsv", "judged2_dev.tsv", "judged3_dev.tsv")


PRECISION_BEFORE = {
    "comments_dev": 0.984,
    "sms_dev": 0.798,
    "titles_dev": 0.529,
    "tweets_dev": 1.000,
    "weibo_dev": 0.990,
}
"""Of the same pairs at commit 1e013b6, with its defaults (.85, number and card guard); the other sets are newer."""


def configured(profile: str) -> tuple[SchemeConfig, SieveConfig]:
    """A profile, and nothing else."""
    settings, findings = check_tree(tree_of({"profile": profile}), on_files=True)
    assert settings is not None, findings
    return scheme_config(settings), sieve_config(settings, "")


def judged_labels(without: str = "", *, profile: str = "") -> list[JudgedVerdict]:
    """Every judged pair in a scope of its own, but for those of one set.

    profile: of all sets; "" for that of each set
    """
    verdicts: list[JudgedVerdict] = []
    for name, pairs in _pairs_by_set(without).items():
        verdicts += judge_pairs(pairs, texts_of(name), *configured(profile or PROFILES[name]))
    return verdicts


def labels_in_runs(without: str = "") -> list[JudgedVerdict]:
    """The same pairs within a run over their whole set.

    A later message is dropped for any leader; one that is different from the earlier one may rightly be dropped
    for another, and counts only where the earlier one leads it.
    """
    verdicts: list[JudgedVerdict] = []
    for name, pairs in _pairs_by_set(without).items():
        texts = texts_of(name)
        scheme, config = configured(PROFILES[name])
        rows = {id_: row for row, id_ in enumerate(texts)}
        said = BatchSieve(config).judge(batch_of(*Scheme(scheme).read(list(texts.values()))))
        for pair in pairs:
            row = rows[pair.later]
            led = int(said.leaders[row]) == rows[pair.earlier]
            dropped = said.kinds[row] != Kind.UNIQUE and (led or pair.label != "different")
            reason = Rule(int(said.reasons[row]))
            verdicts.append(JudgedVerdict(pair, dropped, said.similarity(row) if dropped else None, reason))
    return verdicts


def judged_pairs() -> list[JudgedPair]:
    """Every pair of real posts with its label."""
    return [pair for name in _FILES for pair in read_judged(data_dir() / name)]


def _pairs_by_set(without: str) -> dict[str, list[JudgedPair]]:
    pairs = judged_pairs()
    return {name: [pair for pair in pairs if pair.set == name] for name in PROFILES if name != without}


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
