"""Read cases from a YAML file. Every problem of the file is found, each with its line and column.

```yaml
settings: {profile: plain}          # for all cases of the file; may be left out
cases:
  - name: another number is another message
    why: two ferries leave                  # may be left out
    settings: {near: {similarity: 0.8}}     # on top of those above; may be left out
    in:
      - The ferry to the island leaves at nine today.
      - {text: "The ferry to the island leaves at ten today.", id: b}
      - advance: 2h                         # two hours pass
      - raw: '{"text": 7}'                  # a message byte for byte
    out:                                    # of each message in `in`, in order
      - unique
      - "unique of 1: number"
      - "unreadable: not_text"
```
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.basics.dead_letter_reasons import DeadLetterReason
from twinsieve.pipeline.settings.tree import KeyPath, Location, Raw, Tree
from twinsieve.pipeline.settings.values import read_duration_ms
from twinsieve.pipeline.settings.yaml_tree import read_yaml
from twinsieve.stages.differ.rules import Rule

VERDICTS = ("unique", "exact", "near", "no_text", "unreadable")
_SAID = re.compile(rf"({'|'.join(VERDICTS)})(?: of ([1-9][0-9]{{0,5}}))?(?:: (.+))?")
_REASONS = {
    "unique": tuple(rule.words for rule in Rule if rule),
    "unreadable": tuple(str(reason) for reason in DeadLetterReason),
}
_MOST_DAYS = 365_250
"""So much time, a thousand years, may pass in a case at most."""
_KEYS = ("name", "why", "settings", "in", "out")
_TOP_KEYS = ("settings", "cases")


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict, as a case expects it or as the sieve gave it.

    verdict: one of VERDICTS
    of: number of the message that a dropped message repeats, or from which a kept one was kept apart; from 1;
        None: none, or not expected
    reason: name of the rule that keeps apart, or why a message is unreadable; None: none, or not expected
    words: the words of the earlier and the later message that differ, for people
    """

    verdict: str
    of: int | None = None
    reason: str | None = None
    words: tuple[str, str] | None = None

    def holds_for(self, found: Said) -> bool:
        """Whether `found` is what this verdict expects; what it leaves out may be anything."""
        return (
            self.verdict == found.verdict
            and self.of in (None, found.of)
            and self.reason in (None, found.reason)
        )

    def __str__(self) -> str:
        of = f" of {self.of}" if self.of else ""
        reason = f": {self.reason}" if self.reason else ""
        words = f" [{self.words[0]}|{self.words[1]}]" if self.words else ""
        return f"{self.verdict}{of}{reason}{words}"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a case.

    content: a text, the fields of a message, or the bytes of a message
    after_ms: ms that have passed since the beginning of the case
    """

    content: str | dict[str, Raw] | bytes
    after_ms: int

    @property
    def in_words(self) -> str:
        """The message for people: its text, or its JSON."""
        if isinstance(self.content, bytes):
            return self.content.decode("utf-8", "backslashreplace")
        return self.content if isinstance(self.content, str) else json.dumps(self.content, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a file.

    place: where it begins; path: of the case in the tree of its file
    messages, expected, expected_at: the messages, and for each one the verdict and where that is written
    advances: whether time passes between its messages
    """

    name: str
    why: str
    place: Location
    path: KeyPath
    messages: list[Message]
    expected: list[Said]
    expected_at: list[Location]
    advances: bool


def read_cases(path: Path) -> tuple[Tree, list[Case]]:
    """The file as a tree, with all problems in `findings`, and its cases that have no problem."""
    tree = read_yaml(path)
    if tree.findings:
        return tree, []
    top = Location(str(path), 1, 1)
    _refuse_others(tree, tree.values, (), _TOP_KEYS)
    cases = tree.values.get("cases")
    if not isinstance(cases, list) or not cases:
        tree.find(tree.places.get(("cases",), top), "cases: is empty; write a list with a case in each item")
        return tree, []
    read = [_case(tree, written, ("cases", number)) for number, written in enumerate(cases)]
    return tree, [case for case in read if case is not None]


def _case(tree: Tree, written: Raw, path: KeyPath) -> Case | None:
    place, before = tree.places[path], len(tree.findings)
    if not isinstance(written, dict):
        tree.find(place, "is not a case; write one with name, in and out")
        return None
    _refuse_others(tree, written, path, _KEYS)
    name, why = (_text(tree, written, path, key) for key in ("name", "why"))
    if written.get("settings") is not None and not isinstance(written["settings"], dict):
        tree.find(tree.places[(*path, "settings")], "'settings' holds keys, as in a settings file")
    sent, out = (_list(tree, written, path, key) for key in ("in", "out"))
    messages, advances = _messages(tree, sent, (*path, "in"))
    expected = list(_expected(tree, out, (*path, "out")))
    if len(tree.findings) == before and len(messages) != len(out):
        said = f"{len(out)} verdicts for {len(messages)} messages; write one for each"
        tree.find(tree.places[(*path, "out")], said)
    if len(tree.findings) > before:
        return None
    at = [tree.places[(*path, "out", number)] for number in range(len(out))]
    return Case(name, why, place, path, messages, expected, at, advances)


def _text(tree: Tree, written: dict[str, Raw], path: KeyPath, key: str) -> str:
    value = written.get(key)
    if isinstance(value, (dict, list)):
        tree.find(tree.places[(*path, key)], f"{key!r} is a text")
    elif not value and key == "name":
        tree.find(tree.places.get((*path, key), tree.places[path]), f"the case has no {key!r}")
    return str(value or "")


def _list(tree: Tree, written: dict[str, Raw], path: KeyPath, key: str) -> list[Raw]:
    value = written.get(key)
    place = tree.places.get((*path, key), tree.places[path])
    if not value:
        tree.find(place, f"the case has no {key!r}")
    elif not isinstance(value, list):
        tree.find(place, f"{key!r} is a list with an item for each message")
    return value if isinstance(value, list) else []


def _refuse_others(tree: Tree, written: dict[str, Raw], path: KeyPath, known: tuple[str, ...]) -> None:
    for key in written:
        if key not in known:
            tree.find(tree.key_places[(*path, key)], f"unknown key {key!r}; there are {', '.join(known)}")


def _messages(tree: Tree, written: list[Raw], path: KeyPath) -> tuple[list[Message], bool]:
    messages: list[Message] = []
    after_ms, advances = 0, False
    for number, item in enumerate(written):
        place = tree.places[(*path, number)]
        if isinstance(item, str):
            messages.append(Message(item, after_ms))
        elif not isinstance(item, dict):
            tree.find(place, "is not a message; write a text, {text: …, id: …}, {raw: …} or {advance: 2h}")
        elif set(item) == {"advance"}:
            try:
                after_ms += read_duration_ms(item["advance"])
                advances = True
            except ValueError as error:
                tree.find(place, f"advance {error}")
            if after_ms > _MOST_DAYS * 86_400_000:
                tree.find(place, f"more than {_MOST_DAYS:,} days would have passed by then; advance by less")
                after_ms = 0
        elif set(item) == {"raw"} and isinstance(item["raw"], str):
            messages.append(Message(item["raw"].encode("utf-8", "surrogatepass"), after_ms))
        elif item.keys() & {"advance", "raw"}:
            tree.find(place, "advance and raw stand alone; a message with such a field is written with raw")
        else:
            messages.append(Message(item, after_ms))
    return messages, advances


def _expected(tree: Tree, written: list[Raw], path: KeyPath) -> Iterator[Said]:
    for number, item in enumerate(written):
        place = tree.places[(*path, number)]
        match = _SAID.fullmatch(item) if isinstance(item, str) else None
        if match is None:
            tree.find(
                place,
                f"is not a verdict; write {', '.join(VERDICTS)}, as in 'near of 1' or 'unique of 1: number'",
            )
            continue
        verdict, of, reason = match.groups()
        reasons = _REASONS.get(verdict, ())
        if reason is not None and reason not in reasons:
            close = closest(reason, reasons)
            advice = f"did you mean {close!r}?" if close else f"there are {', '.join(reasons) or 'none'}"
            tree.find(place, f"no reason {reason!r} of {verdict}; {advice}")
        elif of is not None and int(of) > number:
            tree.find(place, f"message {number + 1} can only repeat one before it, not message {of}")
        else:
            yield Said(verdict, int(of) if of else None, reason)
