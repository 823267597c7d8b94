"""What stands on a duplicate: the original message, why it was dropped, for which kept one, how alike they are."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import orjson
import pytest

from tests.memory.log import Entry
from tests.service.conftest import scheme as scheme
from tests.service.stepped import Stepped
from tests.stages.fingerprint import twin
from twinsieve.pipeline.broker.records import Partition
from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.judge.scheme import Scheme

POSTS, NEWS = Partition("posts", 1), Partition("news", 2)


def process_of(folder: Path, scheme: Scheme, **near: object) -> Stepped:
    settings = Settings.model_validate(
        {
            "app": "t",
            "input": {"topics": ["posts", "news"]},
            "near": near,
            "state": {"dir": str(folder)},
        }
    )
    return Stepped(settings, scheme, {"posts": 2, "news": 3})


def text_of(length: int, seed: int = 1) -> str:
    dice = random.Random(seed)
    return "".join(chr(0x4E00 + place) for place in dice.sample(range(5_000), length))


def headers(entry: Entry) -> dict[str, bytes | None]:
    found = dict(entry.headers)
    assert len(found) == len(entry.headers), "a header stands there twice"
    return found


def test_an_exact_duplicate_is_the_message_as_it_came_and_names_its_leader(
    scheme: Scheme, tmp_path: Path
) -> None:
    process = process_of(tmp_path, scheme)
    process.posts(POSTS, [text_of(20, seed) for seed in range(3)])
    value = orjson.dumps({"text": text_of(20, 2), "more": [1, 2]})
    process.write(NEWS, [value], b"key", (("trace", b"7"), ("trace-2", b"")), 1_600_000_000_123)
    (entry,) = process.entries("posts.duplicates")
    assert (entry.key, entry.value, entry.timestamp_ms) == (b"key", value, 1_600_000_000_123)
    assert entry.headers == (
        ("trace", b"7"),
        ("trace-2", b""),
        ("twinsieve-stage", b"exact"),
        ("twinsieve-leader", b"posts[1]@2"),
        ("twinsieve-origin", b"news[2]@0"),
    )


@pytest.mark.parametrize(
    ("copy", "similarity"),
    [
        # Twice the characters in common, over those of both; cut off behind four places.
        (text_of(20)[:19] + "改", b"0.9500"),  # 2 × 19 of 40
        (text_of(20)[:7] + text_of(20)[8:], b"0.9743"),  # 2 × 19 of 39
        ("改" + text_of(20) + "好的", b"0.9302"),  # 2 × 20 of 43
        (text_of(20)[1:] + text_of(20)[0], b"0.9500"),  # one moved: 2 × 19 of 40
    ],
)
def test_a_near_duplicate_says_how_alike_it_is(
    copy: str, similarity: bytes, scheme: Scheme, tmp_path: Path
) -> None:
    process = process_of(tmp_path, scheme)
    process.posts(NEWS, [text_of(20, 8), text_of(20)])
    process.posts(POSTS, [text_of(20, 9), copy])
    (entry,) = process.entries("posts.duplicates")
    assert entry.headers == (
        ("twinsieve-stage", b"near"),
        ("twinsieve-leader", b"news[2]@1"),
        ("twinsieve-similarity", similarity),
        ("twinsieve-origin", b"posts[1]@1"),
    )


def test_of_two_leaders_the_more_alike_is_named(scheme: Scheme, tmp_path: Path) -> None:
    process = process_of(tmp_path, scheme, differences="guards")
    text = text_of(40)
    process.posts(NEWS, [text[:34] + "甲乙丙丁戊己", "子丑寅" + text[3:], text])
    found = [headers(entry) for entry in process.entries("posts.duplicates")]
    assert [each["twinsieve-leader"] for each in found] == [b"news[2]@1"]
    assert [each["twinsieve-similarity"] for each in found] == [b"0.9250"]  # 2 × 37 of 80; 2 × 34 before


def test_leaders_of_several_topics_are_told_apart(scheme: Scheme, tmp_path: Path) -> None:
    process = process_of(tmp_path, scheme)
    process.posts(NEWS, [text_of(20, 1)])
    process.posts(POSTS, [text_of(20, 2), text_of(20, 3)])
    process.posts(Partition("posts", 0), [text_of(20, seed) for seed in (3, 1, 2)])
    found = [headers(entry)["twinsieve-leader"] for entry in process.entries("posts.duplicates")]
    assert found == [b"posts[1]@1", b"news[2]@0", b"posts[1]@0"]


def test_a_duplicate_by_bits_says_how_many_differ(scheme: Scheme, tmp_path: Path) -> None:
    process = process_of(tmp_path, scheme, method="hamming", distances={8: 7})
    text = text_of(100)
    copy = text[:50] + text_of(1, 5) + text[51:]
    bits = [fingerprint(each) for each in (text, copy)]
    process.posts(POSTS, [text, copy])
    (entry,) = process.entries("posts.duplicates")
    differing = (bits[0] ^ bits[1]).bit_count()
    assert 0 < differing <= 7
    assert entry.headers == (
        ("twinsieve-stage", b"near"),
        ("twinsieve-leader", b"posts[1]@0"),
        ("twinsieve-distance", b"%d" % differing),
        ("twinsieve-origin", b"posts[1]@1"),
    )


def fingerprint(text: str) -> int:
    """64 bits of the plain twin: characters and pairs, weighted by how often they stand there."""
    features = Counter(feature for feature, _ in twin.runs(list(text), [1, 2]))
    hashed = {twin.run_hash(feature): weight for feature, weight in features.items()}
    return twin.simhash(twin.simhash_sums(hashed))[0]


def test_what_the_filter_alone_remembers_names_no_leader_and_says_so(scheme: Scheme, tmp_path: Path) -> None:
    process = process_of(tmp_path, scheme, window={"messages": 2})
    process.posts(POSTS, [text_of(20, seed) for seed in range(6)])
    process.post(NEWS, text_of(20, 0))
    (entry,) = process.entries("posts.duplicates")
    assert headers(entry) == {
        "twinsieve-stage": b"exact",
        "twinsieve-note": b"unconfirmed",
        "twinsieve-origin": b"news[2]@0",
    }


def test_a_similarity_of_long_texts_is_marked_as_estimated(scheme: Scheme, tmp_path: Path) -> None:
    process = process_of(tmp_path, scheme)
    text = text_of(2_000)
    process.posts(POSTS, [text, text[:1_000] + text_of(20, 2) + text[1_020:]])
    (entry,) = process.entries("posts.duplicates")
    found = headers(entry)
    assert (found["twinsieve-leader"], found["twinsieve-note"]) == (b"posts[1]@0", b"estimated")
    similarity = found["twinsieve-similarity"]
    assert similarity is not None
    assert abs(float(similarity) - 0.99) < 0.05
