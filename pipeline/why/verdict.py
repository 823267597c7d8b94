"""What became of one input message on Kafka, and why, from the broker alone (`twinsieve why`).

The verdict comes from the decisions topic. Headers of the input are never trusted. Where retention took the
record, the headers of what came out say it: only the app writes those (docs/WIRE.md).
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.basics.shown_time import shown_time
from twinsieve.pipeline.broker.admin import Admin, TopicInfo
from twinsieve.pipeline.broker.committed_offsets import read_recorded
from twinsieve.pipeline.broker.excerpts import Excerpts, Reach, Row, TooFarError
from twinsieve.pipeline.broker.input_position import InputPosition, read_position
from twinsieve.pipeline.broker.mark import read_mark
from twinsieve.pipeline.broker.names import Names
from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import NO_TIMESTAMP, BrokerError, Partition
from twinsieve.pipeline.broker.redriven import RedrivenTopic, held_by, input_id, read_redriven
from twinsieve.pipeline.messages.fields import id_text
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.messages.verdict_values import differing_words, likeness_of
from twinsieve.pipeline.operate.status import judge_of
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.why.copies import copy_of, next_copy
from twinsieve.pipeline.why.drops import Drop, Place
from twinsieve.pipeline.why.explain import Message
from twinsieve.pipeline.why.log_search import Asked, Judged, LogSearch, Unfound, Wanted
from twinsieve.pipeline.wire.block import RowKind
from twinsieve.pipeline.wire.headers import REASON, origin_of, read_duplicate, reason_of, text_of
from twinsieve.pipeline.wire.positions import unpack_position
from twinsieve.stages.contract import NO_LEADER, Flag, Kind
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.errors import UsageError
from twinsieve.stages.fingerprint.digest import text_key

MOST_RECORDS = 20_000
_MOST_COPIES = 5_000
"""Records that are read at most to find what a message came out as; a search by halves needs few."""
_NOTED = (Flag.UNCONFIRMED, Flag.ESTIMATED, Flag.CUT_SHORT)

_NO_VALUE = "it has no value (a tombstone)"
_FATES = {
    "drop": "it does not come out (input.null_value: drop)",
    "dead_letter": "it came out as a dead letter (input.null_value: dead_letter)",
}


class Outcome(StrEnum):
    """What became of a message."""

    DROPPED = "dropped"
    KEPT = "kept"
    UNREADABLE = "unreadable"
    """it became a dead letter, or was only counted"""
    WAITS = "waits"
    """it is not judged yet"""
    UNKNOWN = "unknown"
    """no record says it any more, or there is no such message"""


@dataclass(slots=True)
class Original:
    """A message as it was written, perhaps read from a topic in which it came out.

    topic: where it was read; reason: why it cannot be read, or that it has no text; None if it has one
    """

    position: InputPosition
    topic: str
    message: Message | None
    id: str | None
    reason: str | None
    time_ms: int | None


@dataclass(slots=True)
class Account:
    """What became of a message.

    lines: what there is to say beside the verdict, a sentence each
    drop: for a dropped message: its leader, and how alike the two are
    apart_from: for a kept message that is similar to a kept one: that one, and why the two were kept apart
    original, other: the message, and its leader or the one it was kept apart from; None if they are gone
    judged_ms: when the index decided, ms since 1970; None if no decision was found
    reached: what was read to find out, by partition
    """

    position: InputPosition
    outcome: Outcome = Outcome.UNKNOWN
    lines: list[str] = field(default_factory=list)
    drop: Drop | None = None
    apart_from: tuple[InputPosition, str] | None = None
    original: Original | None = None
    other: Original | None = None
    judged_ms: int | None = None
    came_out: bool = False
    reached: dict[str, Reach] = field(default_factory=dict)

    def continued(self, letter: Account) -> Account:
        """This account of a message that became a dead letter, with what became of the dead letter."""
        lines = [*self.lines, f"its dead letter is {letter.position}", *letter.lines]
        original = letter.original or self.original
        if letter.outcome not in (Outcome.KEPT, Outcome.DROPPED):
            return replace(self, lines=lines, original=original)
        drop = letter.drop
        if drop is not None:
            drop = replace(drop, message=_place(self.position, original))
        return replace(letter, position=self.position, lines=lines, original=original, drop=drop)

    def as_dict(self) -> dict[str, Any]:
        """The account as plain values."""
        drop, apart = self.drop, self.apart_from
        return {
            "position": str(self.position),
            "outcome": self.outcome.value,
            "id": self.original.id if self.original is not None else None,
            "text": _text(self.original),
            "stage": drop.stage if drop is not None else None,
            drop.measure if drop is not None else "similarity": drop.likeness if drop is not None else None,
            "leader": _where(drop.leader) if drop is not None else None,
            "leader_text": _text(self.other) if apart is None else None,
            "flags": list(drop.flags) if drop is not None else [],
            "kept_apart_from": str(apart[0]) if apart is not None else None,
            "kept_apart_by": apart[1] if apart is not None else None,
            "kept_apart_text": _text(self.other) if apart is not None else None,
            "judged_ms": self.judged_ms,
            "came_out": self.came_out,
            "notes": self.lines,
            "read": {
                name: {"records": reach.records, "from": reach.low, "to": reach.high}
                for name, reach in self.reached.items()
            },
        }


def verdict_of(
    settings: Settings,
    broker: Broker,
    clock: Clock,
    position: InputPosition,
    most: int = MOST_RECORDS,
    *,
    dropped: Drop | None = None,
) -> Account:
    """What became of the message at this position. Nothing is changed, and no group is joined.

    If the message became a dead letter, what `redrive` made of this one counts.

    most: records that are read at most
    dropped: what the duplicates topic says of the message; it counts if no record says that it was dropped
    raises: UsageError if there is no such topic or partition; BrokerError if no broker answers, or if the app
        has no decisions; StateError for a damaged record
    """
    with (
        closing(broker.admin()) as admin,
        closing(Excerpts(broker, clock, most)) as excerpts,
        closing(Excerpts(broker, clock, _MOST_COPIES)) as copies,
    ):
        inquiry = _Inquiry(settings, admin, excerpts, copies, position)
        found = inquiry.account()
        seen = [position]
        while found.outcome is Outcome.UNREADABLE and inquiry.letter is not None:
            seen.append(inquiry.letter)
            inquiry = _Inquiry(settings, admin, excerpts, copies, inquiry.letter, seen)
            found = found.continued(inquiry.account())
        if dropped is not None and found.outcome is not Outcome.DROPPED:
            found = inquiry.taken(found, dropped)
        for each in (excerpts, copies):
            for at, reach in each.reached.items():
                found.reached.setdefault(str(at), Reach()).join(reach)
        return found


class _Inquiry:
    """Finds out what became of one message, of the input or among the dead letters.

    excerpts: reads the log, the decisions and the message; copies: reads the outputs
    seen: its dead letters that were looked at
    """

    def __init__(
        self,
        settings: Settings,
        admin: Admin,
        excerpts: Excerpts,
        copies: Excerpts,
        position: InputPosition,
        seen: Collection[InputPosition] = (),
    ) -> None:
        self._settings = settings
        self._admin = admin
        self._position = position
        self._first = position
        """Where the message was first: the origin that its copies name."""
        self._names = Names(settings.app)
        self._excerpts = excerpts
        self._copies = copies
        self._seen = seen
        self._reader = MessageReader(settings, passes_null=settings.passes_null_text(on_files=False))
        self._infos: dict[str, TopicInfo | None] = {}
        self._found = Account(position)
        self._letters: RedrivenTopic | None = None
        """The dead letters of its reason, if the message is a dead letter."""
        self.letter: InputPosition | None = None
        """The dead letter that the message became, or became again, if it was found."""

    def account(self) -> Account:
        found, position = self._found, self._position
        info = self._described()
        begin, end = self._excerpts.bounds(position.partition)
        hint_ms = None
        if position.offset >= end:
            self._beyond(end)
            return found
        try:
            if position.offset >= begin:
                row = self._excerpts.first(position.partition, position.offset, end)
                if row is not None:
                    # The next message was written after it, and mostly judged soon after it.
                    hint_ms = row.time_ms if row.time_ms != NO_TIMESTAMP else None
                if row is not None and row.offset == position.offset:
                    found.original = self._original(position, position.partition.topic, row)
                    self._letters = self._letters_of(position.partition.topic, row)
                    if self._letters is not None:
                        self._first, hint_ms = origin_of(row.headers) or position, None
            elif position.partition.topic == self._settings.output.dead_letter:
                found.lines.append("retention deleted this dead letter")
                self._letters = self._letters_judged(info)
            self._look(info, hint_ms, is_held=position.offset >= begin)
        except TooFarError:
            found.lines.append(
                f"its verdict was not among the first {self._excerpts.records:,} records that were read; "
                "--read-at-most N reads more"
            )
        return found

    def taken(self, found: Account, dropped: Drop) -> Account:
        """The account with what the headers of a duplicate say."""
        leader = dropped.leader
        at = read_position(f"{leader.source}@{leader.line}") if leader is not None else None
        other = self._other(at, is_same_topic=True) if at is not None else None
        if leader is not None and at is not None:
            dropped = replace(dropped, leader=_place(at, other))
        lines = [*found.lines, f"the verdict is from its headers in {self._settings.output.duplicates}"]
        return replace(
            found, outcome=Outcome.DROPPED, lines=lines, drop=dropped, other=other, came_out=True,
            apart_from=None, judged_ms=None,
        )  # fmt: skip

    def _described(self) -> TopicInfo:
        """The topic of the position. raises: UsageError, BrokerError"""
        topic, number = self._position.partition
        names, output = self._names, self._settings.output
        wanted = [topic, names.fingerprints, names.decisions]
        wanted += [name for name in (output.topic, output.duplicates, output.dead_letter) if name is not None]
        self._infos = self._admin.topics([*dict.fromkeys(wanted)])
        missing = [name for name in (names.fingerprints, names.decisions) if self._infos[name] is None]
        if missing:
            raise BrokerError(
                f"topic {missing[0]} does not exist, so there are no decisions of app {self._settings.app}: "
                "correct `app`, or start `twinsieve run`",
                retryable=False,
            )
        info, inputs = self._infos[topic], ", ".join(self._settings.input.topics)
        if info is None:
            raise UsageError(f"{self._position}: topic {topic} does not exist; the inputs are {inputs}")
        if number >= info.partitions:
            raise UsageError(f"{self._position}: {topic} has the partitions 0 to {info.partitions - 1}")
        if topic not in (*self._settings.input.topics, output.dead_letter):
            self._found.lines.append(f"{topic} is not among input.topics, which are {inputs}")
        return info

    def _letters_of(self, topic: str, row: Row) -> RedrivenTopic | None:
        """The dead letters among which `redrive` reads this message; None if it is an input message."""
        reason = reason_of(row.headers) if topic == self._settings.output.dead_letter else None
        return RedrivenTopic(topic, reason) if reason is not None else None

    def _letters_judged(self, info: TopicInfo) -> RedrivenTopic | None:
        """The dead letters among which a message was that is gone, by the blocks that asked for it; None if
        none did. raises: TooFarError"""
        search = self._searching()
        for reason in DeadLetterReason:
            letters = RedrivenTopic(info.name, reason)
            if isinstance(search.find(Wanted(input_id(info, letters), *self._position), None), Judged):
                return letters
        return None

    def _searching(self) -> LogSearch:
        log, decisions = (Partition(name, 0) for name in (self._names.fingerprints, self._names.decisions))
        index = self._admin.group_offsets(self._names.index, stable=False).get(log)
        judged_to = index.offset if index is not None else None
        return LogSearch(self._excerpts, self._admin, log, decisions, judged_to)

    def _beyond(self, end: int) -> None:
        position = self._position
        last = self._admin.end_offsets([position.partition])[position.partition]
        if position.offset < last:
            self._found.outcome = Outcome.WAITS
            self._found.lines.append(
                f"a transaction of its producer is open since offset {end}; nothing behind that is read yet"
            )
        else:
            self._found.lines.append(f"{position.partition} ends at {last}: there is no such message yet")

    def _look(self, info: TopicInfo, hint_ms: int | None, *, is_held: bool) -> None:
        """Find the verdict, and what belongs to it."""
        found, position, letters = self._found, self._position, self._letters
        group = self._names.workers if letters is None else self._names.redrive(letters.reason)
        committed = read_recorded(self._admin, group, stable=False).get(position.partition)
        mark = read_mark(committed.metadata) if committed is not None else None
        topic_id = input_id(info, letters)
        is_old = mark is not None and mark.topic_id != topic_id
        if is_old:
            committed = mark = None
        if is_old and letters is None:
            found.lines.append(
                f"{position.partition.topic} was deleted and created again since the app read it: it judges "
                "nothing of the new one before `twinsieve reset`"
            )
        found.came_out = mark is not None and mark.first <= position.offset < mark.end
        self._search = self._searching()
        log = self._search.log
        wanted = Wanted(topic_id, *position)
        ruled = self._search.find(wanted, hint_ms, came_out=found.came_out)
        if isinstance(ruled, Judged):
            found.came_out |= ruled.emitted
            self._tell(ruled)
        elif isinstance(ruled, Asked):
            self._tell_waiting(
                f"block {ruled.log_offset} of {log.topic} asks for it since "
                f"{shown_time(ruled.asked_ms)}; blocks that wait: {ruled.waiting:,}"
            )
        elif ruled is Unfound.NO_MESSAGE or (
            ruled is Unfound.NEVER_ASKED and is_held and found.original is None
        ):
            found.lines.append(
                "there is no message at this offset: it is a marker of a transaction, of an aborted one, or "
                "compaction took it"
            )
        elif ruled is Unfound.NEVER_ASKED and letters is not None and not found.came_out:
            self._tell_not_redriven(letters.reason)
        elif (
            ruled is Unfound.NEVER_ASKED
            and not is_old
            and (committed is None or position.offset >= committed.offset)
        ):
            up_to = "nothing" if committed is None else f"everything below {committed.offset:,}"
            self._tell_waiting(f"{up_to} of {position.partition} has come out so far")
        elif not is_old:
            self._tell_from_copies(ruled, log)

    def _tell_waiting(self, why: str) -> None:
        judge = judge_of(self._settings.app, self._admin)
        self._found.outcome = Outcome.WAITS
        command = "run" if self._letters is None else "redrive"
        who = f"{judge} judges" if judge is not None else f"nobody judges: start `twinsieve {command}`"
        self._found.lines.append(f"{why}; {who}")

    def _tell_not_redriven(self, reason: DeadLetterReason) -> None:
        # The offsets of the group and the blocks may be gone, so what came out counts first.
        if self._tell_copy():
            return
        self._found.outcome = Outcome.UNREADABLE
        self._found.lines.append(
            f"it is a dead letter for {reason}, and no record says that it was redriven: "
            f"`twinsieve redrive --reason {reason}` judges it again"
        )

    def _tell(self, judged: Judged) -> None:
        """Take over what the index ruled."""
        found, verdicts = self._found, judged.verdicts
        found.judged_ms = judged.decided_ms
        kind = Kind(verdicts.kinds[0])
        found.lines.append(
            f"judged {shown_time(judged.decided_ms)}: block {judged.log_offset} of "
            f"{self._names.fingerprints}, record {judged.decision_offset} of {self._names.decisions}"
        )
        if not found.came_out:
            found.lines.append(
                "no record says that it came out: its worker has not written it yet, or never will"
            )
        if found.original is None and kind is not Kind.UNREADABLE:
            found.original = self._copy(self._first, dropped=kind is not Kind.UNIQUE)
            if found.original is not None:
                found.lines.append(f"the input has it no longer; its text is from {found.original.topic}")
        if kind is Kind.UNREADABLE:
            self._tell_unreadable(judged)
        elif kind is Kind.UNIQUE:
            self._tell_kept(judged)
        else:
            self._tell_dropped(judged)

    def _tell_unreadable(self, judged: Judged) -> None:
        found, is_refused = self._found, judged.kind is RowKind.REFUSED
        found.outcome = Outcome.UNREADABLE
        reason = found.original.reason if found.original is not None and not is_refused else None
        letter = self._next_letter()
        if letter is not None:
            self.letter, row = letter
            # The original is read under the settings of now, which may find another reason, or none.
            written = text_of(row.headers, REASON) or ""
            reason = reason if reason is not None and reason.startswith(written) else written
            found.original = found.original or self._original(
                self._position, self.letter.partition.topic, row
            )
        refused = "the output did not take it" if is_refused else "it could not be read"
        found.lines.append(f"{refused}: {reason or 'the reason is not on record any more'}")
        dead_letter = self._settings.output.dead_letter
        if letter is None and not self._tell_copy() and self._letters is None and dead_letter is not None:
            letter = self._letter_behind(InputPosition(Partition(dead_letter, 0), -1))
            self.letter = letter[0] if letter is not None else None

    def _next_letter(self) -> tuple[InputPosition, Row] | None:
        """The dead letter that the message became; of a dead letter, the one that it became again."""
        if self._letters is None:
            return self._copy_in(self._settings.output.dead_letter, self._position)
        return self._letter_behind(self._position)

    def _letter_behind(self, after: InputPosition) -> tuple[InputPosition, Row] | None:
        """A dead letter of the message behind this position, or in another partition, that was not seen yet.

        All are read, because those of a redrive stand behind those of later messages.
        """
        info = self._infos.get(after.partition.topic)
        try:
            for number in range(info.partitions) if info is not None else ():
                partition = Partition(after.partition.topic, number)
                at = after if partition == after.partition else InputPosition(partition, -1)
                while (found := next_copy(self._copies, at, self._first)) is not None:
                    if found[0] not in self._seen:
                        return found
                    at = found[0]
        except TooFarError:
            self._tell_too_far(self._first)
        return None

    def _tell_kept(self, judged: Judged) -> None:
        found, verdicts = self._found, judged.verdicts
        found.outcome = Outcome.KEPT
        flags = Flag(int(verdicts.flags[0]))
        if judged.kind is RowKind.NO_TEXT:
            found.lines.append(
                "it has no text, so it was compared with nothing (input.null_text, input.null_value)"
            )
            fate = _FATES.get(self._settings.input.null_value)
            if found.original is not None and found.original.reason == _NO_VALUE and fate is not None:
                found.lines.append(f"it has no value, so {fate}")
        elif flags & Flag.NO_FEATURES:
            found.lines.append("its text has too few features, so it was compared with nothing")
        if flags & Flag.LATE:
            found.lines.append("it came too late to lead others (late: judge)")
        if flags & Flag.CUT_SHORT:
            found.lines.append("not all messages that share its hashes were compared")
        reason = Rule(int(verdicts.reasons[0]))
        if not reason:
            return
        words = differing_words(verdicts, 0)
        why = reason.words + (f" {'/'.join(words)}" if words is not None else "")
        apart, is_same_topic = self._named(judged, int(verdicts.apart_from[0]))
        if apart is None:
            found.lines.append(f"it is similar to a kept one, and was kept apart: {why}")
            return
        found.apart_from = apart, why
        found.other = self._other(apart, is_same_topic=is_same_topic)

    def _tell_dropped(self, judged: Judged) -> None:
        found, verdicts = self._found, judged.verdicts
        found.outcome = Outcome.DROPPED
        leader, is_same_topic = self._named(judged, int(verdicts.leaders[0]))
        stage = "exact" if verdicts.kinds[0] == Kind.EXACT else "near"
        flags = [flag for flag in _NOTED if int(verdicts.flags[0]) & flag]
        names = tuple((flag.name or "").lower() for flag in flags)
        if leader is not None:
            found.other = self._other(leader, is_same_topic=is_same_topic)
        self._drop(leader, stage, *likeness_of(verdicts, 0), names)

    def _drop(
        self, leader: InputPosition | None, stage: str, measure: str, likeness: float, flags: tuple[str, ...]
    ) -> None:
        found = self._found
        place = _place(self._position, found.original)
        led_by = _place(leader, found.other) if leader is not None else None
        found.drop = Drop(place, led_by, stage, measure, likeness, flags)

    def _named(self, judged: Judged, packed: int) -> tuple[InputPosition | None, bool]:
        """A position of a ruling by its names, and whether its topic is the one that has this name now."""
        if packed == NO_LEADER:
            return None, False
        number, partition, offset = unpack_position(packed)
        own, name = self._position.partition.topic, judged.topics.get(number, f"topic-{number}")
        own = own if self._letters is None else self._letters.name
        named = InputPosition(Partition(held_by(name), partition), offset)
        is_same = number == judged.own_number or (name != own and self._is_of_now(named, read_redriven(name)))
        return named, is_same

    def _is_of_now(self, position: InputPosition, letters: RedrivenTopic | None) -> bool:
        """Whether a message of another topic, which led, was judged under the id that this topic has now."""
        info = self._info(position.partition.topic)
        if info is None or position.partition.number >= info.partitions:
            return False
        row = self._copies.at(position.partition, position.offset)
        hint_ms = row.time_ms if row is not None and row.time_ms != NO_TIMESTAMP else None
        try:
            return isinstance(self._search.find(Wanted(input_id(info, letters), *position), hint_ms), Judged)
        except TooFarError:
            return False

    def _info(self, topic: str) -> TopicInfo | None:
        if topic not in self._infos:
            self._infos |= self._admin.topics([topic])
        return self._infos[topic]

    def _other(self, position: InputPosition, *, is_same_topic: bool) -> Original | None:
        """The leader, or the message that this one was kept apart from."""
        found, name = self._found, position.partition.topic
        if not is_same_topic:
            found.lines.append(
                f"its text is gone: {position} was in an earlier topic {name}, which was deleted, or the log "
                "has the record of it no longer"
            )
            return None
        begin, _ = self._copies.bounds(position.partition)
        row = self._copies.at(position.partition, position.offset)
        if row is not None:
            return self._original(position, name, row)
        what = "retention" if position.offset < begin else "compaction"
        other = self._copy(position, dropped=False)
        where = f"; its text is from {other.topic}" if other is not None else ", and its text with it"
        found.lines.append(f"{what} took {position} from the input{where}")
        return other

    def _tell_from_copies(self, ruled: Unfound, log: Partition) -> None:
        """Say what the headers of the outputs still say, as the log or the decisions do not any more."""
        found, position, output = self._found, self._position, self._settings.output
        begin, _ = self._excerpts.bounds(log)
        begins = f"{log.topic}, which begins at block {begin:,},"
        why = f"no block of {begins} asks for it: the app began behind it, or retention took the block"
        if ruled is Unfound.DECISION_GONE:
            why = f"retention took the decision on it from {self._names.decisions}"
        elif ruled is Unfound.BLOCK_GONE:
            why = f"it came out, and {begins} has its block no longer"
        found.lines.append(why)
        if self._tell_copy():
            return
        letter = self._copy_in(output.dead_letter, self._first) if self._letters is None else None
        if letter is not None:
            self.letter, row = letter
            topic = self.letter.partition.topic
            found.outcome, found.came_out = Outcome.UNREADABLE, True
            found.original = found.original or self._original(position, topic, row)
            found.lines.append(f"it is in {topic}: {text_of(row.headers, REASON) or 'no reason'}")

    def _tell_copy(self) -> bool:
        """Say what the headers of the outputs say; returns whether the message was found in one."""
        found, position, output = self._found, self._position, self._settings.output
        copy = self._copy_in(output.duplicates, self._first)
        said = read_duplicate(copy[1].headers) if copy is not None else None
        if copy is not None and said is not None:
            topic = copy[0].partition.topic
            found.outcome, found.came_out = Outcome.DROPPED, True
            found.original = found.original or self._original(position, topic, copy[1])
            if said.leader is not None:
                found.other = self._other(said.leader, is_same_topic=True)
            self._drop(said.leader, said.stage, said.measure, said.likeness, said.flags)
            found.lines.append(f"the verdict is from its headers in {topic}")
            return True
        copy = self._copy_in(output.topic, self._first)
        if copy is not None:
            topic = copy[0].partition.topic
            found.outcome, found.came_out = Outcome.KEPT, True
            found.original = found.original or self._original(position, topic, copy[1])
            found.lines.append(f"it is in {topic}, so it was kept")
        return copy is not None

    def _copy(self, position: InputPosition, *, dropped: bool) -> Original | None:
        """A message that the input has no longer, as it came out."""
        output = self._settings.output
        copy = self._copy_in(output.duplicates if dropped else output.topic, position)
        return self._original(position, copy[0].partition.topic, copy[1]) if copy is not None else None

    def _copy_in(self, topic: str | None, position: InputPosition) -> tuple[InputPosition, Row] | None:
        info = self._infos.get(topic) if topic is not None else None
        if info is None:
            return None
        try:
            return copy_of(self._copies, info, position)
        except TooFarError:
            self._tell_too_far(position)
            return None

    def _tell_too_far(self, position: InputPosition) -> None:
        line = f"{_MOST_COPIES:,} records of the outputs were read, and {position} was not found"
        if line not in self._found.lines:
            self._found.lines.append(line)

    def _original(self, position: InputPosition, topic: str, row: Row) -> Original:
        payload = row.value if self._settings.input.part == "value" else row.key
        time_ms = row.time_ms if row.time_ms != NO_TIMESTAMP else None
        if row.value is None:
            return Original(position, topic, None, None, _NO_VALUE, time_ms)
        columns = self._reader.read([payload], headers=[row.headers])
        if not len(columns):
            bad = [*columns.unreadable, *columns.no_text][0]
            return Original(position, topic, None, None, f"{bad.reason}: {bad.detail}", time_ms)
        key = columns.keys[0] if columns.keys is not None else None
        message = Message(
            columns.texts[0], text_key(key) if isinstance(key, str) else key, int(columns.scopes[0])
        )
        return Original(position, topic, message, id_text(columns.ids[0]), None, time_ms)


def _where(leader: Place | None) -> str | None:
    return f"{leader.source}@{leader.line}" if leader is not None else None


def _text(original: Original | None) -> str | None:
    return original.message.text if original is not None and original.message is not None else None


def _place(position: InputPosition, original: Original | None) -> Place:
    message_id = original.id if original is not None else None
    return Place(None, message_id, str(position.partition), position.offset, _text(original))
