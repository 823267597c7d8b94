"""Recipes of the page for operators that change what comes out do what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.stepped import Stepped
from twinsieve.pipeline.broker.records import Messages, Partition
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme

POSTS = Partition("posts", 0)
SENT = "河边的桥在周五之前关闭，请大家乘坐渡轮过河，注意安全"
ALIKE = "河边的桥在周五之前关闭，请大家乘坐轮船过河，注意平安"


@pytest.fixture(scope="module")
def scheme() -> Scheme:
    return make_scheme(Settings())


def test_duplicates_written_to_the_input_again_mend_too_many_dropped(scheme: Scheme, tmp_path: Path) -> None:
    """They are judged anew by the threshold that is in force then; true copies are dropped again."""

    def settings(similarity: float) -> Settings:
        near = {"similarity": similarity}
        return Settings.model_validate({"app": "t", "near": near, "state": {"dir": str(tmp_path)}})

    process = Stepped(settings(0.6), scheme, {"posts": 1})
    process.posts(POSTS, [SENT, ALIKE, SENT])
    assert process.texts("posts.unique") == [SENT]
    dropped = process.entries("posts.duplicates")
    assert process.texts("posts.duplicates") == [ALIKE, SENT]
    process.again(settings(0.95))
    for entry in dropped:
        message = Messages()
        message.add(entry.key, entry.value, entry.headers, entry.timestamp_ms)
        process.cluster.write(POSTS, message)
    process.settle()
    assert process.texts("posts.unique") == [SENT, ALIKE]
    assert process.texts("posts.duplicates")[2:] == [SENT]
    (_, again) = process.entries("posts.unique")
    assert again.headers == (("twinsieve-origin", b"posts[0]@3"),)
