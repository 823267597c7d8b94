"""Known answers: a change of any fingerprint is noticed here, and needs another KERNEL_VERSION.

State, snapshots and logs hold these values; other ones under the same scheme id would never match.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import pytest

from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout, Fingerprints
from twinsieve.stages.fingerprint.digest import digests
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.mixing import KERNEL_VERSION
from twinsieve.stages.fingerprint.secret import Secret

SECRET = Secret.of_seed(20_200_216)
LAYOUT = BandLayout(bands=3, rows=2, tables=2, key_bits=24, weak=3, grams="chars")
NEWS = "国家卫生健康委员会 通报新型冠状病毒肺炎疫情最新情况 湖北省新增确诊病例"

# text, digest, digest with a secret, SimHash, weak bits, band keys, signature, bag, hash of the sketch
CHARS = [
    (
        "武汉加油中国加油",
        "cb2697742e5ee150923a9ba0c1c4160a",
        "f5611f7a25d372e2e8893e5ebe0f8474",
        "c6b28432cd71e6c2283ab69191e7608a",
        "04080d010407",
        "7b684f5379a5388e17954447",
        "20241000",
        "0000000000000001000000000000000010000000200010200000000000000010",
        "",
    ),
    (
        "今天天气很好我们一起出去玩吧后天也是这样的好天气",
        "87e1b3f57e1c4d34cb40828af1f45bb0",
        "3d05e8fb7bd6e116373a213880b6dbc4",
        "17db72334481df0fbb5446162f629062",
        "02040a04060f",
        "37740b85acb5e955ec9982c0",
        "d003fd40",
        "0010000220000000001000100000000010120010050000200300000110000000",
        "",
    ),
    (
        "stay home and stay safe",
        "b1ec523a6570e1e0ea84bd6a5923284e",
        "612940bd9c2a255cbe2889e2444e2047",
        "dd9174bf65491eb0ad7f8a14e73dfc72",
        "010709060a0d",
        "c83083ae6659269b16f647af",
        "00021c25",
        "0001030000000000100000100002000000000001000002000012000000000401",
        "",
    ),
    (
        "今天 wuhan 天气 is good 好",
        "e73f5b3bab57ac26e1115a2427ccdc92",
        "e9708d526168aae661d12b89add95c06",
        "2db3d681f6ea176f3b5b0817889a953b",
        "00040a020305",
        "234948ab52c86faf991cdfbe",
        "10831d60",
        "0000010000000000101000000000000000020002020100100110000010000101",
        "",
    ),
    (
        "नमस्ते दुनिया कैसे हो",
        "03835c352684deb553b6d577ba3d22d9",
        "6feb039cf4b4dcd1e9feeaa3b3319f82",
        "135c7c62af577b0259910f81d03135e8",
        "010203000405",
        "39d24ac43325ef97fc071b05",
        "50850ba0",
        "0000001000100100101000000110010000210000000200000000200001100010",
        "",
    ),
    (
        "短文",
        "cfb84ca810d3e0de421fc1f0d542c3ec",
        "51562bf554828c1970796afee5f90207",
        "",
        "000000000000",
        "000000000000000000000000",
        "00000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "",
    ),
    (
        "",
        "00000000000000000000000000000000",
        "6a06f2830fab6b38f3ca8260a639a7d5",
        "",
        "000000000000",
        "000000000000000000000000",
        "00000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "",
    ),
    (
        "\ud800\U0001f600\0",
        "24fa843dc20d24a91a61578196116dc9",
        "b7055cac299d26c82e562279dc3f966a",
        "",
        "000000000000",
        "000000000000000000000000",
        "00000000",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "",
    ),
    (
        "长" * 300,
        "fbaf87073c435fce020b446c359105c5",
        "2951469ed468835e3e52d1c6e22b8a2f",
        "720bc97d0b05242d0c67713be57f42e0",
        "020304000102",
        "5d67798a0723c89a61088ab1",
        "7c648637",
        "000000000000000000000000000000000000000000000000f000000000000000",
        "263a332d27c60012",
    ),
    (
        "新增确诊病例" * 50,
        "69ee52e0102a5aeb385ecf90cca5b49c",
        "3d75144b8fbe44d9da67bcfb192560f7",
        "32c44f7b334e5a3388b7a1b3d5b14d51",
        "000105000b0d",
        "ab929ab0a8e722bda64e4f4a",
        "6662faa5",
        "f000000f00000000000000000000000000000000000f000f000000000000f0f0",
        "a808393f5e8f95d8",
    ),
]

FEATURES = [
    (FeatureConfig("shingles", "chars", 3, weights="none"), "95f935def1cabade4052e01e1e7b9143"),
    (FeatureConfig("shingles", "words", 2, weights="position"), "f3e9837c664f25686440cc2ad1c6d371"),
    (FeatureConfig("keywords", weights="tfidf"), "506ca470d92438193e1b6787b6a180ad"),
    (
        FeatureConfig("keywords", parts_of_speech=("n", "vn"), weights="tf"),
        "1ef4a226516d1919f637c7c7f54a8a6d",
    ),
    (FeatureConfig(weights="tfidf", idf=(("情", 2.5), ("疫情", 7.25))), "70c94f7a376fb867a84098e8e935d17b"),
]


def simhash(made: Fingerprints, row: int) -> str:
    if not made.has_simhash[row]:
        return ""
    return f"{int(made.simhashes[row, 0]) | int(made.simhashes[row, 1]) << 64:032x}"


BY_SCRIPT = [
    ("stay home and stay safe, all of you, until the storm is over", "4d1e1540f73ddd454ba7b2ab", "547c5d4b"),
    ("今天 wuhan 天气 is good 好 и всё ещё холодно на улице сегодня", "b05ab894cb8eaf1476a0f508", "2b0de0c6"),
]


def test_known_answers_are_those_of_this_version() -> None:
    assert KERNEL_VERSION == 4, "new kernels have new answers: write them here"


@pytest.mark.parametrize("known", CHARS, ids=range(len(CHARS)))
def test_fingerprints_of_known_texts(known: tuple[str, ...]) -> None:
    text, *expected = known
    made = Fingerprinter(FeatureConfig(), LAYOUT, DigestConfig()).fingerprints(bodies_of([text]))
    sketch = b"".join(row.tobytes() for row in made.sketches)
    assert [
        made.digests[0].tobytes().hex(),
        digests(DigestConfig(secret=SECRET), bodies_of([text]))[0].tobytes().hex(),
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
    made = Fingerprinter(FeatureConfig(), layout, DigestConfig()).fingerprints(bodies_of([text]))
    assert made.band_keys[0].astype(">u4").tobytes().hex() == keys
    assert f"{made.signatures[0]:08x}" == signature


@pytest.mark.usefixtures("dictionary_read_once")
@pytest.mark.parametrize(("config", "expected"), FEATURES, ids=range(len(FEATURES)))
def test_simhashes_of_known_features(config: FeatureConfig, expected: str) -> None:
    made = Fingerprinter(config, BandLayout(), DigestConfig()).fingerprints(bodies_of([NEWS]))
    assert simhash(made, 0) == expected
