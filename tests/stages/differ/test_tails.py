"""Long bodies: no estimate is a likeness of 1, and tails with other numbers or negations keep apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.examples import examples
from tests.stages.differ.test_differences import pieces
from tests.twins import batch_of
from tests.whole_state import from_bytes, to_bytes
from twinsieve.stages.contract import (
    OFF,
    STORED_LENGTH,
    Bodies,
    Differences,
    Flag,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.tails import fill_tallies
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, TextConfig
from twinsieve.stages.text.normalizer import Normalizer

SCHEME = Scheme(SchemeConfig(TextConfig("plain")))
CONFIG = SieveConfig(near=NearConfig(similarity=7_000, candidates="scan"))
HEAD = (
    "The council met on Monday to speak about the old bridge over the river and the ferry that carries cars. "
    "Engineers had looked at the piers in spring and found rust on most of the beams below the roadway. "
    "Several members asked for a new bridge further up the valley, where the road is wide and the banks are "
    "firm. Others wanted to mend what stands, since money is short and the school roof leaks as well. "
)
MIDDLE = (
    "A farmer from the far side spoke of the long way round that his milk takes in winter. The mayor thanked "
    "all speakers and closed the meeting with a word on patience. The library opens again after the holidays "
    "with more books for children and a quiet room for those who study. Volunteers may write to the clerk. "
)
TAIL = "In all 12 people were hurt when the railing fell, and the doctor says that it is safe to walk there. "
END = "The next meeting will be held in the gymnasium, as the hall is being painted until the summer fair. "
LONG = HEAD + MIDDLE + TAIL + END


def judged(earlier: str, later: str, config: SieveConfig = CONFIG) -> Verdicts:
    return BatchSieve(config).judge(batch_of(*SCHEME.read([earlier, later]))).slice(1, 2)


def reason_of(earlier: str, later: str) -> tuple[Kind, Rule]:
    said = judged(earlier, later)
    return Kind(int(said.kinds[0])), Rule(int(said.reasons[0]))


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("12 people", "17 people"),
        ("12 people", "12 people and 3 dogs"),
        ("it is safe", "it is not safe"),
        ("12 people", "12+ people"),
        ("12 people", "12万 people"),
    ],
)
def test_other_numbers_or_negations_behind_what_is_stored_keep_apart(said: str, other: str) -> None:
    later = LONG.replace(said, other)
    assert later != LONG
    assert reason_of(LONG, later) == reason_of(later, LONG) == (Kind.UNIQUE, Rule.TAIL)


def long_text(*, head: str = "", tail: str = "", order: tuple[str, ...] = (TAIL, MIDDLE, END)) -> str:
    return head + HEAD + MIDDLE + "".join(order) + tail


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (LONG, LONG.replace("12 people", "012 people")),
        (LONG, LONG.replace("railing fell", "railings fell")),
        (LONG, LONG.replace("Engineers", "Many engineers")),
        # a moved paragraph says the same
        (long_text(), long_text(order=(MIDDLE, END, TAIL))),
        # a number more in a sentence more: the tails are not as long as each other
        (LONG, LONG + "Those who cannot come may call the clerk at 5551234 before noon on any day. "),
        # an edit in the head moves what stands at the cut
        *((long_text(), long_text(head="word " * count)) for count in (1, 3, 9)),
        *((f"{LONG} {number}", f"so {LONG} {number}") for number in range(101, 104)),
    ],
)
def test_what_says_the_same_is_dropped_and_never_wholly_alike(earlier: str, later: str) -> None:
    for one, other in ((earlier, later), (later, earlier)):
        said = judged(one, other)
        assert Kind(int(said.kinds[0])) is Kind.NEAR
        assert said.flags[0] & Flag.ESTIMATED
        assert round(said.similarity(0), 4) < 1


def test_any_place_of_the_cut_in_front_of_a_number_changes_nothing() -> None:
    numbers = " ".join(f"the {number} bus" for number in range(100, 400))
    for shift in range(8):
        assert reason_of(numbers, "x" * shift + "y " + numbers)[0] is Kind.NEAR


def test_without_differences_tails_keep_nothing_apart() -> None:
    config = replace(CONFIG, near=replace(CONFIG.near, differences=Differences(OFF)))
    said = judged(LONG, LONG.replace("12 people", "17 people"), config)
    assert said.kinds.tolist() == [Kind.NEAR]
    assert said.matched[0] < said.compared[0]


@pytest.mark.parametrize("letter", ["", "𠮷"])
def test_a_tally_is_kept_in_the_ring_and_in_its_state(letter: str) -> None:
    earlier = letter + LONG
    texts = [earlier, "A short post about the ferry", earlier.replace("12", "17"), earlier + "!"]
    batch = batch_of(*SCHEME.read(texts))
    sieve = BatchSieve(CONFIG)
    sieve.judge(batch.slice(0, 2))
    again = from_bytes(to_bytes(sieve), CONFIG)
    for one in (sieve, again):
        said = one.judge(batch.slice(2, 4))
        assert said.kinds.tolist() == [Kind.UNIQUE, Kind.EXACT]
        assert said.reasons.tolist() == [Rule.TAIL, Rule.NONE]


def tallies_of(bodies: Bodies) -> list[int]:
    tallies = np.zeros(len(bodies), np.uint64)
    fill_tallies(bodies, tallies)
    return [int(tally) for tally in tallies]


def test_short_bodies_and_those_compared_exactly_have_no_tally() -> None:
    bodies = Normalizer(TextConfig("plain")).bodies(["a 12 " * 20, "12 " * 400, "a 12 " * 400])
    assert [tally > 0 for tally in tallies_of(bodies)] == [False, False, True]
    assert bodies.body_lengths[1] > STORED_LENGTH


@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_tally_is_the_same_in_whatever_pieces_a_body_is_read(data: st.DataObject) -> None:
    """Words in front move all pieces, and hold neither number nor negation."""
    text = data.draw(pieces(40, 80)) + " and so on, with words that say little about it. " * 30
    text *= 8
    front = ["", "a word " * data.draw(st.integers(1, 200)), "甲" * data.draw(st.integers(1, 700)) + " "]
    bodies = Normalizer(TextConfig("plain")).bodies([f"{one}. {text}" for one in front])
    assert len(set(tallies_of(bodies))) == 1


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_long_bodies_are_judged_as_the_plain_loop_judges_them(data: st.DataObject) -> None:
    parts = data.draw(st.lists(pieces(3, 12), min_size=4, max_size=8))
    earlier = " ".join(parts) + " " + HEAD + MIDDLE + " ".join(parts)
    changed = list(parts)
    for _ in range(data.draw(st.integers(0, 2))):
        changed[data.draw(st.integers(0, len(parts) - 1))] = data.draw(pieces(1, 12))
    front = parts if data.draw(st.booleans()) else changed
    later = " ".join(front) + " " + HEAD + MIDDLE + " ".join(changed)
    bodies, prints = SCHEME.read([earlier, later])
    assume(int(bodies.body_lengths.min()) > STORED_LENGTH)
    batch = batch_of(bodies, prints)
    config = replace(CONFIG, near=replace(CONFIG.near, similarity=3_000))
    said = BatchSieve(config).judge(batch)
    loop = oracle.Oracle(config)
    expected = [loop.judge(row) for row in oracle.rows_of(batch)]
    assert [Kind(int(kind)) for kind in said.kinds] == [one.kind for one in expected]
    assert [Rule(int(one)) for one in said.reasons] == [one.reason for one in expected]
    assert said.matched.tolist() == [one.matched for one in expected]


def test_a_number_of_a_user_s_own_list_does_not_count() -> None:
    """Tallies come from whoever read the message; the lists of one configuration do not reach them."""
    words = "numerals: {廿: 20}\nnegation: zubrel"
    config = replace(CONFIG, near=replace(CONFIG.near, words=words))
    assert judged(LONG, LONG.replace("it is", "it is zubrel"), config).kinds.tolist() == [Kind.NEAR]


def test_tallies_of_other_lists_keep_nothing_apart() -> None:
    """Who read a message a version before has other lists; what its tally counted is unknown."""
    batch = batch_of(*SCHEME.read([LONG, LONG.replace("12 people", "17 people")]))
    batch.fingerprints.tallies[0] ^= np.uint64(1 << 48)
    assert BatchSieve(CONFIG).judge(batch).kinds.tolist() == [Kind.UNIQUE, Kind.NEAR]
