"""The research data sets that accuracy is measured on; read where they lie, never copied."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from twinsieve.stages.errors import UsageError

VARIABLE = "TWINSIEVE_DATA"


def named_dir() -> Path | None:
    """The folder that TWINSIEVE_DATA names; None where it is not set."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def data_dir() -> Path:
    """Where the data sets lie. raises: UsageError where nobody has said it"""
    folder = named_dir()
    if folder is None:
        raise UsageError(f"{VARIABLE} is not set; it names the folder of the data sets")
    return folder


def missing_files(folder: Path) -> list[str]:
    """Names of the files that the data sets consist of and the folder lacks."""
    names = ["body.py", "hard_dev.jsonl", "articles_dev.jsonl.gz", "articles_dev.truth.tsv"]
    names += [f"{name}_dev.tsv" for name in ("judged", "judged2", "judged3", "judged5", "drops")]
    names += [f"{name}_dev.jsonl.gz" for name in MORE_LANGUAGES]
    for data in (WEIBO, *POOLED, *ALPHABETS):
        names += [f"{data.name}_dev.jsonl.gz", f"{data.name}_dev.pairs.tsv.gz"]
    return [name for name in names if not (folder / name).is_file()]


@dataclass(frozen=True, slots=True)
class DataSet:
    """One development set: `rows` first rows are covered by its pairs file."""

    name: str
    rows: int
    profile: Literal["microblog", "plain"]

    @property
    def texts(self) -> Path:
        return data_dir() / f"{self.name}_dev.jsonl.gz"

    @property
    def pairs(self) -> Path:
        return data_dir() / f"{self.name}_dev.pairs.tsv.gz"


WEIBO = DataSet("weibo", 20_000, "microblog")
POOLED = (
    DataSet("sms", 8_327, "plain"),
    DataSet("tweets", 10_008, "plain"),
    DataSet("titles", 20_000, "plain"),
    DataSet("comments", 20_000, "microblog"),
)
ALPHABETS = (DataSet("world", 14_241, "plain"), DataSet("headlines", 19_999, "plain"))
"""Tweets of 13 events in many languages, and headlines in English."""
MORE_LANGUAGES = ("th_posts", "ko_comments", "ar_tweets", "id_products", "ja_reviews", "ja_tweets")
"""Sets without a file of true pairs."""
ARTICLES = DataSet("articles", 1_000, "plain")


def truth_body(profile: Literal["microblog", "plain"]) -> Callable[[str], str]:
    """The very function that made the bodies behind the pairs files (`body.py` among the data)."""
    spec = importlib.util.spec_from_file_location("truth_body", data_dir() / "body.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(data_dir() / "body.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.body_weibo if profile == "microblog" else module.body_plain  # type: ignore[no-any-return]
