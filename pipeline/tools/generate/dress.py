"""Adds to the words of a post: tags, links, mentions, emoji, and the marks of a repost chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from twinsieve.pipeline.tools.generate.edits import edited, retold
from twinsieve.pipeline.tools.generate.grammar import Grammar

DRAWS = 14
"""Random numbers that a `Dress` takes for one post."""


class Dress(Protocol):
    """Adds what is around the words of a post.

    The methods take `draws`, a list of DRAWS random numbers in [0, 1), which decide what is added.
    """

    def dress(self, body: str, draws: Sequence[float]) -> str:
        """The body, sometimes with things that do not count as words when texts are compared."""

    def edited(self, body: str, draws: Sequence[float], other: str, /) -> str:
        """The body with small changes. other: a text that new characters may come from"""

    def chain(self, body: str, draws: Sequence[float]) -> str:
        """A repost of the body."""


class Dresser:
    """Adds tags, links and the like to a body, as on Chinese microblogs; a `Dress`."""

    def __init__(self, chinese: Grammar) -> None:
        slots = chinese.slots
        self._tags = [f"{topic}{thing}" for topic in slots["TOPIC"] for thing in slots["STATE"]]
        self._names = [
            f"{a}{b}{animal}" for a in slots["PA"] for b in slots["PB"] for animal in slots["ANIMAL"]
        ]
        self._shorts, self._emoji, self._faces = slots["SHORT"], slots["EMOJI"], slots["FACES"]

    def dress(self, body: str, draws: Sequence[float]) -> str:
        """The body, sometimes with a topic tag, a link, a mention, emoji or the end text of a video post.

        Only things are added that do not count as words when texts are compared. Emoji written as words, such
        as [心], would count, so only `short` adds them.
        """
        text = body
        if draws[2] < 0.35:
            # The fourth power makes a few tags very frequent, like real topics of the day.
            tag = f"#{_pick(self._tags, (draws[2] / 0.35) ** 4)}#"
            text = f"{tag}{text}" if draws[3] < 0.5 else f"{text} {tag}"
        if draws[4] < 0.15:
            text = f"{text} http://t.cn/A6{int(draws[4] * 6e8):08x}"
        if draws[5] < 0.08:
            text = f"{text} @{_pick(self._names, draws[5] / 0.08)} "
        # Add no emoji to very short posts: there emoji count as part of the message (and of the exact key).
        if draws[6] < 0.12 and len(body) >= 12:
            text += _pick(self._emoji, draws[6] / 0.12) * (1 + int(draws[7] * 3))
        if draws[8] < 0.06:
            text = f"{text} L{_pick(self._names, draws[8] / 0.06)}的微博视频"
        return text

    def edited(self, body: str, draws: Sequence[float], other: str, /) -> str:
        """The body with one to six characters changed; see `edits.edited`."""
        return edited(body, draws, other)

    def short(self, draws: Sequence[float]) -> str:
        """A short reaction: a word, or one or two emoji. There are so few that the same one comes often."""
        if draws[2] < 0.3:
            return _pick(self._emoji, draws[3]) * (1 + int(draws[4] * 2))
        text = _pick(self._shorts, draws[3])
        return text if draws[5] < 0.6 else text + _pick(self._faces, draws[6])

    def chain(self, body: str, draws: Sequence[float]) -> str:
        """A repost chain: an own short word, the names of one or two earlier authors, and the body."""
        text = f"//@{_pick(self._names, draws[3])}:{body}"
        if draws[4] < 0.3:
            text = f"//@{_pick(self._names, draws[5])}:{_pick(self._shorts, draws[6])}{text}"
        return _pick(self._shorts, draws[2]) + text


class TweetDresser:
    """Adds links, @names, emoji and RT to a body, as on Twitter; a `Dress`.

    It adds no tags: the words of an open #tag count.
    """

    def __init__(self, grammar: Grammar, emoji: Sequence[str]) -> None:
        words = {word for slot in grammar.slots.values() for word in slot if word.isalpha() and len(word) > 3}
        self._words, self._emoji = sorted(words), emoji
        self._remarks = grammar.slots.get("REMARK", [])

    def dress(self, body: str, draws: Sequence[float]) -> str:
        """The body, sometimes with a link, an @name or emoji."""
        text = body
        if draws[2] < 0.15:
            text = f"@{self._name(draws[2] / 0.15, draws[3])} {text}"
        if draws[4] < 0.3:
            text = f"{text} http://t.co/{int(draws[4] * 6e8):08x}"
        if draws[5] < 0.08:
            text = f"{text} @{self._name(draws[5] / 0.08, draws[7])}"
        if draws[6] < 0.12 and len(body) >= 12:
            text += " " + _pick(self._emoji, draws[6] / 0.12) * (1 + int(draws[7] * 3))
        return text

    def edited(self, body: str, draws: Sequence[float], _other: str, /) -> str:
        """The body with a remark or with typing errors; see `retold`."""
        return retold(body, draws, self._remarks)

    def chain(self, body: str, draws: Sequence[float]) -> str:
        """The body behind RT and the name of its author."""
        return f"RT @{self._name(draws[3], draws[5])}: {body}"

    def _name(self, draw: float, other_draw: float) -> str:
        return f"{_pick(self._words, draw)}_{_pick(self._words, other_draw)}"


def _pick(choices: Sequence[str], draw: float) -> str:
    return choices[int(draw * len(choices))]
