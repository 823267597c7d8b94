"""What surrounds the words of a post: tags, links, mentions, emoji, chains."""

from __future__ import annotations

from collections.abc import Sequence

from twinsieve.pipeline.generate.grammar import Grammar


class Dresser:
    """Puts tags, links and the like around a body; each text takes DRAWS numbers in [0, 1)."""

    DRAWS = 14

    def __init__(self, chinese: Grammar) -> None:
        slots = chinese.slots
        self._tags = [f"{topic}{thing}" for topic in slots["TOPIC"] for thing in slots["STATE"]]
        self._names = [
            f"{a}{b}{animal}" for a in slots["PA"] for b in slots["PB"] for animal in slots["ANIMAL"]
        ]
        self._shorts, self._emoji, self._faces = slots["SHORT"], slots["EMOJI"], slots["FACES"]

    def dress(self, body: str, draws: Sequence[float]) -> str:
        """The body with, at times, a topic tag, a link, a mention, emoji or the tail of a video.

        Nothing that is put on counts as words: spelt-out faces such as [心] would, so only `short` has them.
        """
        text = body
        if draws[2] < 0.35:
            # A few tags are everywhere, as real topics of the day are.
            tag = f"#{_pick(self._tags, (draws[2] / 0.35) ** 4)}#"
            text = f"{tag}{text}" if draws[3] < 0.5 else f"{text} {tag}"
        if draws[4] < 0.15:
            text = f"{text} http://t.cn/A6{int(draws[4] * 6e8):08x}"
        if draws[5] < 0.08:
            text = f"{text} @{_pick(self._names, draws[5] / 0.08)} "
        # In very short posts emoji are part of what is said (and of the exact key).
        if draws[6] < 0.12 and len(body) >= 12:
            text += _pick(self._emoji, draws[6] / 0.12) * (1 + int(draws[7] * 3))
        if draws[8] < 0.06:
            text = f"{text} L{_pick(self._names, draws[8] / 0.06)}的微博视频"
        return text

    def short(self, draws: Sequence[float]) -> str:
        """A reaction of a word or an emoji or two; few enough to come back often."""
        if draws[2] < 0.3:
            return _pick(self._emoji, draws[3]) * (1 + int(draws[4] * 2))
        text = _pick(self._shorts, draws[3])
        return text if draws[5] < 0.6 else text + _pick(self._faces, draws[6])

    def chain(self, body: str, draws: Sequence[float]) -> str:
        """The body behind a word of one's own and one or two earlier hands, as a repost chain."""
        text = f"//@{_pick(self._names, draws[3])}:{body}"
        if draws[4] < 0.3:
            text = f"//@{_pick(self._names, draws[5])}:{_pick(self._shorts, draws[6])}{text}"
        return _pick(self._shorts, draws[2]) + text


def _pick(choices: Sequence[str], draw: float) -> str:
    return choices[int(draw * len(choices))]
