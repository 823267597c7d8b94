"""Part hashes of every kind equal a plain reading of docs/CLASSICS.md."""

from __future__ import annotations

import re
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.fingerprint.test_features import plain_features
from twinsieve.stages.contract import Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig

_IDF = (("天", 0.5), ("天气", 2.25), ("天气好", 3.5), ("气", 9.0))
_FEATURES = FeatureConfig(idf=_IDF)
_pieces = st.sampled_from(
    [
        "天气很好我们出去玩",
        "今天下雨",
        "。",
        "！",
        "？",
        "!",
        "?",
        "\n",
        "\r\n",
        ".",
        ". ",
        "3.14",
        " ",
        "hello world",
        "短",
        "👍",
    ]
)
_texts = st.lists(st.lists(_pieces, min_size=1, max_size=16).map("".join), min_size=1, max_size=4)


def plain_hash(content: bytes) -> int:
    hashed = int.from_bytes(blake2b(content, digest_size=8, key=bytes(8)).digest(), "little")
    return hashed or 1


def key_text(scheme: Scheme, text: str) -> tuple[int, bytes]:
    """Characters of the body, and the key text as little-endian code points, of a text by itself."""
    body = scheme.bodies([text])
    return int(body.body_lengths[0]), body.text(0).encode("utf-32-le", "surrogatepass")


def plain_sentences(scheme: Scheme, text: str, *, lines_alone: bool = False) -> list[tuple[int, bytes]]:
    sentences, current = [], ""
    for place, char in enumerate(text):
        after = text[place + 1 : place + 2]
        is_end = char in "\r\n" or (
            not lines_alone
            and (char in "。！？!?" or (char == "." and (not after or after in " \t\n\r\v\f\u3000")))
        )
        if is_end:
            sentences.append(current)
            current = ""
        else:
            current += char
    read = [key_text(scheme, sentence) for sentence in [*sentences, current]]
    return [sentence for sentence in read if sentence[0]]


def plain_parts(
    config: SignatureConfig, scheme: Scheme, bodies: Bodies, texts: list[str], row: int
) -> list[int]:
    if bodies.exact_only[row]:
        return []
    features = dict(plain_features(_FEATURES, bodies, row))
    match config.kind:
        case "top_features":
            heaviest = sorted(features, key=lambda feature: -features[feature])
            hashes = [feature or 1 for feature in heaviest[: config.hashes]]
        case "imatch":
            idf = scheme._fingerprinter.idf_of(np.array(list(features), np.uint64)).tolist()
            low, high = round(config.commonest * 256), round((config.rarest or 1000) * 256)
            hashes = [
                feature for feature, value in zip(features, idf, strict=True) if max(1, low) <= value <= high
            ]
        case "sentences":
            sentences = plain_sentences(scheme, texts[row])
            longest = sorted(range(len(sentences)), key=lambda number: (-sentences[number][0], number))
            hashes = [plain_hash(sentences[number][1]) for number in longest[: config.hashes]]
        case "segments":
            hashes = [plain_hash(content) for content in plain_segments(config, scheme, bodies, texts, row)]
    distinct = sorted(set(hashes))
    if distinct and (config.joined or config.kind == "imatch"):
        distinct = [plain_hash(b"".join(each.to_bytes(8, "little") for each in distinct))]
    return distinct


def plain_segments(
    config: SignatureConfig, scheme: Scheme, bodies: Bodies, texts: list[str], row: int
) -> list[bytes]:
    count = config.hashes
    if config.cut == "length":
        body = bodies.text(row)[: int(bodies.body_lengths[row])]
        places = [-(-number * len(body) // count) for number in range(count + 1)]
        parts = [body[places[number] : places[number + 1]] for number in range(count)]
        return [part.encode("utf-32-le", "surrogatepass") for part in parts if part]
    sentences = plain_sentences(scheme, texts[row], lines_alone=config.cut == "paragraphs")
    total = sum(length for length, _ in sentences)
    segments = [b""]
    number, reached = 1, 0
    for length, content in sentences:
        segments[-1] += content
        reached += length
        if reached >= -(-number * total // count):
            segments.append(b"")
            while reached >= -(-number * total // count):
                number += 1
    return [segment for segment in segments if segment]


CONFIGS = [
    SignatureConfig("top_features", 10, joined=False),
    SignatureConfig("top_features", 3, joined=True),
    SignatureConfig("sentences", 3, joined=True),
    SignatureConfig("sentences", 2, joined=False),
    SignatureConfig("segments", 4, joined=False),
    SignatureConfig("segments", 3, joined=True),
    SignatureConfig("segments", 5, joined=False, cut="paragraphs"),
    SignatureConfig("segments", 4, joined=False, cut="length"),
    SignatureConfig("imatch", 1, commonest=1.0, rarest=3.0),
    SignatureConfig("imatch", 1),
]


def check_signatures(config: SignatureConfig, texts: list[str]) -> None:
    """Compare the hashes of every text, in one batch and alone, with the plain rule."""
    scheme = Scheme(SchemeConfig(features=_FEATURES, signature=config))
    bodies, prints = scheme.read(texts)
    for row in range(len(texts)):
        expected = plain_parts(config, scheme, bodies, texts, row)
        assert prints.part_hashes[row].tolist() == expected + [0] * (config.parts - len(expected))
        alone = scheme.read([texts[row]])[1].part_hashes
        assert (alone[0] == prints.part_hashes[row]).all()


@pytest.mark.parametrize(
    "config",
    CONFIGS,
    ids=lambda config: f"{config.kind}-{config.hashes}-{config.joined}-{config.cut}",
)
def test_every_kind_equals_the_plain_rule(config: SignatureConfig) -> None:
    @settings(max_examples=examples(40))
    @given(texts=_texts)
    def check(texts: list[str]) -> None:
        check_signatures(config, texts)

    check()


def test_a_text_without_a_sentence_has_no_hash_and_never_the_hash_of_nothing() -> None:
    scheme = Scheme(SchemeConfig(signature=SignatureConfig("imatch", 1, commonest=999.0), features=_FEATURES))
    assert not scheme.read(["今天天气很好我们出去玩"])[1].part_hashes.any()


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"hashes": 17}, "near.signature.hashes is 17; use 1 to 16"),
        ({"kind": "imatch", "rarest": 2.0, "commonest": 3.0}, "near.signature.rarest is 2, below commonest"),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=re.escape(what)):
        SignatureConfig(**config)  # type: ignore[arg-type]


def test_imatch_without_idf_is_refused() -> None:
    with pytest.raises(UsageError, match="imatch, which needs IDF"):
        Scheme(SchemeConfig(signature=SignatureConfig("imatch")))
