"""A known limit: where near duplicates are found by fingerprints alone, a stranger can forge them, under a
key too.

Near fingerprints are public. Up to 512 characters (`STORED_LENGTH`) the method text compares the texts
themselves, and nothing can be forged. Of longer bodies it compares sketches, and the method hamming compares
SimHashes alone. A stranger who knows the text of somebody else's next post makes one of other words with the
same fingerprint. SECURITY.md says so; whoever mends it turns these tests round.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

from tests.hostile.app import NO_KEY, App, any_key, ordinary, posts
from twinsieve.stages.contract import STORED_LENGTH, Flag, Kind
from twinsieve.stages.fingerprint.fingerprinter import _BANDS, _SKETCH
from twinsieve.stages.fingerprint.minhash import SKETCH_HASHES, HashFamily
from twinsieve.stages.fingerprint.secret import Secret
from twinsieve.stages.intrinsics import GOLDEN

SECRETS = [NO_KEY, any_key(0), any_key(1), Secret.of_seed(7)]
SPAM = "buy cheap pills here now"
_FULL = (1 << 64) - 1


def mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & _FULL
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & _FULL
    return word ^ (word >> 31)


def gram_hash(gram: str, seed: int) -> int:
    """Of four characters."""
    a, b, c, d = map(ord, gram)
    first, second = mixed((a << 32 | b) + seed & _FULL), mixed((c << 32 | d) + seed & _FULL)
    return mixed(first * int(GOLDEN) + second & _FULL) >> 32


def lowest(body: str, family: HashFamily) -> list[str]:
    """For each function of a family the four characters of the body that have its least value."""
    grams = sorted({body[at : at + 4] for at in range(len(body) - 3)})
    hashes = np.array([gram_hash(gram, int(family.gram_seed)) for gram in grams], np.uint32)
    values: NDArray[np.uint32] = family.multipliers[:, None] * hashes + family.addends[:, None]
    return [grams[at] for at in values.argmin(axis=1).tolist()]


def body_of(app: App, text: str) -> str:
    bodies = app.batch(posts([text])).bodies
    return "".join(map(chr, bodies.chars[: bodies.body_lengths[0]].tolist()))


def forged(app: App, text: str) -> str:
    """Spam with the fewest pieces of a text that give it the same sketch, and some of its bands."""
    body, layout = body_of(app, text), app.scheme.config.layout
    bands = lowest(body, HashFamily.of(_BANDS, layout.bands * layout.rows))
    pieces = {*lowest(body, HashFamily.of(_SKETCH, SKETCH_HASHES)), *bands[-24:]}
    fill = len(body) - sum(map(len, pieces))
    spam = [SPAM] * (fill // len(SPAM.replace(" ", "")))
    return " ".join([*spam[: len(spam) // 2], *sorted(pieces), *spam[len(spam) // 2 :]])


def long_post(words: int) -> str:
    return " ".join(random.Random(5).sample(" ".join(ordinary(random.Random(6), words)).split(), words))


@pytest.mark.parametrize("secret", SECRETS)
def test_a_long_post_can_be_taken_by_one_of_other_words(secret: Secret) -> None:
    app, text = App(secret, {}), long_post(800)
    other = forged(app, text)
    assert Indel.normalized_similarity(body_of(app, text), body_of(app, other)) < 0.4
    verdicts = app.judge(posts([other, text]))
    assert verdicts.kinds.tolist() == [Kind.UNIQUE, Kind.NEAR]
    assert verdicts.flags[1] & Flag.ESTIMATED


@pytest.mark.parametrize("secret", SECRETS)
def test_a_post_that_is_stored_whole_cannot(secret: Secret) -> None:
    app, text = App(secret, {}), long_post(84)
    assert STORED_LENGTH - 20 <= len(body_of(app, text)) <= STORED_LENGTH
    assert app.kinds(posts([forged(app, text), text])) == [Kind.UNIQUE, Kind.UNIQUE]


def with_simhash_of(app: App, text: str, within: int) -> str:
    """Another text, of words of the stranger's, whose SimHash differs in this number of bits at most."""
    dice, best = random.Random(1), 64
    words = " ".join(ordinary(random.Random(9), 200)).split()
    wanted = app.batch(posts([text])).fingerprints.simhashes[0, 0]
    found = dice.choices(words, k=24)
    while best > within:
        tried = [list(found) for _ in range(1_000)]
        for each in tried:
            for _ in range(dice.choice((1, 1, 2, 3))):
                each[dice.randrange(len(each))] = dice.choice(words)
        prints = app.batch(posts([" ".join(each) for each in tried])).fingerprints
        apart = np.bitwise_count(prints.simhashes[:, 0] ^ wanted)
        if apart.min() <= best:
            best, found = int(apart.min()), tried[int(apart.argmin())]
    return " ".join(found)


@pytest.mark.parametrize("secret", SECRETS)
def test_under_the_method_hamming_any_post_can_be_taken_by_one_of_other_words(secret: Secret) -> None:
    text = (
        "northfield council says that every bridge near station square stays closed until monday because "
        "river water keeps rising fast after heavy rain yesterday"
    )
    app = App(secret, {"near": {"method": "hamming"}})
    other = with_simhash_of(app, text, 3)
    assert not set(other.split()) & set(text.split())
    assert app.kinds(posts([other, text])) == [Kind.UNIQUE, Kind.NEAR]
