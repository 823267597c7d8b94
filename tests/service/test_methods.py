"""Every method judges on Kafka as the Python sieve does: through blocks, answers, a restart from log and decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.generated_posts import generate
from tests.service.stepped import Stepped
from twinsieve import Sieve
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.settings.model import Settings

POSTS = Partition("posts", 0)
_SIGNATURES: list[dict[str, Any]] = [
    {"kind": "top_features", "hashes": 6, "share": 4},
    {"kind": "segments", "hashes": 4, "share": 2},
    {"kind": "segments", "hashes": 3, "share": 2, "cut": "length"},
    {"kind": "sentences", "hashes": 2, "share": 1},
]
METHODS: list[dict[str, Any]] = [
    {"method": "text"},
    {"method": "hamming", "distances": {8: 7}},
    *({"method": "signatures", "signature": signature} for signature in _SIGNATURES),
]


@pytest.mark.parametrize(
    "near", METHODS, ids=lambda near: near.get("signature", near).get("kind", near["method"])
)
def test_what_comes_out_is_what_the_sieve_keeps(near: dict[str, Any], tmp_path: Path) -> None:
    texts = [post["text"] for post in generate(240, seed=8, repeats=0.6)]
    mine: dict[str, Any] = {"near": near, "app": "t", "state": {"dir": str(tmp_path)}}
    settings = Settings.model_validate(mine)
    process = Stepped(settings, make_scheme(settings), {"posts": 1})
    process.posts(POSTS, texts[:150])
    process.again()
    process.posts(POSTS, texts[150:])
    kept = list(Sieve(settings={"near": near}).dedup(texts))
    assert process.texts("posts.unique") == kept
    stages = [dict(entry.headers)["twinsieve-stage"] for entry in process.entries("posts.duplicates")]
    assert len(stages) == len(texts) - len(kept)
    assert b"near" in stages


def test_a_duplicate_by_hashes_says_how_many_they_share(tmp_path: Path) -> None:
    near = {"method": "signatures", "signature": {"kind": "sentences", "share": 2}}
    settings = Settings.model_validate({"near": near, "app": "t", "state": {"dir": str(tmp_path)}})
    process = Stepped(settings, make_scheme(settings), {"posts": 1})
    process.posts(
        POSTS,
        [
            "今天全市的天气很好。医院里来了很多人。我们都在家里等消息。",
            "医院里来了很多人！我们都在家里等消息！今天全市下了雨！",
        ],
    )
    (entry,) = process.entries("posts.duplicates")
    assert entry.headers == (
        ("twinsieve-stage", b"near"),
        ("twinsieve-leader", b"posts[0]@0"),
        ("twinsieve-shared", b"2"),
        ("twinsieve-origin", b"posts[0]@1"),
    )
