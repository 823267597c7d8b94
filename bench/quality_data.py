"""The research data sets that accuracy is measured on; read where they lie, never copied."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

REPOSITORY = Path(__file__).resolve().parent.parent


def data_dir() -> Path:
    """Where the data sets lie: TWINSIEVE_DATA, else `../shared/data` beside the repository."""
    return Path(os.environ.get("TWINSIEVE_DATA") or REPOSITORY.parent / "shared" / "data")


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
ARTICLES = DataSet("articles", 1_000, "plain")


def truth_body(profile: Literal["microblog", "plain"]) -> Callable[[str], str]:
    """The very function that made the bodies behind the pairs files (`body.py` among the data)."""
    spec = importlib.util.spec_from_file_location("truth_body", data_dir() / "body.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(data_dir() / "body.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.body_weibo if profile == "microblog" else module.body_plain  # type: ignore[no-any-return]
