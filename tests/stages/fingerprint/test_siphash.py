"""Digests with a key are SipHash-2-4 with 128 bits of output, those without are MurmurHash3; each use has its own."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from itertools import combinations
from random import Random
from typing import get_args

import mmh3
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.stages.fingerprint import twin
from tests.stages.fingerprint.bodies import bodies_of
from twinsieve.stages.contract import Bodies
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest import digests, text_key
from twinsieve.stages.fingerprint.digest_config import DigestConfig
from twinsieve.stages.fingerprint.hashing import (
    Hash,
    Use,
    hash_bytes,
    hash_code_points,
    hash_texts,
    joined_texts,
)
from twinsieve.stages.fingerprint.secret import NO_SECRET, Secret

# source: veorq/SipHash, vectors.h, vectors_sip128 (CC0): the key is 00 … 0f, text n is 00 … n - 1.
VECTORS = """
    a3817f04ba25a8e66df67214c7550293 da87c1d86b99af44347659119b22fc45
    8177228da4a45dc7fca38bdef60affe4 9c70b60c5267a94e5f33b6b02985ed51
    f88164c12d9c8faf7d0f6e7c7bcd5579 1368875980776f8854527a07690e9627
    14eeca338b208613485ea0308fd7a15e a1f1ebbed8dbc153c0b84aa61ff08239
    3b62a9ba6258f5610f83e264f31497b4 264499060ad9baabc47f8b02bb6d71ed
    00110dc378146956c95447d3f3d0fbba 0151c568386b6677a2b4dc6f81e5dc18
    d626b266905ef35882634df68532c125 9869e247e9c08b10d029934fc4b952f7
    31fcefac66d7de9c7ec7485fe4494902 5493e99933b0a8117e08ec0f97cfc3d9
    6ee2a4ca67b054bbfd3315bf85230577 473d06e8738db89854c066c47ae47740
    a426e5e423bf4885294da481feaef723 78017731cf65fab074d5208952512eb1
    9e25fc833f2290733e9344a5e83839eb 568e495abe525a218a2214cd3e071d12
    4a29b54552d16b9a469c10528eff0aae c9d184ddd5a9f5e0cf8ce29a9abf691c
    2db479ae78bd50d8882a8a178a6132ad 8ece5f042d5e447b5051b9eacb8d8f6f
    9c0b53b4b3c307e87eaee08678141f66 abf248af69a6eae4bfd3eb2f129eeb94
    0664da1668574b88b935f3027358aef4 aa4b9dc4bf337de90cd4fd3c467c6ab7
    ea5c7f471faf6bde2b1ad7d4686d2287 2939b0183223fafc1723de4f52c43d35
    7c3956ca5eeafc3e363e9d556546eb68 77c6077146f01c32b6b69d5f4ea9ffcf
    37a6986cb8847edf0925f0f1309b54de a705f0e69da9a8f907241a2e923c8cc8
    3dc47d1f29c448461e9e76ed904f6711 0d62bf01e6fc0e1a0d3c4751c5d3692b
    8c03468bca7c669ee4fd5e084bbee7b5 528a5bb93baf2c9c4473cce5d0d22bd9
    df6a301e95c95dad97ae0cc8c6913bd8 801189902c857f39e73591285e70b6db
    e617346ac9c231bb3650ae34ccca0c5b 27d93437efb721aa401821dcec5adf89
    89237d9ded9c5e78d8b1c9b166cc7342 4a6d8091bf5e7d651189fa94a250b14c
    0e33f96055e7ae893ffc0e3dcf492902 e61c432b720b19d18ec8d84bdc63151b
    f7e5aef549f782cf379055a608269b16 438d030fd0b7a54fa837f2ad201a6403
    a590d3ee4fbf04e3247e0d27f286423f 5fe2c1a172fe93c4b15cd37caef9f538
    2c97325cbd06b36eb2133dd08b3a017c 92c814227a6bca949ff0659f002ad39e
    dce850110bd8328cfbd50841d6911d87 67f14984c7da791248e32bb5922583da
    1938f2cf72d54ee97e94166fa91d2a36 74481e9646ed49fe0f6224301604698e
    57fca5de98a9d6d8006438d0583d8a1d 9fecde1cefdc1cbed4763674d9575359
    e3040c00eb28f15366ca73cbd872e740 7697009a6a831dfecca91c5993670f7a
    5853542321f567a005d547a4f04759bd 5150d1772f50834a503e069a973fbd7c
"""
KEY = bytes(range(16))
USES: tuple[Use, ...] = get_args(Use)
PUBLIC_SEEDS: dict[Use, int] = {"digest": 0, "scope": 0x5C0, "id": 0x7D1}
LONG = "".join(chr(0x4E00 + at * 7919 % 5000) for at in range(201))

Plain = Callable[[bytes], bytes]
"""What a hash is, of bytes, by other code."""

anything = st.characters(exclude_characters="\0") | st.sampled_from("\ud800\udfff\U0010ffffaé天")
batches = st.lists(st.text(anything, max_size=200), max_size=5)


def hashed_by(key: bytes) -> Hash:
    first, second = np.frombuffer(key, "<u8").astype(np.uint64)
    return Hash(np.uint64(0), (first, second), is_keyed=True)


def subkey(secret: bytes, use: str) -> bytes:
    return blake2b(key=secret, digest_size=16, person=f"twinsieve {use}".encode()).digest()


HASHES: list[tuple[Hash, Plain]] = [
    (hashed_by(KEY), lambda raw: twin.siphash_128(raw, KEY)),
    (hashed_by(b"\xff" * 16), lambda raw: twin.siphash_128(raw, b"\xff" * 16)),
    *(
        (Hash.of(use), lambda raw, seed=seed: mmh3.mmh3_x64_128_digest(raw, seed))
        for use, seed in PUBLIC_SEEDS.items()
    ),
]
either = pytest.mark.parametrize(("by", "plain"), HASHES, ids=["keyed", "other key", *PUBLIC_SEEDS])


def of_bytes(values: list[bytes], by: Hash) -> list[bytes]:
    made = np.empty((len(values), 2), np.uint64)
    hash_bytes(values, by, made)
    return [each.tobytes() for each in made]


def of_texts(texts: list[str], by: Hash, *, as_keys: bool) -> list[bytes]:
    made = np.empty((len(texts), 2), np.uint64)
    assert hash_texts(joined_texts(texts), by, made, as_keys=as_keys)
    return [each.tobytes() for each in made]


def of_code_points(texts: list[str], by: Hash) -> list[bytes]:
    chars = np.array([ord(char) for text in texts for char in text], np.uint32)
    starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    made = np.empty((len(texts), 2), np.uint64)
    hash_code_points(chars, starts, by, made)
    return [each.tobytes() for each in made]


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def as_code_points(text: str) -> bytes:
    return text.encode("utf-32-le", "surrogatepass")


def test_the_published_vectors() -> None:
    vectors = [bytes.fromhex(each) for each in VECTORS.split()]
    assert len(vectors) == 64
    texts = [bytes(range(length)) for length in range(64)]
    assert of_bytes(texts, hashed_by(KEY)) == vectors
    assert [twin.siphash_128(text, KEY) for text in texts] == vectors


@either
@settings(max_examples=examples(40))
@given(values=st.lists(st.binary(max_size=200), max_size=5))
@example(values=[b"\xa5" * length for length in range(201)])
@example(values=[b"", b"\0", b"\0\0", bytes(8), bytes(16), bytes(256), bytes(512)])
def test_bytes(by: Hash, plain: Plain, values: list[bytes]) -> None:
    assert of_bytes(values, by) == list(map(plain, values))


@either
@settings(max_examples=examples(40))
@given(texts=batches)
@example(texts=["x" * length for length in range(201)])
@example(texts=[LONG[:length] for length in range(201)])
def test_texts(by: Hash, plain: Plain, texts: list[str]) -> None:
    assert of_texts(texts, by, as_keys=False) == [plain(as_bytes(text)) for text in texts]
    assert of_texts(texts, by, as_keys=True) == [plain(text_key(text)) for text in texts]


@either
@settings(max_examples=examples(40))
@given(texts=st.lists(st.text(anything | st.just("\0"), max_size=200), max_size=5))
@example(texts=[LONG[:length] for length in range(201)])
@example(texts=["\U0010ffff" * length for length in range(201)])
@example(texts=["\0" * length for length in range(201)])
def test_code_points(by: Hash, plain: Plain, texts: list[str]) -> None:
    assert of_code_points(texts, by) == [plain(as_code_points(text)) for text in texts]


@settings(max_examples=examples(40))
@given(texts=batches, secret=st.binary(min_size=16, max_size=16))
def test_digests_are_made_with_a_key_of_their_own(texts: list[str], secret: bytes) -> None:
    config = DigestConfig(secret=Secret("not looked at", secret))
    key = subkey(secret, "digest")
    spaceless = [text.replace(" ", "") for text in texts]
    made = digests(config, bodies_of(spaceless))
    assert [each.tobytes() for each in made] == [
        twin.siphash_128(as_code_points(text), key) for text in spaceless
    ]
    expected = [twin.siphash_128(text_key(text), key) for text in texts]
    for keys in (texts, list(map(text_key, texts))):
        assert [each.tobytes() for each in digests(config, Bodies.blank(len(texts)), keys)] == expected


def test_no_two_uses_and_no_two_secrets_have_one_hash() -> None:
    secrets = [b"", KEY, KEY[::-1], bytes(16), bytes(15) + b"\1"]
    found = {
        (use, secret): of_bytes([b"", b"a", b"two words"], Hash.of(use, secret))
        for use in USES
        for secret in secrets
    }
    for one, other in combinations(found, 2):
        assert not set(found[one]) & set(found[other]), (one, other)
    for (use, secret), made in found.items():
        assert of_bytes([b"", b"a", b"two words"], Hash.of(use, secret)) == made
        if secret:
            key = subkey(secret, use)
            assert made == [twin.siphash_128(raw, key) for raw in (b"", b"a", b"two words")]


@pytest.mark.parametrize("length", [0, 8, 15, 17, 32])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(UsageError, match=f"a key has 16 bytes, not {length}"):
        Secret.of_key(bytes(length))


def test_with_a_name_alone_nothing_is_hashed() -> None:
    known = Secret.of_key(KEY)
    named = Secret.named(known.name)
    assert named != known
    assert named.name == known.name
    for method in ("mmh3", "blake2b"):
        with pytest.raises(UsageError, match=f"the secret {known.name} is not known here"):
            digests(DigestConfig(method, named), bodies_of(["a"]))
    assert Secret.named(NO_SECRET.name) is NO_SECRET


def test_equal_secrets_have_one_name_and_others_have_others() -> None:
    made = [
        NO_SECRET,
        *map(Secret.of_seed, (1, 2, 1 << 32, (1 << 64) - 1)),
        Secret.of_key(KEY),
        Secret.of_key(bytes(16)),
    ]
    assert len({each.name for each in made}) == len({each.bytes for each in made}) == len(made)
    assert Secret.of_seed(0) is NO_SECRET
    assert Secret.of_key(KEY) == Secret.of_key(KEY)
    assert Secret.of_seed((1 << 64) - 1) == Secret.of_seed((1 << 64) - 1)


def test_no_value_is_shown() -> None:
    key = b"sixteen letters!"
    secret = Secret.of_key(key)
    for shown in (repr(secret), str(secret), repr(DigestConfig(secret=secret)), f"{secret}"):
        assert secret.name in shown
        assert not any(each in shown for each in (key.decode(), key.hex(), repr(key)[2:-1], "value"))
    assert key.hex() not in secret.name


# MurmurHash3 mixes each word of 8 bytes by itself before anything depends on the seed.
ODD = 0x87C37B91114253D5, 0x4CF5AD432745937F


def mixed(word: int, place: int) -> int:
    """A word as MurmurHash3 adds it to its state. place: 0 or 1, in a pair of words"""
    word = word * ODD[place] & twin.MASK64
    by = (31, 33)[place]
    return (word << by | word >> 64 - by) * ODD[1 - place] & twin.MASK64


def unmixed(word: int, place: int) -> int:
    word = word * pow(ODD[1 - place], -1, 1 << 64) & twin.MASK64
    by = (31, 33)[place]
    word = (word >> by | word << 64 - by) & twin.MASK64
    return word * pow(ODD[place], -1, 1 << 64) & twin.MASK64


def words_apart(place: int, bit: int, random: Random) -> tuple[str, str]:
    """Two words of 8 ASCII characters that are mixed to numbers which differ in this one bit."""
    while True:
        word = bytes(random.randrange(1, 0x80) for _ in range(8))
        other = unmixed(mixed(int.from_bytes(word, "little"), place) ^ 1 << bit, place).to_bytes(8, "little")
        if all(0 < letter < 0x80 for letter in other):
            return word.decode(), other.decode()


def colliding_texts() -> tuple[str, str]:
    """Two texts whose keys have one MurmurHash3 under every seed.

    The key of a text of 44 characters begins with `s44:`, so its second 16 bytes begin at the text's character 12. There
    the first word changes bit 63 of one half of the state, and nothing else after the multiplication by 5; the
    second word changes that bit of the other half before this one is added to it, so that it is changed back. The
    third word does the same for the first half.
    """
    random = Random(7)
    parts = [words_apart(0, 63 - 27, random), words_apart(1, 63 - 31, random), words_apart(0, 63, random)]
    one, other = ("".join(each) for each in zip(*parts, strict=True))
    return f"https://a.b/{one}01234567", f"https://a.b/{other}01234567"


def test_two_keys_of_one_public_digest_differ_under_every_secret() -> None:
    texts = list(colliding_texts())
    keys = [text_key(text) for text in texts]
    assert texts[0] != texts[1]
    random = Random(1)
    for seed in (0, *(random.randrange(1 << 32) for _ in range(1_000))):
        assert len({mmh3.mmh3_x64_128_digest(key, seed) for key in keys}) == 1
    blank = Bodies.blank(2)
    for given_keys in (texts, keys):
        one, other = digests(DigestConfig(), blank, given_keys).tolist()
        assert one == other
        for _ in range(1_000):
            secret = Secret("not looked at", random.randbytes(16))
            one, other = digests(DigestConfig(secret=secret), blank, given_keys)
            assert (one != other).all()
