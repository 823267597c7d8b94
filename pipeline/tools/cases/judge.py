"""Judge the messages of a case as `run` and `dedup` judge messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from twinsieve.pipeline.messages.paths import path_of
from twinsieve.pipeline.messages.reader import MessageColumns, MessageReader, make_batch
from twinsieve.pipeline.messages.spelling import to_json
from twinsieve.pipeline.messages.verdict_values import differing_words
from twinsieve.pipeline.settings.load import Override, check_tree
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.schema import schema
from twinsieve.pipeline.settings.stage_config import judging_scheme_of, sieve_config
from twinsieve.pipeline.settings.tree import Finding, KeyPath, Raw, Tree, dotted
from twinsieve.pipeline.tools.cases.case import Case, Message, Said
from twinsieve.stages.contract import NO_LEADER, NO_TIME, Kind, Verdicts
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve

_BEGIN_MS = 1_000_000_000_000
"""Time of the first message of a case in which time passes, ms since 1970: any time will do."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A message whose verdict is not the expected one. number: of the message, from 1"""

    number: int
    expected: Said
    found: Said


def settings_of(
    case: Case,
    file: Tree,
    base: Callable[[], Tree],
    environ: Mapping[str, str],
    flags: Iterable[Override],
) -> tuple[Settings | None, list[Finding]]:
    """The settings of a case, and what is wrong with them.

    They are those of the settings file, then of the file of cases, then of the case; environment and flags
    override them as they do everywhere. Where time passes, windows have the ages that `run` gives them, else
    those of `dedup`.

    base: makes the tree of the settings file, or an empty one
    """
    tree = base()
    overlay(tree, file, ("settings",))
    overlay(tree, file, (*case.path, "settings"))
    return check_tree(tree, environ, flags, on_files=not case.advances)


def wrong_verdicts(case: Case, settings: Settings) -> list[Wrong]:
    """The messages of a case that the sieve, empty at first, judges otherwise than expected."""
    found = verdicts_on(case.messages, settings, timed=case.advances)
    return [
        Wrong(number, expected, said)
        for number, (expected, said) in enumerate(zip(case.expected, found, strict=True), start=1)
        if not expected.holds_for(said)
    ]


def verdicts_on(messages: list[Message], settings: Settings, *, timed: bool) -> list[Said]:
    """The verdict on each message, judged in this order by a sieve that is empty at first.

    timed: messages without a time of their own come at the time that has passed in the case
    """
    passes_null = settings.passes_null_text(on_files=not timed)
    source = settings.input
    if source.encoding != "text":
        # Cases are written as JSON, whatever the messages of the input are.
        settings = settings.model_copy(update={"input": source.model_copy(update={"encoding": "json"})})
    columns = MessageReader(settings, passes_null=passes_null).read(
        [_as_bytes(message, settings) for message in messages]
    )
    if timed:
        passed = np.array([_BEGIN_MS + messages[row].after_ms for row in columns.rows], np.int64)
        columns.times_ms = np.where(columns.times_ms == NO_TIME, passed, columns.times_ms)
    scheme = judging_scheme_of(settings)
    config = sieve_config(settings, scheme.scheme_id)
    config = replace(config, near=replace(config.near, details=True))
    positions = np.array(columns.rows, np.int64) + 1
    batch = make_batch(columns, *scheme.read(columns.texts, columns.keys), positions, NO_TIME)
    return _said(len(messages), columns, BatchSieve(config).judge(batch))


def _as_bytes(message: Message, settings: Settings) -> bytes:
    content = message.content
    if isinstance(content, bytes):
        return content
    if isinstance(content, dict):
        return to_json(content)
    if settings.input.encoding != "json":
        return content.encode("utf-8", "surrogatepass")
    document: object = content
    for part in reversed(path_of(settings.input.text_field[0])):
        document = {part: document} if isinstance(part, str) else [None] * part + [document]
    return to_json(document)


def _said(count: int, columns: MessageColumns, verdicts: Verdicts) -> list[Said]:
    said = [Said("")] * count
    for bad in columns.unreadable:
        said[bad.row] = Said("unreadable", reason=str(bad.reason))
    for bad in columns.no_text:
        said[bad.row] = Said("no_text")
    for index, row in enumerate(columns.rows):
        kind = Kind(int(verdicts.kinds[index]))
        about = verdicts.apart_from if kind == Kind.UNIQUE else verdicts.leaders
        position = int(about[index])
        rule = Rule(int(verdicts.reasons[index])) if kind == Kind.UNIQUE else Rule.NONE
        said[row] = Said(
            kind.name.lower(),
            None if position == NO_LEADER else position,
            rule.words if rule else None,
            differing_words(verdicts, index) if rule else None,
        )
    return said


def overlay(tree: Tree, other: Tree, at: KeyPath) -> None:
    """Put the mapping that stands at `at` in `other` on top of the settings in `tree`, with its places.

    Sections are merged key by key; every other value replaces the one below it, also lists and mappings.
    """
    values: object = other.values
    for part in at:
        values = values.get(part) if isinstance(values, dict) else _item(values, part)
    if isinstance(values, dict):
        _merge(tree, tree.values, values, ())
    for found, taken in ((tree.places, other.places), (tree.key_places, other.key_places)):
        for path, place in taken.items():
            if path[: len(at)] == at and len(path) > len(at):
                found[path[len(at) :]] = place


def _item(values: object, part: str | int) -> object:
    return values[part] if isinstance(values, list) and isinstance(part, int) else None


def _merge(tree: Tree, below: dict[str, Raw], above: dict[str, Raw], path: KeyPath) -> None:
    for name, value in above.items():
        here, before = (*path, name), below.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and schema().get(dotted(here)) == "section":
            _merge(tree, before, value, here)
            continue
        for places in (tree.places, tree.key_places):
            for known in [known for known in places if known[: len(here)] == here]:
                del places[known]
        below[name] = value
