"""A message that cannot be written where it belongs still reaches the dead letters, as whole as they can take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from tests.configs import emit_config
from tests.memory.received import listed
from tests.room_for import RoomFor
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.broker.ports import TransactionalProducer
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, Copies, Messages, Partition, Records
from twinsieve.pipeline.wire.headers import ORIGIN, REASON, STAGE
from twinsieve.pipeline.wire.ruling import Result, Ruling
from twinsieve.pipeline.worker.emit import Emission, Emitter, HeldError, unsendable
from twinsieve.pipeline.worker.session import PendingBlock
from twinsieve.pipeline.worker.suspects import Suspects
from twinsieve.stages.contract import Kind, Verdicts

_SOURCE = Partition("posts", 3)
_HEADERS = (("trace", b"1"),)


class _Refusing:
    """Stands for a client: says which messages it cannot send."""

    def __init__(self, refuses: Callable[[Messages], DeadLetterReason | None]) -> None:
        self._refuses = refuses

    def unsendable(self, _topic: str, messages: Messages | Copies) -> dict[int, DeadLetterReason]:
        reason = self._refuses(listed([messages]))
        return {0: reason} if reason else {}


def _emitted(refuses: Callable[[Messages], DeadLetterReason | None]) -> Emission:
    records = Records.of(_SOURCE, [50456], [17], [b"key"], [b"value"], [_HEADERS])
    verdicts = Verdicts.blank(1)
    ruling = Ruling(7, 1, Result.JUDGED, 50456, 50457, np.zeros(1, np.uint8), verdicts)
    config, transactor = (
        emit_config("posts.unique", dead_letter="posts.dead"),
        cast(TransactionalProducer, _Refusing(refuses)),
    )
    pending = PendingBlock(50456, 50457, records, {}, 5, unsendable(config, records, transactor))
    emission = Emission()
    Emitter(config, {}, transactor, Suspects()).add(emission, pending, ruling)
    return emission


def _dead(emission: Emission) -> Messages:
    written = {
        topic: listed(parts) for (topic, _), parts in emission.outgoing.items() if any(map(len, parts))
    }
    assert list(written) == ["posts.dead"]
    return written["posts.dead"]


def test_a_refused_header_costs_the_headers_alone() -> None:
    dead = _dead(
        _emitted(
            lambda m: (
                DeadLetterReason.BAD_HEADER if any(name == "trace" for name, _ in m.headers[0]) else None
            )
        )
    )
    assert (dead.keys, dead.values, dead.timestamps_ms) == ([b"key"], [b"value"], [17])
    assert dead.headers == [[(REASON, b"bad_header"), (ORIGIN, b"posts[3]@50456")]]


def test_a_refused_time_costs_the_time() -> None:
    emission = _emitted(
        lambda m: DeadLetterReason.BAD_TIMESTAMP if m.timestamps_ms[0] != NO_TIMESTAMP else None
    )
    dead = _dead(emission)
    assert (dead.keys, dead.values, dead.timestamps_ms) == ([b"key"], [b"value"], [NO_TIMESTAMP])
    assert emission.dead == {"bad_timestamp": 1}


def test_a_message_that_is_too_large_leaves_its_origin() -> None:
    dead = _dead(_emitted(lambda m: DeadLetterReason.TOO_LARGE_FOR_TOPIC if m.values[0] else None))
    assert (dead.keys, dead.values) == ([None], [b""])
    assert (ORIGIN, b"posts[3]@50456") in dead.headers[0]


def test_a_message_that_cannot_be_buried_is_held_at_its_place() -> None:
    with pytest.raises(HeldError, match=r"posts\[3\]@50456: too_large_for_topic") as held:
        _emitted(lambda m: DeadLetterReason.TOO_LARGE_FOR_TOPIC)
    assert held.value.offset == 50456


def test_dead_letters_of_a_block_stand_in_the_order_of_the_input() -> None:
    """A duplicate that its topic refuses stands before an unreadable message that came later."""
    records = Records.of(_SOURCE, [5, 6], [17, 17], [None, None], [b"large", b"{"], [(), ()], [0, 0])
    verdicts = Verdicts.blank(2)
    verdicts.kinds[:] = [Kind.EXACT, Kind.UNREADABLE]
    ruling = Ruling(7, 1, Result.JUDGED, 5, 7, np.zeros(2, np.uint8), verdicts)
    config = emit_config("posts.unique", duplicates="posts.duplicates", dead_letter="posts.dead")
    refusing = _Refusing(
        lambda m: (
            DeadLetterReason.TOO_LARGE_FOR_TOPIC
            if m.values == [b"large"] and m.headers[0][0][0] != REASON
            else None
        )
    )
    emission = Emission()
    Emitter(config, {}, cast(TransactionalProducer, refusing), Suspects()).add(
        emission, PendingBlock(5, 7, records, {1: DeadLetterReason.INVALID_JSON}, 5, {}), ruling
    )
    dead = _dead(emission)
    assert [dict(headers)[ORIGIN] for headers in dead.headers] == [b"posts[3]@5", b"posts[3]@6"]


@pytest.mark.parametrize("spare", [0, -1])
def test_only_what_does_not_fit_with_its_own_headers_is_refused(spare: int) -> None:
    """Other messages of the block have longer headers, and a first look is at the longest that there may be."""
    first = b"v" * 40
    records = Records.of(_SOURCE, [5, 100_000], [17, 17], [None, None], [first, b"v"], [_HEADERS, ()])
    room = len(first) + len("trace1") + len(ORIGIN) + len("posts[3]@5")
    config = emit_config("posts.unique", duplicates="posts.duplicates", dead_letter="posts.dead")
    transactor = cast(TransactionalProducer, RoomFor(room + spare))
    refused = unsendable(config, records, transactor)
    assert refused == ({0: DeadLetterReason.TOO_LARGE_FOR_TOPIC} if spare else {})
    # As duplicates they have a header more.
    verdicts = Verdicts.blank(2, fill={"kinds": Kind.EXACT})
    ruling = Ruling(7, 1, Result.JUDGED, 5, 100_001, np.zeros(2, np.uint8), verdicts)
    transactor = cast(TransactionalProducer, RoomFor(room + len(STAGE) + len("exact") + spare))
    emission = Emission()
    Emitter(config, {}, transactor, Suspects()).add(emission, PendingBlock(5, 100_001, records), ruling)
    written = {topic: listed(parts) for (topic, _), parts in emission.outgoing.items()}
    stage, origins = (STAGE, b"exact"), [(ORIGIN, b"posts[3]@5"), (ORIGIN, b"posts[3]@100000")]
    expected = [[*_HEADERS, stage, origins[0]], [stage, origins[1]]]
    assert [[*each] for each in written["posts.duplicates"].headers] == (expected[1:] if spare else expected)
    assert emission.dead == ({"too_large_for_topic": 1} if spare else {})


def test_redriven_messages_keep_their_first_places_and_the_longest_one_counts() -> None:
    places = [b"posts[3]@100000", b"p[0]@1"]
    records = Records.of(
        Partition("posts.dead", 0), [5, 6], [17, 17], [None, None], [b"v", b"v"], [(), ()], origins=places
    )
    first, second = records.slice(0, 1), records.slice(1, 2)
    assert (first.origins, second.origins) == (places[:1], places[1:])
    content = np.empty(len(records.content), np.uint8)
    assert Records.joined(records.partition, [first, second], content).origins == places
    room = len("v") + len(ORIGIN) + len(places[0])
    for spare, refused in ((0, {}), (-1, {0: DeadLetterReason.TOO_LARGE_FOR_TOPIC})):
        transactor = cast(TransactionalProducer, RoomFor(room + spare))
        assert unsendable(emit_config("posts.unique"), records, transactor) == refused
