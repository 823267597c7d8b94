"""Shards that join, leave, are killed or freeze: somebody answers for every segment, and what need not move stays."""

from __future__ import annotations

import pytest

from tests.shards.holding_shards import ANSWERS, NO_RECORD, SCHEME, App, reader
from twinsieve.pipeline.broker.records import FatalError, Messages, Partition
from twinsieve.pipeline.shards.rendezvous import Span, first_of
from twinsieve.pipeline.shards.shard import Shard
from twinsieve.pipeline.wire.segment_answers import AnswersRecord, SegmentPart, asked_of, encode_answers


def answered_since(app: App, block: int, shard: str | None = None) -> set[Span]:
    """The segments for which all blocks from this one on are answered."""
    wanted = set(range(block, app.asked))
    return {Span(*segment[:2]) for segment, blocks in app.answers(shard).items() if wanted <= blocks.keys()}


def spans(app: App) -> set[Span]:
    return {Span(*segment[:2]) for segment in app.sealed()}


def firsts(app: App, *names: str) -> dict[Span, str]:
    members = [f"{name}-shard" for name in names]
    return {span: first_of(span, members, 1)[0].removesuffix("-shard") for span in spans(app)}


def finish(app: App, shard: Shard, *others: Shard, most_s: float = 90.0) -> float:
    """End a shard as SIGTERM does, while others go on; returns the seconds that it took."""
    began_s = app.clock.monotonic_s()
    while not shard.finish(0.05):
        assert app.clock.monotonic_s() - began_s < most_s
        for other in others:
            other.step(0.05)
    shard.close()
    return app.clock.monotonic_s() - began_s


def test_who_joins_takes_what_it_is_first_for_and_the_other_stops_then(app: App) -> None:
    one = app.shard("a")
    app.turn(one)
    two = app.shard("b")
    app.turn(one, two, seconds=8.0)
    at = app.asked
    app.ask(3)
    app.turn(one, two)
    expected = firsts(app, "a", "b")
    for name in "ab":
        assert answered_since(app, at, name) == {span for span, first in expected.items() if first == name}
    assert set(expected.values()) == {"a", "b"}
    for name, shard in (("a", one), ("b", two)):
        in_memory = {span for span, held in shard.holdings.held.items() if held.segment.holds_memory}
        assert in_memory == answered_since(app, at, name), (
            "a member holds in memory only the segments that it answers for"
        )


@pytest.mark.parametrize("forged", ["question", "own", "segment", "damaged"])
def test_only_an_answer_of_the_successor_to_this_question_relieves(app: App, forged: str) -> None:
    one = app.shard("a")
    app.turn(one)
    two = app.shard("b", background=Stuck())
    app.turn(one, two, seconds=6.0)
    messages = Messages()
    for segment in app.sealed():
        question = bytes(16) if forged == "question" else asked_of(reader().question)
        of = segment._replace(digest=bytes(16)) if forged == "segment" else segment
        shard = "a-shard" if forged == "own" else "b-shard"
        (value,) = encode_answers(
            SCHEME, AnswersRecord(app.log_id, question, shard, [SegmentPart(of, [], app.asked)]), 1_000
        )
        messages.add(None, NO_RECORD if forged == "damaged" else value)
    for number in range(3):
        app.cluster.write(Partition(ANSWERS, number), messages)
    app.turn(one, two, seconds=5.0)
    at = app.asked
    app.ask(2)
    app.turn(one, two)
    assert answered_since(app, at, "a") == spans(app)


def test_who_joins_without_files_leaves_the_answers_to_the_other(app: App) -> None:
    one = app.shard("a")
    app.turn(one)
    two = app.shard("b", background=Stuck())
    app.turn(one, two, seconds=20.0)
    at = app.asked
    app.ask(3)
    app.turn(one, two)
    assert answered_since(app, at, "a") == spans(app)
    assert not two.ready
    app.turn(one, two, seconds=60.0)
    moved = {span for span, first in firsts(app, "a", "b").items() if first == "b"}
    at = app.asked
    app.ask(3)
    app.turn(one, two)
    assert answered_since(app, at, "a") == spans(app) - moved, (
        "after the time of grace the index looks itself"
    )


class Stuck:
    """A thread whose call to the store never returns."""

    def submit(self, *_: object) -> Stuck:
        return self

    def done(self) -> bool:
        return False


def test_who_ends_answers_until_the_others_do(app: App) -> None:
    one, two = app.shard("a"), app.shard("b")
    app.turn(one, two, seconds=8.0)
    at = app.asked
    app.ask(4)
    took_s = finish(app, one, two)
    assert took_s < 10.0
    app.turn(two)
    assert answered_since(app, at) == spans(app)
    app.ask(2)
    app.turn(two)
    assert answered_since(app, at + 4, "b") == spans(app)


def test_who_ends_alone_does_not_wait(app: App) -> None:
    one = app.shard("a")
    app.turn(one)
    assert finish(app, one) < 1.0


def test_who_ends_while_the_other_has_no_files_waits_for_the_time_of_grace(app: App) -> None:
    one, two = app.shard("a"), app.shard("b", background=Stuck())
    app.turn(one, two)
    assert 55.0 < finish(app, one, two) < 70.0


def test_after_a_death_the_next_of_the_order_answers(app: App) -> None:
    shards = [app.shard(name) for name in "abc"]
    app.turn(*shards, seconds=8.0)
    assert sum(len(shard.holdings.held) for shard in shards) == 2 * len(spans(app)), "the next one has a copy"
    held = [shard for shard in shards for each in shard.holdings.held.values() if each.segment.holds_memory]
    assert len(held) == len(spans(app)), "only who answers has it in memory"
    at = app.asked
    app.ask(2)
    app.turn(*shards[1:], seconds=app.cluster.session_timeout_s + 4.0)
    assert answered_since(app, at) == spans(app)


def test_who_was_frozen_goes_on(app: App) -> None:
    one, two = app.shard("a"), app.shard("b")
    app.turn(one, two, seconds=8.0)
    app.turn(two, seconds=30.0)
    at = app.asked
    app.commit(at)
    app.ask(3)
    app.turn(one, two, seconds=10.0)
    assert answered_since(app, at) == spans(app)
    app.ask(2)
    app.turn(one, two)
    expected = firsts(app, "a", "b")
    assert answered_since(app, at + 3, "a") == {span for span, first in expected.items() if first == "a"}


def test_with_two_replicas_both_answer(app: App) -> None:
    shards = [app.shard(name, replicas=2) for name in "abc"]
    app.turn(*shards, seconds=8.0)
    at = app.asked
    app.ask(2)
    app.turn(*shards)
    told = [answered_since(app, at, name) for name in "abc"]
    assert all(sum(span in each for each in told) == 2 for span in spans(app))


def test_the_second_of_one_name_ends_the_first(app: App) -> None:
    one = app.shard("a")
    app.turn(one)
    two = app.shard("a")
    app.turn(two)
    with pytest.raises(FatalError) as caught:
        app.turn(one)
    assert caught.value.fenced


def test_shards_with_another_question_stand_where_nobody_is_needed(app: App) -> None:
    """They are in another group, so each group divides all segments among its own members."""
    one, other = app.shard("a"), app.shard("b", group="app.shards-2")
    app.turn(one, other, seconds=8.0)
    at = app.asked
    app.ask(2)
    app.turn(one, other)
    assert answered_since(app, at, "a") == answered_since(app, at, "b") == spans(app)


def test_an_offset_that_was_moved_back_is_answered_from_there(app: App) -> None:
    one = app.shard("a")
    app.turn(one)
    app.commit(15)
    app.turn(one)
    assert all(sorted(blocks) == list(range(15, 20)) for blocks in app.answers().values())
    assert app.answers()
