"""What the topics say, and what a deployment owes by them: the input as it stands and stood, and its three outputs.

Who judges by these rules knows nothing of blocks, decisions, sessions, marks or verdicts: they are what a user could
check with a console consumer, who reads committed, and the operator's diary (`tests/model/history.py`).

1. What stands in an input topic is in the output, the duplicates or the dead letters; so is what the group's
   offset had passed when it was lost. What an operator skipped is not owed.
2. Nothing comes out that never stood in the input; it has its bytes, its key and its headers.
3. Nothing comes out twice.
4. What is among the duplicates has an equal text in the output, and names a message with such a text.
5. What is among the dead letters has no readable text, or is what an output refused.
6. A text comes out once; it may once more for each message with it that was lost.
7. Messages of an input partition keep their order.
8. When all is calm, a copy of any text is in the output, or has an equal one there: nothing that never came out leads
   for ever (`missing_texts`).

Excused, and counted by cause: a duplicate of a message that was lost before it came out, if it was written before the
next calm, also where the leader was judged again and then dropped for a message that was lost; a message that came out again after retention took the record of its verdict.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import NamedTuple

from tests.driver import DEAD, DUPLICATES, JSON_READER, OUTPUT, SEEDED, World, origin_of
from tests.memory.log import Entry, Topic
from tests.model.history import Cause, Loss, Place
from twinsieve.pipeline.broker.records import Header

Same = Callable[[str], str]
"""What two texts that count as equal have in common."""


class Sort(Enum):
    """What a value is to the app, by the value alone."""

    TEXT = "text"
    NO_TEXT = "no text"
    UNREADABLE = "unreadable"


class Message(NamedTuple):
    """A message of the input; `stands`: in an input topic, now."""

    place: Place
    name: str
    entry: Entry
    sort: Sort
    text: str
    stands: bool

    @property
    def at(self) -> str:
        """As a person says it."""
        return f"{self.name}[{self.place[1]}]@{self.place[2]}"


class Fate(NamedTuple):
    """A message as it is in an output; `topic_id`: one made again has another."""

    topic: str
    topic_id: bytes
    number: int
    offset: int
    entry: Entry


class Raw:
    """Every message that was ever in the input, and every one that ever came out, committed both.

    raises: AssertionError where a message came out that never stood in the input
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.messages: dict[Place, Message] = {}
        self.fates: dict[Place, list[Fate]] = defaultdict(list)
        self._by_origin: dict[tuple[str, int, int], list[Message]] = defaultdict(list)
        for topic in [*world.cluster.deleted, *world.cluster.topics.values()]:
            if topic.name in world.inputs or topic.name == SEEDED:
                self._collect(topic)
        for fate in _fates(world):
            self.fates[self._message_of(fate).place].append(fate)

    def _collect(self, topic: Topic) -> None:
        is_input = topic.name in self.world.topic_ids and self.world.cluster.topics.get(topic.name) is topic
        is_json = self.world.reader is JSON_READER
        for number, log in enumerate(topic.logs):
            standing = {offset for offset, _ in log.visible()} if is_input else set()
            for offset, entry in log.ever():
                place = (topic.topic_id, number, offset)
                sort, text = read_value(entry.value, is_json=is_json)
                if self.world.has_schema(entry.value) is False:
                    sort = Sort.UNREADABLE
                one = Message(place, topic.name, entry, sort, text, offset in standing)
                self.messages[place] = one
                self._by_origin[topic.name, number, offset].append(one)

    def _message_of(self, fate: Fate) -> Message:
        """The message that came out here. Topics of one name are told apart by the bytes of their messages."""
        origin = origin_of(fate.entry)
        assert origin[0] != SEEDED, f"{fate.topic}: {origin} was seeded, and comes out again"
        there = self._by_origin[origin]
        same = [each for each in there if _whole(each.entry) == _whole(fate.entry)]
        if fate.topic == DEAD and not same:
            # Whatever a limit forbids is left out.
            same = [each for each in there if fate.entry.value in (each.entry.value, b"")]
            large = [each for each in same if self.world.history.may_refuse(each.entry)]
            # It has the broker's time, as its own is left out too: no message that came later.
            earlier = [each for each in large if each.entry.timestamp_ms <= fate.entry.timestamp_ms]
            same = earlier or large or same
        assert same, f"{fate.topic}[{fate.number}]@{fate.offset}: {origin} never was such a message"
        return min(reversed(same), key=lambda each: len(self.fates[each.place]))

    def place_in_later_topic(self, place: Place, name: str) -> Place | None:
        """The same partition and offset in the first topic of that name that was made after this one and holds it."""
        made = [
            topic.topic_id for topic in [*self.world.cluster.deleted, *self.world.cluster.topics.values()]
        ]
        ids = made[made.index(place[0]) + 1 :]
        there = {each.place[0]: each.place for each in self._by_origin[name, place[1], place[2]]}
        return next((there[topic_id] for topic_id in ids if topic_id in there), None)

    def came_out(self, message: Message) -> bool:
        """Whether it is in the output; what was seeded came from one."""
        return message.name == SEEDED or any(fate.topic == OUTPUT for fate in self.fates[message.place])

    def losses(self, message: Message) -> list[Loss]:
        """Everything that ever took it away."""
        history = self.world.history
        noted = history.losses.get(message.place, [])
        if not noted and not message.stands and message.name != SEEDED:
            noted = [Loss(Cause.RETENTION, None, passed=False)]
        if message.sort is Sort.TEXT and any(fate.topic == DEAD for fate in self.fates[message.place]):
            limited = [Loss(Cause.REFUSED, at_s, passed=False) for at_s in history.limited_s]
            return noted + (limited or [Loss(Cause.REFUSED, None, passed=False)])
        return noted

    def named_leaders(self, fate: Fate) -> list[Message]:
        """Those that a duplicate's header may mean."""
        named = dict(fate.entry.headers).get("twinsieve-leader")
        assert named is not None, f"{fate.topic}[{fate.number}]@{fate.offset} names no leader"
        where, _, offset = named.decode().partition("@")
        name, _, number = where.removesuffix("]").partition("[")
        return self._by_origin[name, int(number), int(offset)]


def read_value(value: bytes | None, *, is_json: bool) -> tuple[Sort, str]:
    """What a value is, and its text.

    >>> read_value(b'{"text": "a"}', is_json=True), read_value(b"{}", is_json=True)[0]
    ((<Sort.TEXT: 'text'>, 'a'), <Sort.NO_TEXT: 'no text'>)
    """
    if value is None:
        return Sort.NO_TEXT, ""
    try:
        said = value.decode()
        found = json.loads(said).get("text") if is_json else said
    except (UnicodeDecodeError, json.JSONDecodeError, AttributeError):
        return Sort.UNREADABLE, ""
    return (Sort.NO_TEXT, "") if found is None else (Sort.TEXT, found)


def _fates(world: World) -> Iterator[Fate]:
    for topic in [*world.cluster.deleted, *world.cluster.topics.values()]:
        if topic.name in (OUTPUT, DUPLICATES, DEAD):
            for number, log in enumerate(topic.logs):
                for offset, entry in log.ever():
                    yield Fate(topic.name, topic.topic_id, number, offset, entry)


def _whole(entry: Entry) -> tuple[bytes | None, bytes | None, list[Header]]:
    """Key, value and headers, without those that the app writes."""
    own = [header for header in entry.headers if not header[0].startswith("twinsieve-")]
    return entry.key, entry.value, own


def check_standing(raw: Raw) -> None:
    """Rule 1. What stands, and nobody skips, is somewhere; so is what the offset had passed when it was lost."""
    skipped = raw.world.left_out
    for place, message in raw.messages.items():
        if place in skipped:
            continue
        passed = any(loss.passed for loss in raw.losses(message))
        assert raw.fates[place] or not (message.stands or passed), f"{message.at}: lost, it is in no output"


def check_once(raw: Raw) -> Counter[str]:
    """Rule 3. Again only where retention took the record of the verdict."""
    again: Counter[str] = Counter()
    for place, fates in raw.fates.items():
        if len(fates) > 1:
            went = [f"{fate.topic}[{fate.number}]@{fate.offset}" for fate in fates]
            assert raw.world.taken, f"{raw.messages[place].at} came out {len(fates)} times: {went}"
            again["came out again, retention took the record"] += len(fates) - 1
    return again


def check_dropped(raw: Raw, same: Same = str) -> Counter[str]:
    """Rule 4."""
    excused: Counter[str] = Counter()
    out = {same(each.text) for each in raw.messages.values() if each.sort is Sort.TEXT and raw.came_out(each)}
    for place, fates in raw.fates.items():
        message = raw.messages[place]
        for fate in fates:
            if fate.topic != DUPLICATES:
                continue
            assert message.sort is Sort.TEXT, f"{message.at} has no text, and is called a duplicate"
            meant = [
                each
                for each in raw.named_leaders(fate)
                if each.sort is Sort.TEXT and same(each.text) == same(message.text) and each.place != place
            ]
            assert meant, f"{message.at}: its leader is no message with such a text"
            if same(message.text) not in out:
                excused[f"dropped before its leader was lost: {_excuse(raw, message, meant)}"] += 1
    return excused


def _excuse(raw: Raw, message: Message, leaders: list[Message]) -> Cause:
    """Why nothing with this text came out. raises: AssertionError where nothing excuses that"""
    for leader in _in_turn(raw, leaders):
        for loss in raw.losses(leader):
            calm_s = None if loss.at_s is None else raw.world.history.first_calm_after(loss.at_s)
            if calm_s is None or message.entry.timestamp_ms <= raw.world.wall_ms(calm_s):
                return loss.cause
    raise AssertionError(
        f"{message.at} was dropped for {leaders[0].at}, and nothing with its text ever came out "
        f"(what took the leader: {[str(loss.cause) for loss in raw.losses(leaders[0])]})"
    )


def _in_turn(raw: Raw, leaders: list[Message]) -> list[Message]:
    """These leaders; and the leaders of those that came out as duplicates themselves, as only a message does that was
    judged again because retention took the record of its verdict."""
    found = list(leaders)
    if raw.world.taken:
        for leader in found:  # grows
            dropped = (fate for fate in raw.fates[leader.place] if fate.topic == DUPLICATES)
            found += [each for fate in dropped for each in raw.named_leaders(fate) if each not in found]
    return found


def check_dead(raw: Raw) -> None:
    """Rule 5."""
    for place, fates in raw.fates.items():
        message, topics = raw.messages[place], {fate.topic for fate in fates}
        if DEAD in topics:
            why = {dict(fate.entry.headers).get("twinsieve-reason") for fate in fates if fate.topic == DEAD}
            refused = message.sort is Sort.UNREADABLE or raw.world.history.may_refuse(message.entry)
            refused |= raw.world.has_schema(message.entry.value) is None
            assert refused, f"{message.at} is sound, no output refused it, and became a dead letter ({why})"
        may_refuse = raw.world.history.may_refuse(message.entry)
        if message.sort is Sort.NO_TEXT and not may_refuse and raw.world.has_schema(message.entry.value):
            assert topics <= {OUTPUT}, f"{message.at} has no text, and went to {topics}"
        assert message.sort is not Sort.UNREADABLE or topics <= {DEAD}, f"{message.at}: {topics}"


def check_texts(raw: Raw) -> Counter[str]:
    """Rule 6, where the windows forget nothing."""
    by_text: dict[str, list[Message]] = defaultdict(list)
    for message in raw.messages.values():
        if message.sort is Sort.TEXT and message.name != SEEDED:
            by_text[message.text].append(message)
    excused: Counter[str] = Counter()
    for text, messages in by_text.items():
        extra = max(0, sum(raw.came_out(each) for each in messages) - 1)
        lost = sum(bool(raw.losses(each)) for each in messages)
        assert extra <= lost or raw.world.taken, f"{text!r} came out {extra + 1} times, and {lost} were lost"
        excused["came out again, another one with the text was lost"] += extra
    return +excused


def check_order(raw: Raw) -> None:
    """Rule 7; not where offsets were moved back."""
    by_source: dict[tuple[bytes, int, bytes, int], list[tuple[int, int]]] = defaultdict(list)
    for (topic_id, number, offset), fates in raw.fates.items():
        for fate in fates:
            by_source[fate.topic_id, fate.number, topic_id, number].append((fate.offset, offset))
    for (_, to, _, number), pairs in by_source.items():
        came = [offset for _, offset in sorted(pairs)]
        assert came == sorted(came), f"from partition {number} to {to}: the order of the input is lost"


def missing_texts(raw: Raw, texts: Collection[str], same: Same = str) -> set[str]:
    """Rule 8: those of these texts that are not in the output."""
    out = {same(each.text) for each in raw.messages.values() if raw.came_out(each)}
    return {text for text in texts if same(text) not in out}


def check_world(
    world: World, *, same: Same = str, in_order: bool = True, forgets: bool = False
) -> Counter[str]:
    """Rules 1 to 7 at a moment of calm; returns what was excused, by cause.

    forgets: texts may come out again, for windows are small
    raises: AssertionError for the first promise that is broken
    """
    raw = Raw(world)
    check_standing(raw)
    excused = check_once(raw) + check_dropped(raw, same)
    check_dead(raw)
    if not forgets:
        excused += check_texts(raw)
    if in_order:
        check_order(raw)
    return excused
