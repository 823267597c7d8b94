"""Every column of a batch equals what a plain loop makes of each row alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from hashlib import blake2b
from itertools import combinations
from typing import Literal

import mmh3
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.fingerprint import twin
from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import BandLayout, Bodies, Fingerprints
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest import digests, text_key
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.fingerprint.secret import NO_SECRET, Secret
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, SignatureConfig

SECRET = Secret.of_seed(20_200_216)
LAYOUT = BandLayout(bands=5, rows=3, tables=6, key_bits=24, weak=3, grams="chars")
MAKER = Fingerprinter(FeatureConfig(), LAYOUT, DigestConfig())
MIXED = [
    "武汉加油中国加油",
    "stay home and stay safe",
    "今天 wuhan 天气 is good 好",
    "ไทยแลนด์ 武汉",
    "短文",
    "",
]

# Few different characters, so that grams repeat, beside any code point at all.
few = st.text(alphabet="天气好ab1\u0301\ud800\U0001f600 ", max_size=80)
anything = st.text(alphabet=st.characters(exclude_characters=" "), max_size=60)
batches = st.lists(few | anything, max_size=6)


def rows_equal(made: Fingerprints, row: int, other: Fingerprints, other_row: int) -> bool:
    columns = ("digests", "simhashes", "has_simhash", "weak_bits", "band_keys", "bags", "signatures")
    equal = all(np.array_equal(getattr(made, c)[row], getattr(other, c)[other_row]) for c in columns)
    sketch, other_sketch = made.sketch_rows[row], other.sketch_rows[other_row]
    if sketch < 0 or other_sketch < 0:
        return equal and bool(sketch == other_sketch)
    return equal and np.array_equal(made.sketches[sketch], other.sketches[other_sketch])


def plain_sums(tokens: list[str]) -> list[int]:
    """Of a SimHash, with the weight of a feature its number."""
    weights = Counter(twin.run_hash(feature) for feature, _ in twin.runs(tokens, [1, 2]))
    return twin.simhash_sums(weights)


def check_row(bodies: Bodies, made: Fingerprints, row: int) -> None:
    text = bodies.text(row)
    if bodies.exact_only[row]:
        assert not made.has_simhash[row]
        assert made.sketch_rows[row] == -1
        for column in (made.simhashes, made.weak_bits, made.band_keys, made.bags, made.signatures):
            assert not column[row].any()
        return
    assert made.band_keys[row].tolist() == twin.band_keys(text, LAYOUT.bands, LAYOUT.rows)
    assert made.signatures[row] == twin.signature(text)
    assert made.bags[row].tolist() == twin.bag(text)
    if len(text) < 256:
        assert made.sketch_rows[row] == -1
    else:
        assert made.sketches[made.sketch_rows[row]].tolist() == twin.sketch(text)
    marks = "".join(map(str, bodies.word_starts[bodies.starts[row] : bodies.starts[row + 1]].tolist()))
    sums = plain_sums(twin.tokens(text, marks, by_words=True))
    assert made.has_simhash[row]
    assert tuple(made.simhashes[row].tolist()) == twin.simhash(sums)
    assert made.weak_bits[row].tolist() == twin.weak_bits(sums, LAYOUT.tables, LAYOUT.key_bits, LAYOUT.weak)


@settings(max_examples=examples(60))
@example(MIXED)
@given(texts=batches)
def test_each_row_of_a_batch_equals_the_plain_loop(texts: list[str]) -> None:
    bodies = bodies_of(texts)
    made = MAKER.fingerprints(bodies)
    for row in range(len(texts)):
        check_row(bodies, made, row)


@pytest.mark.parametrize(
    "length", [8, 19, 20, 39, 255, 256, 257, 512, 513, 600, 2047, 2048, 2049, 4096, 5000]
)
def test_lengths_at_which_something_changes_equal_the_plain_loop(length: int) -> None:
    text = "".join(chr(0x4E00 + i * i * 7919 % 500) for i in range(length))
    bodies = bodies_of(["武汉加油中国加油", text, "x" * 9])
    made = MAKER.fingerprints(bodies)
    check_row(bodies, made, 1)


def test_digest_is_mmh3_of_little_endian_code_points() -> None:
    made = MAKER.fingerprints(bodies_of(MIXED))
    for row, text in enumerate(MIXED):
        raw = b"".join(ord(c).to_bytes(4, "little") for c in text.replace(" ", ""))
        assert made.digests[row].tobytes() == mmh3.mmh3_x64_128_digest(raw)
        unsigned = mmh3.hash64(raw, x64arch=True, signed=False)
        assert tuple(made.digests[row].tolist()) == unsigned


@pytest.mark.parametrize("secret", [NO_SECRET, SECRET])
def test_blake2b_digest_is_keyed_with_the_secret(secret: Secret) -> None:
    made = Fingerprinter(FeatureConfig(), LAYOUT, DigestConfig("blake2b", secret)).fingerprints(
        bodies_of(["ab"])
    )
    expected = blake2b(b"a\0\0\0b\0\0\0", digest_size=16, key=secret.bytes).digest()
    assert made.digests[0].tobytes() == expected


@settings(max_examples=examples(40))
@given(
    texts=batches,
    keys=st.lists(st.binary(min_size=16, max_size=16), min_size=2, max_size=2, unique=True),
    method=st.sampled_from(["mmh3", "blake2b"]),
)
@example(MIXED, [b"1" * 16, b"2" * 16], "mmh3")
def test_a_secret_changes_every_digest_and_nothing_else(
    texts: list[str], keys: list[bytes], method: Literal["mmh3", "blake2b"]
) -> None:
    """Near fingerprints are the same for everybody."""
    bodies = bodies_of(texts)
    public, *keyed = (
        Fingerprinter(FeatureConfig(), LAYOUT, DigestConfig(method, secret)).fingerprints(bodies)
        for secret in (NO_SECRET, *map(Secret.of_key, keys))
    )
    for made in keyed:
        for column in fields(made):
            if column.name != "digests":
                assert np.array_equal(getattr(made, column.name), getattr(public, column.name)), column.name
    for one, other in combinations((public, *keyed), 2):
        assert not (one.digests == other.digests).any()


@pytest.mark.usefixtures("dictionary_read_once")
@pytest.mark.parametrize(
    ("features", "signature"),
    [
        (FeatureConfig("keywords"), None),
        (FeatureConfig("shingles", weights="none"), SignatureConfig("top_features", 3, joined=False)),
        (FeatureConfig(), SignatureConfig("sentences", 2)),
        (FeatureConfig(), SignatureConfig("segments", 4, joined=False)),
        (FeatureConfig(idf=(("天", 2.0),)), SignatureConfig("imatch", 1)),
    ],
)
def test_keywords_and_signatures_are_the_same_for_everybody(
    features: FeatureConfig, signature: SignatureConfig | None
) -> None:
    texts = ["今天天气很好。我们一起出去玩吧！明天也是这样的好天气", "Stay home today. The ferry is late."]
    public, keyed = (
        Scheme(SchemeConfig(features=features, signature=signature, digest=DigestConfig(secret=secret))).read(
            texts
        )[1]
        for secret in (NO_SECRET, SECRET)
    )
    assert public.simhashes.any()
    assert public.part_hashes.any() == (signature is not None)
    for column in fields(public):
        equal = getattr(public, column.name) == getattr(keyed, column.name)
        assert equal.all() if column.name != "digests" else not equal.any(), column.name


def test_given_keys_replace_the_text_in_the_digest_and_nowhere_else() -> None:
    bodies = bodies_of(MIXED)
    keys = [b"", b"7", b"\xff" * 100, b"7", b"8", b"9"]
    made = MAKER.fingerprints(bodies, keys)
    plain = MAKER.fingerprints(bodies)
    assert [d.tobytes() for d in made.digests] == [mmh3.mmh3_x64_128_digest(key) for key in keys]
    assert np.array_equal(made.simhashes, plain.simhashes)
    assert np.array_equal(made.band_keys, plain.band_keys)


@settings(max_examples=examples(150))
@given(texts=st.lists(st.text(alphabet=st.characters() | st.sampled_from("\ud800\udfff\0a")), max_size=8))
@example(texts=["\0", "", "a\0", "b"])
@example(texts=["", ""])
@example(texts=["x" * size for size in range(120)])
def test_the_digest_of_a_raw_text_is_mmh3_of_its_key(texts: list[str]) -> None:
    made = digests(DigestConfig(), Bodies.blank(len(texts)), texts)
    assert [each.tobytes() for each in made] == [mmh3.mmh3_x64_128_digest(text_key(text)) for text in texts]


@pytest.mark.parametrize("method", ["mmh3", "blake2b"])
@pytest.mark.parametrize("secret", [NO_SECRET, SECRET])
def test_a_raw_text_and_its_key_have_one_digest(method: Literal["mmh3", "blake2b"], secret: Secret) -> None:
    config = DigestConfig(method, secret)
    keys = [text_key(text) for text in MIXED]
    of_texts, of_keys = (digests(config, Bodies.blank(len(MIXED)), given) for given in (MIXED, keys))
    assert np.array_equal(of_texts, of_keys)


def test_one_key_too_few_is_refused() -> None:
    with pytest.raises(UsageError, match="1 keys for 2 rows"):
        MAKER.fingerprints(bodies_of(["a", "b"]), [b"a"])


def test_an_empty_batch_has_empty_columns() -> None:
    made = MAKER.fingerprints(bodies_of([]))
    assert len(made) == 0
    assert made.band_keys.shape == (0, LAYOUT.bands)
    assert made.weak_bits.shape == (0, LAYOUT.tables, LAYOUT.weak)
    assert made.sketches.shape == (0, 64)


def test_read_only_columns_are_accepted() -> None:
    bodies = bodies_of(MIXED)
    expected = MAKER.fingerprints(bodies)
    for column in (bodies.chars, bodies.starts, bodies.word_starts, bodies.exact_only):
        column.flags.writeable = False
    made = MAKER.fingerprints(bodies)
    assert all(rows_equal(made, row, expected, row) for row in range(len(MIXED)))


def test_a_gram_repeated_a_hundred_thousand_times_equals_one_of_it() -> None:
    once = MAKER.fingerprints(bodies_of(["哈" * 600]))
    often = MAKER.fingerprints(bodies_of(["哈" * 100_000]))
    assert np.array_equal(once.band_keys, often.band_keys)
    assert np.array_equal(once.sketches, often.sketches)
    assert np.array_equal(once.simhashes, often.simhashes)


def test_a_body_of_a_million_characters_beside_short_ones() -> None:
    long = "".join(chr(0x4E00 + i * 31 % 4999) for i in range(1_000_000))
    texts = ["武汉加油中国加油", long, "今天天气很好我们出去玩"]
    made = MAKER.fingerprints(bodies_of(texts))
    alone = MAKER.fingerprints(bodies_of([texts[2]]))
    assert rows_equal(made, 2, alone, 0)
    assert made.bags[1].tolist() == twin.bag(long)
    assert made.sketch_rows.tolist() == [-1, 0, -1]


@pytest.mark.parametrize(
    "layout",
    [
        BandLayout(bands=0, tables=0, weak=0),
        BandLayout(bands=32, rows=4, tables=8, key_bits=32, weak=5),
        BandLayout(bands=1, rows=1, tables=1, key_bits=64, weak=64),
    ],
)
def test_other_layouts_equal_the_plain_loop(layout: BandLayout) -> None:
    text = "今天天气很好我们一起出去玩吧明天也是这样的好天气"
    made = Fingerprinter(FeatureConfig(), layout, DigestConfig()).fingerprints(bodies_of([text]))
    sums = plain_sums(list(text))
    assert made.band_keys[0].tolist() == twin.band_keys(text, layout.bands, layout.rows)
    assert made.weak_bits[0].tolist() == twin.weak_bits(sums, layout.tables, layout.key_bits, layout.weak)


@pytest.mark.parametrize(
    "text",
    [
        "今天天气很好我们一起出去玩吧明天也是这样的好天气",
        "stormsurgefloodslowermanhattan",
        "abcdefgh",
        "武汉covid19疫情2020年wuhan加油",
        "ข่าวด่วนbreaking",
        "the" * 900 + "端" + "end" * 500,
        "stormsurgefloodslowermanhattanasthestormturnsout",
        "武汉covid19疫情2020年wuhan加油" * 3,
    ],
    ids=["han", "letters", "shortest", "mixed", "thai", "over a chunk", "48 letters", "long mixed"],
)
def test_grams_by_script_equal_the_plain_loop(text: str) -> None:
    layout = BandLayout(bands=36, rows=3, grams="by_script")
    made = Fingerprinter(FeatureConfig(), layout, DigestConfig()).fingerprints(bodies_of([text]))
    assert made.band_keys[0].tolist() == twin.band_keys(text, 36, 3, by_script=True)
    assert made.signatures[0] == twin.signature(text, by_script=True)


@pytest.mark.parametrize(
    ("layout", "what"),
    [
        (BandLayout(grams="words"), "layout.grams is 'words'; use chars or by_script"),  # type: ignore[arg-type]
        (BandLayout(bands=-1), "layout.bands"),
        (BandLayout(rows=0), "layout.rows"),
        (BandLayout(tables=129), "layout.tables"),
        (BandLayout(key_bits=65), "layout.key_bits"),
        (BandLayout(weak=25), "layout.weak is 25; use 0…24"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused_by_name(layout: BandLayout, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Fingerprinter(FeatureConfig(), layout, DigestConfig())


def test_a_digest_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"digest\.method is 'md5'"):
        DigestConfig("md5")  # type: ignore[arg-type]
