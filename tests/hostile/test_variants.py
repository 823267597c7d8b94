"""A flood of posts around somebody else's: variants of it, and posts made to stand in its buckets.

Near fingerprints are public, so a stranger can compute all of them, under a key too. What he can reach is
that copies come out. No message may be lost because of him: whoever is dropped has a kept leader that is
really alike, as another program (rapidfuzz) says. Look-ups and memory stay within what the settings allow.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rapidfuzz.distance import Indel

from tests.hostile.app import App, any_key, ordinary, posts
from twinsieve.stages.contract import Kind, Verdicts
from twinsieve.stages.judge.batch_sieve import worst_case_bytes

SECTIONS: dict[str, object] = {
    "near": {"window": {"messages": 5_000}},
    "exact": {"window": {"messages": 50_000}},
}
FULL_WINDOW = 1_000
SIMILARITY = 0.8
"""The default of `near.similarity`."""
LOOK_UPS, BUCKET = 28 + 4, 8
"""Of the default layout: look-ups of one message (in bands and, with two weak bits, in a table), and entries
of a bucket."""

NOTICE = (
    "northfield council says that every bridge near station square stays closed until monday because river "
    "water keeps rising fast after heavy rain yesterday"
)

Made = Callable[[int], list[str]]


def numbered(count: int) -> list[str]:
    """Alike, and kept apart by a number."""
    return [f"{NOTICE} and bus {100 + number} does not run" for number in range(count)]


def replaced(count: int) -> list[str]:
    """One word is another one: all alike."""
    words, others = NOTICE.split(), ordinary(random.Random(1), count)
    made = []
    for number, other in enumerate(others):
        at = number % len(words)
        made.append(" ".join([*words[:at], other.split()[0], *words[at + 1 :]]))
    return made


def drifting(count: int) -> list[str]:
    """Each has one more word replaced than the one before: alike are those that follow each other."""
    words, made = NOTICE.split(), []
    for number, other in enumerate(ordinary(random.Random(2), count)):
        words[number * 7 % len(words)] = other.split()[0]
        made.append(" ".join(words))
    return made


def body(text: str) -> str:
    """What is compared, of these plain words."""
    return text.replace(" ", "")


def digits(text: str) -> str:
    """Numbers keep two texts apart."""
    return "".join(filter(str.isdecimal, text))


def lost(texts: Sequence[str], verdicts: Verdicts) -> Iterator[tuple[str, str]]:
    """Those that were dropped although no kept text is alike, each with the text of its leader.

    texts, verdicts: all of the app
    """
    for row, (kind, leader) in enumerate(
        zip(verdicts.kinds.tolist(), verdicts.leaders.tolist(), strict=True)
    ):
        if kind == Kind.UNIQUE:
            continue
        text, led_by = body(texts[row]), body(texts[leader]) if leader >= 0 else ""
        is_alike = Indel.normalized_similarity(text, led_by) >= SIMILARITY and digits(text) == digits(led_by)
        if not (text == led_by if kind == Kind.EXACT else is_alike):
            yield text, led_by


def kept_leaders(kinds: Sequence[int], verdicts: Verdicts) -> bool:
    """Whether all leaders were kept. kinds: of all that the app has judged"""
    dropped = verdicts.leaders[verdicts.kinds != Kind.UNIQUE].tolist()
    return all(kinds[leader] == Kind.UNIQUE for leader in dropped)


@pytest.mark.parametrize("count", [16, 200])
@pytest.mark.parametrize("made", [numbered, replaced, drifting])
def test_a_flood_of_variants_loses_no_message(made: Made, count: int) -> None:
    app, variants = App(any_key(0), SECTIONS), made(count)
    copies = [f"{text} now" for text in variants]
    texts = [*variants, *copies, *variants]
    verdicts = app.judge(posts(texts))
    assert list(lost(texts, verdicts)) == []
    assert kept_leaders(verdicts.kinds.tolist(), verdicts)
    again = verdicts.kinds[2 * count :]
    was_kept = verdicts.kinds[:count] == Kind.UNIQUE
    assert (again[was_kept] == Kind.EXACT).all()
    assert (again != Kind.UNIQUE).all()


def test_variants_that_are_kept_push_each_other_out_and_copies_come_out() -> None:
    """Each bucket has the newest eight."""
    app, variants = App(any_key(0), SECTIONS), numbered(200)
    assert app.kinds(posts(variants)) == [Kind.UNIQUE] * 200
    copies = [text.replace("does not run", "will not run") for text in variants]
    for number in range(0, 200, 25):
        alone = App(any_key(0), SECTIONS).kinds(posts([variants[number], copies[number]]))
        assert alone == [Kind.UNIQUE, Kind.NEAR]
    assert set(app.kinds(posts(copies))) == {Kind.UNIQUE, Kind.NEAR}


def moved(dice: random.Random, longest: int) -> str:
    """The words of NOTICE, cut into runs of up to `longest` words, in another order."""
    words, runs = NOTICE.split(), list[str]()
    while words:
        size = dice.randint(1, longest)
        runs.append(" ".join(words[:size]))
        words = words[size:]
    dice.shuffle(runs)
    return " ".join(runs)


@cache
def in_its_buckets(count: int, longest: int = 8) -> list[str]:
    """Posts of the same words that share most keys of bands and tables with NOTICE, and are not alike: the
    best of many. longest: with runs of one word they are not alike each other either, so all are kept"""
    app, dice = App(any_key(0), SECTIONS), random.Random(3)
    tried = sorted({moved(dice, longest) for _ in range(3 * count + 1_500)})
    tried = [text for text in tried if Indel.normalized_similarity(body(text), body(NOTICE)) < SIMILARITY]
    prints = app.batch(posts([NOTICE, *tried])).fingerprints
    shared = (prints.band_keys[1:] == prints.band_keys[0]).sum(axis=1)
    apart = np.bitwise_count((prints.simhashes[1:, 0] ^ prints.simhashes[0, 0]) & np.uint64((1 << 24) - 1))
    best = np.lexsort((apart, -shared))[:count]
    return [tried[row] for row in best.tolist()]


def mixed(count: int) -> list[str]:
    return in_its_buckets(count, 1)


def test_a_stranger_who_knows_the_bands_shares_most_of_them_without_being_alike() -> None:
    """Else the floods below would say nothing."""
    app = App(any_key(0), SECTIONS)
    prints = app.batch(posts([NOTICE, *in_its_buckets(200)])).fingerprints
    shared = (prints.band_keys[1:] == prints.band_keys[0]).sum(axis=1)
    assert shared.min() >= 14
    assert shared.max() >= 24
    differ = (prints.simhashes[1:, 0] ^ prints.simhashes[0, 0]) & np.uint64((1 << 24) - 1)
    assert (differ == 0).any()


@pytest.mark.parametrize("count", [16, 200, 2_000])
@pytest.mark.parametrize("made", [in_its_buckets, mixed])
def test_posts_made_for_the_buckets_of_another_take_nothing(made: Made, count: int) -> None:
    """Before it comes, and after."""
    flood = made(count)
    app = App(any_key(0), SECTIONS)
    texts = [*flood, NOTICE, *flood, NOTICE, f"{NOTICE} afternoon"]
    verdicts = app.judge(posts(texts))
    assert verdicts.kinds[count] == Kind.UNIQUE
    assert list(lost(texts, verdicts)) == []
    assert kept_leaders(verdicts.kinds.tolist(), verdicts)
    assert verdicts.kinds[-2] == Kind.EXACT
    assert verdicts.leaders[-2] == count


def test_posts_made_for_the_buckets_of_another_make_copies_of_it_come_out() -> None:
    app, copy = App(any_key(0), SECTIONS), posts([f"{NOTICE} afternoon"])
    assert app.kinds(posts([NOTICE])) == [Kind.UNIQUE]
    assert app.sieve.query(app.batch(copy)).kinds.tolist() == [Kind.NEAR]
    app.judge(posts(in_its_buckets(200)))
    assert app.kinds(copy) == [Kind.UNIQUE]


def compared(app: App, text: str) -> int:
    """With how many kept messages the text of this one is compared."""
    app.sieve.query(app.batch(posts([text])))
    return int(app.sieve.near.scratch[0].found.counts[0])


@pytest.mark.parametrize("made", [numbered, replaced, drifting, in_its_buckets, mixed])
def test_one_message_is_compared_with_no_more_than_its_buckets_hold(made: Made) -> None:
    few, many = App(any_key(0), SECTIONS), App(any_key(0), SECTIONS)
    few.judge(posts(made(200)))
    many.judge(posts(made(2_000)))
    text = f"{NOTICE} afternoon"
    assert 0 < compared(few, text) <= LOOK_UPS * BUCKET
    assert 0 < compared(many, text) <= LOOK_UPS * BUCKET


def test_a_flood_for_the_buckets_of_another_fills_them() -> None:
    """Else the test above would say nothing."""
    app = App(any_key(0), SECTIONS)
    assert compared(app, NOTICE) == 0
    app.judge(posts(mixed(2_000)))
    assert compared(app, NOTICE) >= LOOK_UPS * BUCKET // 4


def sizes(app: App) -> list[int]:
    """Of the arrays that a look-up works in."""
    near = app.sieve.near
    arrays: list[NDArray[Any]] = [*near.matches, *near.copies]
    for scratch in near.scratch:
        arrays += [*scratch.found, *scratch.look_ups, scratch.seen]
    return [array.nbytes for array in arrays]


@pytest.mark.parametrize(("made", "count"), [(numbered, 4_000), (drifting, 5_000), (mixed, 2_500)])
def test_memory_grows_only_until_the_window_is_full(made: Made, count: int) -> None:
    sections: dict[str, object] = {
        "near": {"window": {"messages": FULL_WINDOW}},
        "exact": {"window": {"messages": 10 * FULL_WINDOW}},
    }
    app, flood, used = App(any_key(0), sections), posts(made(count)), list[int]()
    before = sizes(app)
    while flood:
        app.judge(flood[:500])
        del flood[:500]
        if app.sieve.stats().kept >= FULL_WINDOW:
            used.append(app.sieve.stats().bytes_used)
    assert len(used) >= 3
    assert sizes(app) == before
    assert used[1] == used[-1] <= sum(worst_case_bytes(app.sieve.config).values())
