"""Known answers: a change of any fingerprint is noticed here, and needs another KERNEL_VERSION.

State, snapshots and logs hold these values; other ones under the same scheme id would never match.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import pytest

from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout, Fingerprints
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.mixing import KERNEL_VERSION

SEED = 20_200_216
LAYOUT = BandLayout(bands=3, rows=2, tables=2, key_bits=24, weak=3, grams="chars")
NEWS = "国家卫生健康委员会 通报新型冠状病毒肺炎疫情最新情况 湖北省新增确诊病例"

# text, digest, SimHash, weak bits, band keys, signature, bag, hash of the sketch
CHARS = [
    (
        "武汉加油中国加油",
        "86cd38f1520f9cec886f178f38982de1",
        "ec74cf020756e08b408e6c3202c1443c",
        "000109010308",
        "151a17eab11164d8dacf5b7f",
        "20241000",
        "0000000000000001000000000000000010000000200010200000000000000010",
        "",
    ),
    (
        "今天天气很好我们一起出去玩吧后天也是这样的好天气",
        "1b690c27f9459658e34c4e0a28ad9ab6",
        "513f62246983935375fd93b0bcf746be",
        "04060700060d",
        "f079d9ae518e5041b4d54f18",
        "ba81db91",
        "0010000220000000001000100000000010120010050000200300000110000000",
        "",
    ),
    (
        "stay home and stay safe",
        "2618e581efb922e64690c145fc9f6eff",
        "6ca014d64a6552d7b3d5a14795153ff3",
        "03050b020508",
        "a1c6f0e8da99aebe0a41c539",
        "00021c25",
        "0001030000000000100000100002000000000001000002000012000000000401",
        "",
    ),
    (
        "今天 wuhan 天气 is good 好",
        "f48f286f979d44797b64760adca6cdc2",
        "24ffc5344ca6a5c726dd8390acf57afd",
        "01020b020409",
        "c168f5399cd66b707f3dd4d8",
        "10831d60",
        "0000010000000000101000000000000000020002020100100110000010000101",
        "",
    ),
    (
        "नमस्ते दुनिया कैसे हो",
        "9c42c8f42a378ad80524ae9c421e2b8d",
        "c72d3a94a180c79ffc0ea30d8c9c6ed7",
        "000103000106",
        "edbd2c41b6fbb5e59d34c90c",
        "50850ba0",
        "0000001000100100101000000110010000210000000200000000200001100010",
        "",
    ),
    (
        "短文",
        "f288cb3f11d5468b9bff3c02385dc069",
        "",
        "000000000000",
        "000000000000000000000000",
        "00000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "",
    ),
    (
        "",
        "dcd946769bd722a818936972a2591245",
        "",
        "000000000000",
        "000000000000000000000000",
        "00000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "",
    ),
    (
        "\ud800\U0001f600\0",
        "be5fb6e5b8559db664dce2379837a180",
        "",
        "000000000000",
        "000000000000000000000000",
        "00000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "",
    ),
    (
        "长" * 300,
        "875f92846e1d36aba48e05f5997c0952",
        "c3dc6bad1470e17bd0cf4cb2c50203a1",
        "000405000102",
        "105b73ca8acdadb5d26b0d57",
        "d600b981",
        "000000000000000000000000000000000000000000000000f000000000000000",
        "58691deb3f2358b0",
    ),
    (
        "新增确诊病例" * 50,
        "68d2447b298dc1cdd832e8640fba2571",
        "2d6c239b809ef0f6c64b39b2d834e27c",
        "020307010406",
        "ba02b1dda44c54d14ff61863",
        "2b504e9a",
        "f000000f00000000000000000000000000000000000f000f000000000000f0f0",
        "85a6d9d91f78dc04",
    ),
]

FEATURES = [
    (FeatureConfig("shingles", "chars", 3, weights="none"), "c04c39270bc82005c14ecc257f5d21a7"),
    (FeatureConfig("shingles", "words", 2, weights="position"), "4a3a406efa0966c0f2038c805d92963f"),
    (FeatureConfig("keywords", weights="tfidf"), "4135fafa1d4fb09145a293a8c45781e8"),
    (
        FeatureConfig("keywords", parts_of_speech=("n", "vn"), weights="tf"),
        "5155f8ece5efae9edd26b3ef8953c7a9",
    ),
    (FeatureConfig(weights="tfidf", idf=(("情", 2.5), ("疫情", 7.25))), "2fec500a8a8966d574470932f9f6be3c"),
]


def simhash(made: Fingerprints, row: int) -> str:
    if not made.has_simhash[row]:
        return ""
    return f"{int(made.simhashes[row, 0]) | int(made.simhashes[row, 1]) << 64:032x}"


BY_SCRIPT = [
    ("stay home and stay safe, all of you, until the storm is over", "73cf9b076b222176e6cf2e61", "bd3c4d34"),
    ("今天 wuhan 天气 is good 好 и всё ещё холодно на улице сегодня", "15c994c93a6dcf9b2e9a3d2d", "d5b5b08e"),
]


def test_known_answers_are_those_of_this_version() -> None:
    assert KERNEL_VERSION == 3, "new kernels have new answers: write them here"


@pytest.mark.parametrize("known", CHARS, ids=range(len(CHARS)))
def test_fingerprints_of_known_texts(known: tuple[str, ...]) -> None:
    text, *expected = known
    made = Fingerprinter(FeatureConfig(), LAYOUT, DigestConfig(seed=SEED)).fingerprints(bodies_of([text]))
    sketch = b"".join(row.tobytes() for row in made.sketches)
    assert [
        made.digests[0].tobytes().hex(),
        simhash(made, 0),
        made.weak_bits[0].tobytes().hex(),
        made.band_keys[0].astype(">u4").tobytes().hex(),
        f"{made.signatures[0]:08x}",
        made.bags[0].tobytes().hex(),
        blake2b(sketch, digest_size=8).hexdigest() if sketch else "",
    ] == expected


@pytest.mark.parametrize(("text", "keys", "signature"), BY_SCRIPT)
def test_grams_by_script_of_known_texts(text: str, keys: str, signature: str) -> None:
    layout = replace(LAYOUT, grams="by_script")
    made = Fingerprinter(FeatureConfig(), layout, DigestConfig(seed=SEED)).fingerprints(bodies_of([text]))
    assert made.band_keys[0].astype(">u4").tobytes().hex() == keys
    assert f"{made.signatures[0]:08x}" == signature


@pytest.mark.usefixtures("dictionary_read_once")
@pytest.mark.parametrize(("config", "expected"), FEATURES, ids=range(len(FEATURES)))
def test_simhashes_of_known_features(config: FeatureConfig, expected: str) -> None:
    made = Fingerprinter(config, BandLayout(), DigestConfig(seed=SEED)).fingerprints(bodies_of([NEWS]))
    assert simhash(made, 0) == expected
