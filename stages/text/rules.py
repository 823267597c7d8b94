"""Settings of the text stage with their checks, the operator's own patterns, and the version of the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import re2

from twinsieve.stages.errors import UsageError
from twinsieve.stages.text.unicode import UNICODE_VERSION

Profile = Literal["microblog", "plain"]
BodyRule = Literal["product", "letters"]
FoldVariants = Literal["none", "simplified", "traditional"]
Compared = Literal["links", "mentions", "tags"]

RULES_VERSION = 7
"""Increase it with each change after which the same text and settings give another body or key text."""

_OPENCC_CONFIGS = {"simplified": "t2s", "traditional": "s2t"}


def _compile(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def check_pattern(name: str, pattern: str) -> None:
    """Check that RE2 accepts the pattern, and that the pattern does not match empty text.

    RE2 has no look-around and no back references, so matching takes linear time for every text.
    name: the setting, for the message; raises: UsageError, which quotes the pattern
    """
    try:
        compiled = _compile(pattern)
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"{name} is {pattern!r}, which is not Unicode text; mend or remove the pattern"
        ) from problem
    except re2.error as problem:
        reason = problem.args[0].decode("utf-8", "replace")
        raise UsageError(
            f"{name} is {pattern!r}, which RE2 refuses: {reason}; mend or remove the pattern"
        ) from problem
    if compiled.fullmatch(""):
        raise UsageError(f"{name} is {pattern!r}, which matches empty text; ask for at least one character")


def opencc_version() -> str:
    """Version of the installed OpenCC. Its dictionaries determine how variants are folded.

    raises: UsageError if it is not installed
    """
    return str(_opencc().__version__)


def _opencc() -> Any:
    # Imported only if needed: it takes longer than all other imports here, and few configurations use it.
    try:
        import opencc
    except ImportError as problem:
        raise UsageError(
            "text.fold_variants needs OpenCC, which is not installed; "
            "pip install '.[opencc]' in a checkout, or set it to none"
        ) from problem
    return opencc


class DropRules:
    """The operator's drop patterns and the folding of variants. They apply to each NFKC text."""

    def __init__(self, drop: tuple[str, ...], fold_variants: str) -> None:
        self._patterns = [_compile(pattern) for pattern in drop]
        self._fold: Callable[[str], str] | None = None
        if fold_variants != "none":
            self._fold = _opencc().OpenCC(_OPENCC_CONFIGS[fold_variants]).convert

    def __bool__(self) -> bool:
        """Whether there is a pattern or a folding to apply."""
        return bool(self._patterns) or self._fold is not None

    def apply(self, texts: list[str]) -> list[str]:
        """The texts, in which each match of a pattern is replaced by a blank, and variants are folded."""
        for pattern in self._patterns:
            # Search first: a search without a match takes 1 µs, a substitution without a match several.
            texts = [pattern.sub(" ", text) if pattern.search(text) else text for text in texts]
        if self._fold is not None:
            texts = [self._fold(text) for text in texts]
        return texts


@dataclass(frozen=True, slots=True)
class TextConfig:
    """Settings of the text stage.

    profile: `plain` drops URLs and names; `microblog` also drops tags, repost chains, card and video marks,
        and a place tag at the end
    body_rule: `product` keeps letters, digits, combining marks, separators inside numbers, a sign, currency
        or comparison before a number, one mark between two words (→, ✓, <) or right after one (C#, S23+),
        and symbols in the key text of short bodies; `letters` keeps only letters and digits, as the true
        pairs of the data sets assume
    fold_variants: OpenCC turns Han characters into simplified or traditional characters
    drop: RE2 patterns; each match becomes a blank, after NFKC and before the rules of the profile
    compare: references (links, mentions, tags) that keep two messages apart if each has one that the other
        lacks; see `references.py`
    raises: UsageError for an unknown value, a pattern that RE2 refuses, or if OpenCC is needed but missing

    >>> TextConfig(drop=("(",))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    twinsieve.stages.errors.UsageError: text.drop[0] is '(', which RE2 refuses: missing ): (; mend ...
    """

    profile: Profile = "microblog"
    body_rule: BodyRule = "product"
    fold_variants: FoldVariants = "none"
    drop: tuple[str, ...] = ()
    compare: tuple[Compared, ...] = ()

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("profile", self.profile, get_args(Profile)),
            ("body_rule", self.body_rule, get_args(BodyRule)),
            ("fold_variants", self.fold_variants, get_args(FoldVariants)),
        ):
            if value not in choices:
                raise UsageError(f"text.{name} is {value!r}; use one of {', '.join(choices)}")
        for name in self.compare:
            if name not in get_args(Compared):
                raise UsageError(f"text.compare holds {name!r}; use some of {', '.join(get_args(Compared))}")
        for number, pattern in enumerate(self.drop):
            check_pattern(f"text.drop[{number}]", pattern)
        if self.fold_variants != "none":
            opencc_version()


def text_version(config: TextConfig) -> str:
    """Versions, beyond the settings, that bodies depend on: rules, Unicode tables, and OpenCC if it is used.

    >>> text_version(TextConfig()).startswith("rules 7, Unicode 17")
    True
    """
    version = f"rules {RULES_VERSION}, Unicode {UNICODE_VERSION}"
    if config.fold_variants != "none":
        version += f", OpenCC {opencc_version()}"
    return version
