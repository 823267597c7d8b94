"""Bodies that differ in one number alone are kept apart as if they had been aligned.

The rules themselves say what is right, with words from all lists: whoever changes a rule or a list need not
think of the shortcut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from tests.stages.differ.asked import reason
from tests.stages.differ.test_words import LISTS
from twinsieve.stages.contract import FULL, Batch, Differences, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.differ.word_lists import phrases_of
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, TextConfig

_SCHEME = Scheme(SchemeConfig(text=TextConfig(profile="plain")))
_LIMITS = Differences(FULL)
_CONFIG = SieveConfig(
    ExactConfig(method="none"),
    NearConfig(similarity=1, window=Window(2), candidates="scan", differences=_LIMITS),
)
_PIECES = [
    "今天",
    "确诊",
    "例",
    "万",
    "the ",
    "bus ",
    "am",
    " pm ",
    "p m",
    "km ",
    "$",
    "-",
    ",",
    ".",
    ":",
    "/",
    "3",
    "00",
    "é",
    "𠮷",
]


def _words(lists: object) -> Iterator[str]:
    """All words in a text, a list, or the keys and values of a dictionary."""
    if isinstance(lists, str):
        yield from re.findall(r"[^\W\d_]+|[^\w\s{},/-]", lists)
    elif isinstance(lists, dict):
        for name, entries in lists.items():
            yield from _words(name)
            yield from _words(entries)
    elif isinstance(lists, list):
        for entry in lists:
            yield from _words(entry)


_LISTED = sorted({word for lists in LISTS.values() for word in _words(list(lists.values()))})
_WORD = st.one_of(
    st.sampled_from([*_PIECES, " ", "update ", "march "]),
    st.builds("{}{}".format, st.sampled_from(_LISTED), st.sampled_from(["", " "])),
)
_AROUND = st.lists(_WORD, max_size=8).map("".join)
_NUMBERS = st.sampled_from(
    ["1", "2", "12", "0", "007", "7", "70", "1007", "1014", "20200212", "1 2", "１２", "1.5", "9" * 17]
)


def _rules(later: str, earlier: str) -> tuple[Rule, Rule]:
    """The rule of the sieve, and that of an alignment."""
    bodies, prints = _SCHEME.read([earlier, later])
    batch = replace(Batch.blank(2), bodies=bodies, fingerprints=prints)
    verdicts = BatchSieve(_CONFIG).judge(batch)
    is_short = bool(bodies.exact_only.any())
    rule = Rule.NONE if is_short else reason(bodies, 1, 0, _LIMITS, phrases_of())
    return Rule(int(verdicts.reasons[1])), rule


@given(_AROUND, _NUMBERS, _NUMBERS, _AROUND)
@example("UPDATE ", "1", "2", " of the day, all is well")
@example("the bus leaves at ", "12", "0", " am on the day")
@example("the bus leaves at ", "12", "0", " a m on the day")
@example("the bus has seats, ", "100", "10", "0 of them")
@example("the bus has seats, 1", "7", "8", "7 of them")
@example("the bus 今天确诊, ", "7", "8", "万例")
@example("the long bus line ", "1 2", "12", " is late")
@example("at the long bus line w/ ", "5", "7", " others")
@example("我们在车站等车真的太好笑了", "233", "1500", "")
@example("我们在车站等车真的太好笑了", "1500", "233", "")
@example("今天的公交车又晚点了 阅读 ", "120", "131", " 评论 5")
@example("the long bus line is late again today 阅读 ", "12", "15", "")
def test_the_rule_is_that_of_an_alignment(head: str, number: str, other: str, tail: str) -> None:
    found, rule = _rules(head + number + tail, head + other + tail)
    assert found == rule
