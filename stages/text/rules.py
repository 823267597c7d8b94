"""What shapes a body: the settings of the text stage, checked, and the name of what they add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from twinsieve.stages.errors import UsageError
from twinsieve.stages.text.drop_rules import check_pattern, opencc_version
from twinsieve.stages.text.unicode import UNICODE_VERSION

Profile = Literal["microblog", "plain"]
BodyRule = Literal["product", "letters"]
FoldVariants = Literal["none", "simplified", "traditional"]

RULES_VERSION = 2
"""Raised whenever the same text and settings give another body or key text."""


@dataclass(frozen=True, slots=True)
class TextConfig:
    """Settings of the text stage.

    profile: `microblog` drops tags, repost chains, card marks, video and place tails beside URLs and names;
        `plain` drops URLs and names alone
    body_rule: `product` keeps letters, digits, combining marks, separators inside numbers, a sign, currency
        or comparison before them, and symbols in the key text of short bodies; `letters` keeps letters and
        digits alone, as the data sets' truth does
    fold_variants: turn Han characters into one of their two standard forms with OpenCC
    drop: RE2 patterns; what they match becomes a blank, after NFKC and before the profile's rules
    raises: UsageError for a value that is none of these, a pattern that RE2 refuses, or OpenCC missing

    >>> TextConfig(drop=("(",))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    twinsieve.stages.errors.UsageError: text.drop[0] is '(', which RE2 refuses: missing ): (; mend ...
    """

    profile: Profile = "microblog"
    body_rule: BodyRule = "product"
    fold_variants: FoldVariants = "none"
    drop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("profile", self.profile, get_args(Profile)),
            ("body_rule", self.body_rule, get_args(BodyRule)),
            ("fold_variants", self.fold_variants, get_args(FoldVariants)),
        ):
            if value not in choices:
                raise UsageError(f"text.{name} is {value!r}; use one of {', '.join(choices)}")
        for number, pattern in enumerate(self.drop):
            check_pattern(f"text.drop[{number}]", pattern)
        if self.fold_variants != "none":
            opencc_version()


def text_version(config: TextConfig) -> str:
    """What bodies depend on outside the settings: rules, Unicode tables, and OpenCC's dictionary where used.

    >>> text_version(TextConfig()).startswith("rules 2, Unicode 17")
    True
    """
    version = f"rules {RULES_VERSION}, Unicode {UNICODE_VERSION}"
    if config.fold_variants != "none":
        version += f", OpenCC {opencc_version()}"
    return version
