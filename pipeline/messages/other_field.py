"""Finds the field that the user probably meant, if no message has a text in `input.text_field`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from twinsieve.pipeline.basics.closest import closest
from twinsieve.pipeline.basics.dead_letter_reasons import UnreadableError
from twinsieve.pipeline.broker.records import Header
from twinsieve.pipeline.messages.decode import decode_json
from twinsieve.pipeline.messages.paths import Path, name_of, path_of
from twinsieve.pipeline.messages.reader import MessageReader
from twinsieve.pipeline.messages.unseen import quoted
from twinsieve.pipeline.settings.model import Settings

_SHARE = 0.9
"""A field that holds a string in this share of the messages may be the text."""
_LEAST = 5
"""Fewer messages say too little: a stranger may have sent them, and every start would end."""
_LEVELS = 4
_MAX_FIELDS = 1_000
"""Most fields that are noted of one message, and most different ones of all: strangers choose their names."""


@dataclass(slots=True)
class _Strings:
    """The strings of one field.

    count: number of messages with one; characters: length of all together
    texty: the same of those with a blank or a character beyond ASCII, which ids and addresses do not have
    """

    count: int = 0
    texty: int = 0
    characters: int = 0


@dataclass(slots=True)
class OtherField:
    """Looks at messages one by one until one has a text.

    has_text: whether one had; count: number of messages so far
    """

    settings: Settings
    has_text: bool = False
    count: int = 0
    _reader: MessageReader = field(init=False)
    _taken: set[Path] = field(init=False)
    _found: dict[Path, _Strings] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings, source = self.settings, self.settings.input
        named = (*source.text_field, source.id_field, source.time_field)
        others = (*settings.scope, *settings.exact.fields)
        self._taken = {path_of(name) for name in (*named, *others) if name is not None}
        # Without these fields no kernel runs, which could have to be compiled first.
        bare = {"input": source.model_copy(update={"id_field": None, "time_field": None}), "scope": ()}
        keyless = settings.exact.model_copy(update={"fields": ()})
        self._reader = MessageReader(settings.model_copy(update={**bare, "exact": keyless}))

    def look(self, message: bytes, headers: Sequence[Header] = ()) -> None:
        """Look at one message, which may hold anything."""
        self.count += 1
        self.has_text = self.has_text or len(self._reader.read([message], headers=[headers])) > 0
        source = self.settings.input
        if self.has_text or source.encoding != "json" or len(message) > source.max_bytes:
            return
        try:
            document = decode_json(message)
        except UnreadableError:
            return
        for path, text in islice(_strings(document, ()), _MAX_FIELDS):
            if path not in self._taken and (path in self._found or len(self._found) < _MAX_FIELDS):
                seen = self._found.setdefault(path, _Strings())
                seen.count += 1
                seen.characters += len(text)
                seen.texty += len(text) if " " in text or not text.isascii() else 0

    def line(self) -> str | None:
        """What is wrong and what to set.

        None if a message has a text, if there were fewer than `_LEAST`, or if no other field could hold it.
        """
        likely = {path: seen for path, seen in self._found.items() if seen.count >= _SHARE * self.count}
        if self.has_text or self.count < _LEAST or not likely:
            return None
        source = self.settings.input
        named = {name_of(path): path for path in likely}
        close = (closest(name, list(named)) for name in source.text_field)
        longest = max(named, key=lambda name: (likely[named[name]].texty, likely[named[name]].characters))
        meant = next(filter(None, close), longest)
        count = likely[named[meant]].count
        # The path of a message that is a string itself is empty.
        holds = f"{quoted(meant)} holds" if meant else "the message itself is"
        advice = f"input.text_field to {quoted(meant)}" if meant else "input.encoding: text"
        fields = " or ".join(map(quoted, source.text_field))
        return (
            f"none of the first {self.count} messages has a text in {fields}, but {holds} a string in "
            f"{count} of {self.count}: set {advice}; if these messages have no text, set "
            "input.expect_text: false"
        )


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The path and text of each string in a document, of a list only those in its first item."""
    if isinstance(value, str):
        yield path, value
    elif len(path) < _LEVELS and isinstance(value, dict):
        for name, below in islice(value.items(), _MAX_FIELDS):
            yield from _strings(below, (*path, name))
    elif path and len(path) < _LEVELS and isinstance(value, list) and value:
        yield from _strings(value[0], (*path, 0))
