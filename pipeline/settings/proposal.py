"""Proposes a profile by the first texts: posts in Chinese, posts in alphabets, titles, or text messages.

The signs are rough: they tell kinds of text apart that have a profile of their own, and say nothing where the
texts could be of two kinds. A proposal changes nothing by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from twinsieve.pipeline.settings.model import Settings
from twinsieve.stages.text.tables import DIGIT, LETTER, UNSPACED, tables

LOOKED_AT = 1000
"""Texts that a proposal is made of."""
_LEAST = 200
"""Fewer texts say too little."""
_READ = 400
"""Characters that are read of a text."""
_POSTS = 0.15
"""Share of texts with a link, an @name or a tag from which on they are posts."""
_BARE = 0.03
"""Greatest share of them in titles."""
_TITLE = 70
"""Greatest median of characters of titles in alphabets; half of it counts in unspaced scripts."""
_SENTENCES = 0.2
"""Greatest share of titles that end like a sentence."""
_SIGNED = 0.4
"""Share of texts with a sender in brackets, 【bank】, from which on they are text messages."""
_LINES = {
    "microblog": "posts in Chinese or Japanese",
    "plain": "posts in alphabets",
    "titles": "titles",
    "sms": "text messages",
}
_FITS = {"default": frozenset(_LINES), "microblog": frozenset({"plain"}), "plain": frozenset({"microblog"})}
"""By the profile in force: the profiles that are proposed in its place."""


@dataclass(slots=True)
class ProfileProposal:
    """Collects the first texts of a run and proposes a profile once.

    profile: the profile in force
    """

    profile: str
    _texts: list[str] = field(default_factory=list)
    _done: bool = False

    def look(self, texts: Sequence[str]) -> str | None:
        """Add texts. returns: a line with the proposal, once, after LOOKED_AT texts; else None"""
        if self._done or self.profile not in _FITS:
            return None
        self._texts += (text[:_READ] for text in texts[: LOOKED_AT - len(self._texts)])
        return self.end() if len(self._texts) >= LOOKED_AT else None

    def end(self) -> str | None:
        """The same at the end of an input that has fewer texts."""
        if self._done or self.profile not in _FITS:
            return None
        self._done = True
        proposed, looked_at = profile_of(self._texts), len(self._texts)
        self._texts.clear()
        if proposed not in _FITS[self.profile]:
            return None
        return (
            f"the first {looked_at:,} texts look like {_LINES[proposed]}: profile: {proposed} knows "
            f"them better than {self.profile} (README.md has the table)"
        )


def proposal_for(settings: Settings) -> ProfileProposal | None:
    """What looks at the first texts of a run with these settings; None if they compare no texts."""
    return ProfileProposal(settings.profile) if settings.near.method == "text" else None


def profile_of(texts: Sequence[str]) -> str | None:
    """The profile for the kind of these texts, or None if they are too few or could be of two kinds.

    >>> profile_of(["Storm hits the coast and leaves thousands without power"] * 200)
    'titles'
    >>> profile_of(["@anna look at this! http://t.co/x " + "so good " * 9] * 200)
    'plain'
    >>> profile_of(["【某银行】您的验证码已发送,请勿告诉他人。"] * 200)
    'sms'
    """
    texts = [text for text in texts if text.strip()]
    if len(texts) < _LEAST:
        return None
    share = 1 / len(texts)
    marked = sum("http" in text or "@" in text or "#" in text for text in texts) * share
    signed = sum("【" in text[:3] or text.rstrip().endswith("】") for text in texts) * share
    ended = sum(text.rstrip()[-1] in ".!?…。!?！？।۔" for text in texts) * share
    properties = tables().properties[np.frombuffer("".join(texts).encode("utf-32-le", "replace"), "<u4")]
    letters = properties[properties & (LETTER | DIGIT) == LETTER]
    unspaced = np.count_nonzero(letters & UNSPACED) / max(1, len(letters))
    if signed >= _SIGNED:
        return "sms"
    if marked >= _POSTS:
        return "microblog" if unspaced > 0.5 else "plain"
    length = median(map(len, texts)) * (2 if unspaced > 0.5 else 1)
    if marked <= _BARE and length <= _TITLE and ended <= _SENTENCES:
        return "titles"
    return None
