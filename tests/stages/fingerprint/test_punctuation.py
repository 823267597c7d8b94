"""Features around punctuation marks equal the rule of docs/CLASSICS.md, a character at a time."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
import unicodedata2
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generated import LANGUAGES, stream
from tests.stages.fingerprint import twin
from twinsieve.stages.contract import BandLayout
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.idf import train_idf
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

SEED = 7
LAYOUT = BandLayout(bands=0, tables=2)


def is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def without_references(text: str) -> str:
    """Links, mentions and tags as blanks."""
    out, i = "", 0
    while i < len(text):
        rest, end = text[i:], i
        link = re.match(r"(?:https?://|www\.)[!-~ıİ]+", rest)
        if link:
            end = i + link.end()
        elif rest[0] == "@":
            while end + 1 < len(text) and end - i < 30 and (is_word(text[end + 1]) or text[end + 1] in "-·"):
                end += 1
            end = end + 1 if end > i else i
        elif rest[0] == "#":
            closed = re.match(r"#[^#\s]{1,80}#", rest)
            if closed:
                end = i + closed.end()
            elif i == 0 or not is_word(text[i - 1]):
                k = i + 1
                while (
                    k < len(text)
                    and k - i <= 80
                    and (is_word(text[k]) or unicodedata2.category(text[k])[0] == "M")
                ):
                    k += 1
                if any(unicodedata2.category(char) != "Nd" for char in text[i + 1 : k]):
                    end = k
        if end > i:
            out += " " * (end - i)
            i = end
        else:
            out += rest[0]
            i += 1
    return out


def plain_features(text: str, drop: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The tokens before and after each mark."""
    text = re.sub(r"&[a-zA-Z]+;", lambda entity: unescape(entity[0]), text)
    text = unicodedata2.normalize("NFKC", unicodedata2.normalize("NFKC", text).casefold())
    chars: list[list[str]] = []
    for char in without_references(text):
        category = unicodedata2.category(char)
        if twin.is_unspaced(char) and (char.isalnum() or category[0] == "M"):
            what = "char"
        elif category[0] == "M":
            if not chars or chars[-1][1] != "word":
                continue
            what = "word"
        elif char.isalnum():
            what = "word"
        elif category == "Cf":
            continue
        else:
            what = "mark" if category[0] == "P" else "blank" if char.isspace() else "other"
        chars.append([char, what])
    kinds = [what for _, what in chars]
    for i in range(1, len(chars) - 1):
        if kinds[i - 1 : i + 2] == ["word", "mark", "word"]:
            chars[i][1] = "inside"
    gone = [
        what in ("word", "char")
        and (
            ("digits" in drop and unicodedata2.category(char) == "Nd")
            or ("latin" in drop and "LATIN" in unicodedata2.name(char, "") and char.isalpha())
        )
        for char, what in chars
    ]
    for i, (_, what) in enumerate(chars):
        if gone[i] or (what == "inside" and (gone[i - 1] or gone[i + 1])):
            chars[i][1] = "blank"
    # A string for each token, None for each mark.
    found: list[str | None] = []
    previous = ""
    for char, what in chars:
        if what == "mark":
            if previous != "mark":
                found.append(None)
        elif what == "char":
            found.append(char)
        elif what in ("word", "inside"):
            if previous in ("word", "inside"):
                found[-1] = f"{found[-1]}{char}"
            else:
                found.append(char)
        if not (what == "blank" and previous == "mark"):
            previous = what
    features = []
    for i, token in enumerate(found):
        if token is None:
            left = tuple(one for one in found[:i] if one is not None)[-2:]
            right = tuple(one for one in found[i:] if one is not None)[:2]
            if left or right:
                features.append((left, right))
    return features


def feature_hash(feature: tuple[tuple[str, ...], tuple[str, ...]]) -> int:
    token_seed = twin.draw(SEED, 2, 3)[0]
    numbers = [
        twin.mix64((twin.polynomial(list(map(ord, one))) + token_seed) & twin.MASK64)
        for one in (*feature[0], "|", *feature[1])
    ]
    return twin.polynomial(numbers)


def plain_weights(config: FeatureConfig, text: str) -> dict[int, int]:
    features = [feature_hash(feature) for feature in plain_features(text, config.drop)]
    weights: dict[int, int] = {}
    for i, feature in enumerate(features):
        weight = 4 - 4 * i // len(features) if config.weights == "position" else 1
        weights[feature] = 1 if config.weights == "none" else weights.get(feature, 0) + weight
    return weights if len(weights) >= config.min_features else {}


def check_texts(config: FeatureConfig, texts: list[str]) -> int:
    """Compare packed features and SimHashes; how many rows have one."""
    bodies = Normalizer(TextConfig()).bodies(texts)
    maker = Fingerprinter(config, LAYOUT, DigestConfig(seed=SEED))
    packed = maker.packed_features(bodies, texts)
    made = maker.fingerprints(bodies, None, lambda: packed)
    for row, text in enumerate(texts):
        part = slice(packed.starts[row], packed.starts[row + 1])
        weighted = list(zip(packed.features[part].tolist(), packed.weights[part].tolist(), strict=True))
        expected = {} if bodies.exact_only[row] else plain_weights(config, text)
        assert weighted == list(expected.items()), text
        assert bool(made.has_simhash[row]) == bool(expected)
        if expected:
            assert tuple(made.simhashes[row].tolist()) == twin.simhash(twin.simhash_sums(expected, SEED))
    return int(np.count_nonzero(made.has_simhash))


_ODD = "，。！？、…—“”()「」.,:;!?'-_/#@&%*  \n\u3000天气好ไม้หนกิaBé1２7ß₂Дя\u0301\u200b\ufe0f😂+=~हिन्दी"
_PIECES = [
    *_ODD,
    "http://t.cn/a.b",
    "www.x.y",
    "@某人",
    "#武汉加油#",
    "#tag",
    "#1",
    "#a\ufe0fb",
    "#\ufe0f\u20e3",
    "&amp;",
    "don't",
    "1,500.5",
    "今天",
]


@pytest.mark.parametrize("weights", ["none", "tf", "position"])
@pytest.mark.parametrize("drop", [(), ("latin", "digits")])
def test_features_and_simhash_equal_the_plain_rule(weights: str, drop: tuple[str, ...]) -> None:
    @settings(max_examples=60)
    @given(
        texts=st.lists(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join), min_size=1, max_size=5),
        min_features=st.sampled_from([1, 1, 3]),
    )
    def check(texts: list[str], min_features: int) -> None:
        config = FeatureConfig("punctuation", weights=weights, drop=drop, min_features=min_features)  # type: ignore[arg-type]
        check_texts(config, [text + "今天天气很好吗" for text in texts])

    check()


@pytest.mark.parametrize("language", LANGUAGES)
def test_features_of_posts_equal_the_plain_rule(language: str) -> None:
    assert check_texts(FeatureConfig("punctuation"), stream(language, 300).texts) > 100


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("你好，王先生。今天！！！", ["你好|王先", "先生|今天", "今天|"]),
        (
            "Stop. It costs 1,500.50 now: don't buy!",
            ["stop|it costs", "1,500.50 now|don't buy", "don't buy|"],
        ),
        ("“开头”有引号", ["|开头", "开头|有引"]),
        ("今天天气很好，，  。 出去玩", ["很好|出去"]),
        ("链接 http://t.cn/a,b. 好，@某人 说", ["接好|说"]),
        ("#武汉，加油# 早安，大家好呀", ["早安|大家"]),
        ("出门 #a\ufe0fb，好 #\ufe0f\u20e3 吗", ["出门|好吗"]),
        ("没有标点的文字 一个也没有", []),
        ("！！！……", []),
        ("ab，c d", []),
        ("ab， c d", ["ab|c d"]),
    ],
)
def test_what_a_mark_is(text: str, features: list[str]) -> None:
    from twinsieve.stages.fingerprint.punctuation import MarkFeatures

    assert MarkFeatures(FeatureConfig("punctuation"), np.uint64(1)).as_text(text) == features


def test_left_and_right_stay_apart() -> None:
    assert feature_hash((("a", "b"), ("c",))) != feature_hash((("a",), ("b", "c")))
    maker = Scheme(SchemeConfig(features=FeatureConfig("punctuation")))
    _, made = maker.read(["一二，三四五六七八九", "一，二三四五六七八九", "一二，三四五六七八九九"])
    assert made.has_simhash.all()
    assert not np.array_equal(made.simhashes[0], made.simhashes[1])
    assert np.array_equal(made.simhashes[0], made.simhashes[2])


def test_no_body_changes_and_a_text_without_marks_has_no_fingerprint() -> None:
    texts = ["没有标点的文字一个也没有", "有标点的文字，好吗"]
    bodies, made = Scheme(SchemeConfig(features=FeatureConfig("punctuation"))).read(texts)
    same, other = Scheme(SchemeConfig()).read(texts)
    assert made.has_simhash.tolist() == [False, True]
    assert np.array_equal(bodies.chars, same.chars)
    assert np.array_equal(made.digests, other.digests)


def test_bodies_alone_are_refused() -> None:
    bodies = Normalizer(TextConfig()).bodies(["有标点的文字，好吗"])
    maker = Fingerprinter(FeatureConfig("punctuation"), LAYOUT, DigestConfig())
    with pytest.raises(UsageError, match="punctuation, which bodies do not have; give the texts too"):
        maker.fingerprints(bodies)


def test_marks_have_no_idf() -> None:
    for change in ({"weights": "tfidf", "idf": (("天", 1.0),)}, {"idf": (("天", 1.0),)}):
        with pytest.raises(UsageError, match="punctuation have no IDF"):
            FeatureConfig("punctuation", **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="punctuation have no IDF"):
        train_idf([], FeatureConfig("punctuation"))
