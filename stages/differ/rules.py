"""All rules that keep two similar bodies apart, in the order in which they are evaluated.

The table in docs/DIFFERENCES.md, metrics, reports, headers and the wire format take the rules from here. Logs
and saved states contain the number of a rule. So a number never changes, and the number of a removed rule is
never used again.
"""

from __future__ import annotations

from enum import Enum, IntEnum, unique
from typing import Self

import numpy as np
from numpy.typing import NDArray


class Category(Enum):
    """What a rule examines.

    GUARD: a difference that changes the meaning; active under `guards` and `full`
    REFERENCE: links, @names and tags that `text.compare` selects; active under `guards` and `full`
    AMOUNT: how much differs; active under `full`, with the limits of the profile
    BESIDE: something else than the aligned bodies
    """

    GUARD = "guard"
    REFERENCE = "reference"
    AMOUNT = "amount"
    BESIDE = "beside"


@unique
class Rule(IntEnum):
    """The reason why a message was kept although a similar one was kept before: the first rule that holds.

    category: what the rule examines
    has_place: whether one place in both bodies decides, so that this place can be shown
    meaning: what differs between the two messages, in a few words for people who do not know the rules
    line: when exactly the rule keeps two bodies apart (Markdown)
    limits: keys of `near.limits` that the rule reads
    version: counts up whenever the rule keeps other bodies apart than before. The version of NONE counts up
        with what all rules share, and with how similar two bodies are. A test compares the versions with the
        code (`tests/stages/differ/rule_trees.py`)
    """

    category: Category
    has_place: bool
    meaning: str
    line: str
    limits: tuple[str, ...]
    version: int

    def __new__(
        cls,
        number: int,
        category: Category = Category.BESIDE,
        has_place: bool = False,
        meaning: str = "",
        line: str = "",
        limits: tuple[str, ...] = (),
        version: int = 1,
    ) -> Self:
        """A rule. number: its permanent number; `Rule(number)` returns the rule"""
        rule = int.__new__(cls, number)
        rule._value_ = number
        rule.category, rule.has_place = category, has_place
        rule.meaning, rule.line, rule.limits, rule.version = meaning, line, limits, version
        return rule

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """A rule that this version does not have. A newer one may have recorded its number.

        >>> Rule(200).words
        'rule 200'
        """
        if not isinstance(value, int) or not 0 < value < 256:
            return None
        rule = int.__new__(cls, value)
        rule._name_, rule._value_ = f"RULE_{value}", value
        rule.category, rule.has_place, rule.meaning = Category.BESIDE, False, f"rule {value}"
        rule.line, rule.limits, rule.version = "", (), 0
        return rule

    NONE = (0, Category.BESIDE, False, "", "", (), 11)
    SAME_ID = (
        14, Category.BESIDE, False,
        "both have one id",
        "both have one id, under `near.same_id: pass`",
    )  # fmt: skip
    NUMBER = (
        1, Category.GUARD, True,
        "they give different numbers (12 cases / 15 cases)",
        "a replaced run holds numbers on both sides, and neither side's are all among the other's, "
        "counted with repeats; or, wherever they stand, each body has a number that the other lacks. Also "
        "the same numbers in another order (2:1 / 1:2), other operators (12+5 / 12-5), zeros that end a "
        "version (3.1 / 3.10), Roman numbers (II / III), and a number or code in place of words, if the "
        "bodies differ in two places at most (5 users / all users); two short mixes one for one "
        "(12a / 12b); and in a run of at most 4 "
        "tokens a side a word such as *a* (a man / 2 men), or the last part of a series, where the other "
        "body has a number (第2回 / 最終回)",
        (), 4,
    )  # fmt: skip
    NUMERAL = (
        2, Category.GUARD, True,
        "they give different numbers, written as Chinese numerals (三号线 / 四号线)",
        "a replaced run of at most 4 tokens a side holds Chinese numerals on both sides and no equal "
        "value (三号线 / 四号线); or each body has one of its own before the same character, "
        "wherever it stands",
        (), 3,
    )  # fmt: skip
    CALENDAR = (
        3, Category.GUARD, True,
        "they name different days or months (Monday / Friday)",
        "a replaced run of at most 4 tokens a side holds other weekdays, months or days (周六 / "
        "周日, Monday / Friday, 今天 / 明天), or a longer one lies within two such words (星期一 / "
        "星期日), or one such word has characters more than the other (明日 / 明後日); or each body has one "
        "whose partner alone is in the other, wherever they stand",
        (), 4,
    )  # fmt: skip
    NUMBER_ADDED = (
        4, Category.GUARD, True,
        "one gives a number that the other does not give",
        "a number was added or left out inside, alone or with one more token (also 3比1 / 1比3, "
        "where 比1 moves), or a Chinese numeral beside a number or another numeral (5例 / 5万例, "
        "十万 / 二十万). Also a word such as *more* beside a number (three / three more), a number before "
        "a word that has another form in the other body (policeman / 11 policemen), and at the end the "
        "number of a part (part 2; (3) if nothing else differs)",
        (), 3,
    )  # fmt: skip
    OPPOSITE = (
        5, Category.GUARD, True,
        "they say opposite things (open / closed), or one has a negation more",
        "the same as *calendar* with a listed pair (上涨 / 下跌, open / closed, safe / unsafe), or "
        "with words that differ in the mark at their ends alone (A+ / A-, Disney / Disney+), or the "
        "negations of both bodies differ by an odd number, and little remains of a run that touches "
        "one ([Denials](#denials))",
        (), 5,
    )  # fmt: skip
    STAGE = (
        30, Category.GUARD, True,
        "they tell of different stages of an event, or of another such event (plans, again)",
        "a run of at most 4 tokens a side says that an event is planned or expected, attempted or "
        "one more (*poised*, *bid*, *another*, 拟, 再次), and the other body says nothing of the kind; or "
        "the later body alone tells of dead or injured (*kills*, 死亡); or one side has *to* or *will* "
        "before a verb, and the other side another form of it (to close / closes)",
        (), 3,
    )  # fmt: skip
    REPEATED = (
        21, Category.GUARD, True,
        "the same words are replaced in several places (another job, another city)",
        "each body has words of its own that stand at least twice where something was replaced, "
        "two characters or one word of three letters (Art Teacher … art teacher / Bus Driver … bus driver)",
        (), 3,
    )  # fmt: skip
    CORRECTION = (
        7, Category.GUARD, True,
        "one is marked as a correction or a rumour (update, fake, 更正)",
        "an end of one body holds a correction that the other lacks (更正, 谣言, update, fake)",
        (), 2,
    )  # fmt: skip
    LINK = (
        15, Category.REFERENCE, False,
        "each has a link that the other lacks",
        "each body holds a link that the other lacks, under `text.compare`",
    )  # fmt: skip
    MENTION = (
        16, Category.REFERENCE, False,
        "each has an @name that the other lacks",
        "the same with an @name",
    )  # fmt: skip
    TAG = (
        17, Category.REFERENCE, False,
        "each has a tag that the other lacks",
        "the same with a tag",
    )  # fmt: skip
    REPLACED = (
        8, Category.AMOUNT, True,
        "too many of their words differ",
        "replaced points are over a share of replaced and shared ones: `replaced_short` in bodies "
        "under `short` characters, else `replaced`. Words in two spellings or forms, and one number "
        "written in two ways, are no replacement",
        ("short", "replaced_short", "replaced"), 4,
    )  # fmt: skip
    BOTH_SAY_MORE = (
        9, Category.AMOUNT, False,
        "they are short, and each says something that the other does not say",
        "in short bodies, each has over a share to itself; or below twice that length, in at most "
        "`name_places` runs at any place, each has words of an alphabet with that many letters that the "
        "other lacks",
        ("only_short", "each", "name_places"), 5,
    )  # fmt: skip
    LONG_REPLACEMENT = (
        10, Category.AMOUNT, True,
        "a long passage of one is replaced by another passage",
        "one replacement is longer than that", ("longest",), 4,
    )  # fmt: skip
    IN_ITS_PLACE = (
        11, Category.AMOUNT, True,
        "the same sentence has another name or word in one place (Boston / Denver)",
        "at most `places` runs, and one before the end replaces `in_place` characters or more "
        "(飞利浦 / 东芝 in a template); the same with words of an alphabet and at most `name_places` runs "
        "(Boston / Denver), where a run counts as none if it is another spelling, or light words or a "
        "closing (Thanks!) at an end. Light words and other forms of one word do not count. The same "
        "with another title or other last words behind equal ones, or a phrase that has moved (in Boston, "
        "in Denver). Also two lists with one item in common (a, b / b, c), in short bodies another thing "
        "before and behind one question, and words of an alphabet where the other body has Han characters, "
        "if no more differs",
        ("in_place", "places", "name_places"), 5,
    )  # fmt: skip
    OWN_WORDS = (
        12, Category.AMOUNT, True,
        "the later one adds many words of its own",
        "the later body has more new pairs of characters in one place; a word that the earlier body "
        "lacks counts by its letters. Or words that say something and that the earlier body lacks make "
        "more than a share of it (`own_share`)",
        ("own", "own_share"), 4,
    )  # fmt: skip
    ADDED_INSIDE = (
        18, Category.AMOUNT, True,
        "one has a passage in its middle that the other lacks",
        "between what both have, one has more characters that the other lacks (a field of a bill)",
        ("inside",), 3,
    )  # fmt: skip
    WORD_ADDED = (
        20, Category.AMOUNT, True,
        "they are short, and one has a word inside that the other lacks (fatal, deputy)",
        "in short bodies, between what both have, one has words of an alphabet with more characters that "
        "the other lacks (*fatal*, *deputy*), or the later one three words or more; light words do not "
        "count. Or all that one adds is the name of an institution (江西 / 江西师范大学). In Japanese and "
        "Thai: the later one says more letters of its own (朝食も), where a Han character, a letter of "
        "katakana and a number are worth 4, and phrases that say little are worth nothing. Up to four "
        "times that length it takes six times as many letters, and in Japanese up to twice that length as "
        "many on both sides",
        ("added_short",), 5,
    )  # fmt: skip
    TAIL = (
        19, Category.BESIDE, False,
        "they are long, and the numbers or negations after the first 512 characters differ",
        "both bodies have over 512 characters, what follows is about as long, and holds other "
        "numbers or another count of negations ([Long bodies](#long-bodies))",
        (), 3,
    )  # fmt: skip
    SIGN = (
        31, Category.BESIDE, False,
        "each has a sign that says the opposite of the other's (📈 / 📉)",
        "each body has a sign of one family that the other lacks: arrows up and down, thumbs, tick, cross, "
        "circles of traffic lights, weather, flags (📈 / 📉, 👍 / 👎, 🇧🇷 / 🇦🇷); of bodies up to 512 "
        "characters, four signs of each",
    )  # fmt: skip
    CARD = (
        13, Category.BESIDE, False,
        "they share a card (a poll, an article) under words that are not alike",
        "own words before a shared card (a poll, an article) are not alike",
    )  # fmt: skip

    @property
    def words(self) -> str:
        """The name of the rule in reports, headers and metrics.

        >>> Rule.NUMBER_ADDED.words
        'number added'
        """
        return self.name.lower().replace("_", " ")


GUARD_RULES = tuple(int(rule) for rule in Rule if rule.category is Category.GUARD)
"""Numbers of the guards, in the order of evaluation."""

RULE_NUMBERS = max(Rule) + 1
"""Size of an array with an entry for each number of a rule. No rule has the number of a removed one."""

HAS_PLACE = np.array([Rule(number).has_place for number in range(RULE_NUMBERS)])
"""bool[RULE_NUMBERS]: `Rule.has_place`, by number of the rule."""


def counts_by_name(reasons: NDArray[np.uint8]) -> dict[str, int]:
    """By name of a rule, in the order of `Rule`: how many rows it kept apart, if any.

    reasons: uint8[n], numbers of rules; NONE is not counted

    >>> counts_by_name(np.array([3, 0, 1, 3], np.uint8))
    {'number': 1, 'calendar': 2}
    """
    counts = np.bincount(reasons, minlength=RULE_NUMBERS).tolist()
    return {rule.words: counts[rule] for rule in Rule if rule and counts[rule]}
