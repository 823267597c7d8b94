"""What a verdict shows of the place that keeps two messages apart, for every rule that has one."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, SMS, TITLES
from tests.twins import batch_of
from twinsieve.stages.contract import Differences, NearConfig, SieveConfig
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.text.rules import TextConfig

NEWS = "今天上午武汉发布会通报了最新的情况请大家注意防护"


def shown(earlier: str, later: str, differences: Differences) -> tuple[Rule, list[str]]:
    """The rule, and what the earlier and the later message say in its place; nothing where there is none."""
    scheme = Scheme(SchemeConfig(text=TextConfig(profile="plain")))
    near = NearConfig(similarity=3_000, candidates="scan", differences=differences, details=True)
    verdicts = BatchSieve(SieveConfig(near=near)).judge(batch_of(*scheme.read([earlier, later])))
    row = int(verdicts.detail_rows[1])
    sides = [] if row < 0 else ["".join(map(chr, side[side > 0])) for side in verdicts.details[row]]
    return Rule(int(verdicts.reasons[1])), sides


@pytest.mark.parametrize(
    ("rule", "differences", "earlier", "later", "place"),
    [
        (Rule.NUMBER, FULL, f"{NEWS}9例", f"{NEWS}11例", ["9", "11"]),
        (Rule.CALENDAR, FULL, f"本周六{NEWS}", f"本周日{NEWS}", ["六", "日"]),
        (Rule.NUMBER_ADDED, FULL, f"{NEWS}确诊病例", f"{NEWS}确诊3病例", ["", "3"]),
        (Rule.CORRECTION, FULL, NEWS, f"{NEWS}更正", ["", "更正"]),
        (Rule.REPLACED, FULL, "甲乙丙丁戊己庚辛壬癸子丑", "甲乙丙丁戊己庚辛寅卯辰巳", ["壬癸子丑", "寅卯辰巳"]),
        (Rule.IN_ITS_PLACE, TITLES, f"飞利浦{NEWS}新店开张凉皮和奶茶都打八折哦", f"东芝{NEWS}新店开张凉皮和奶茶都打八折哦", ["飞利浦", "东芝"]),
        (Rule.ADDED_INSIDE, SMS, "甲乙丙丁戊己庚辛壬癸子丑", "甲乙丙丁戊己寅卯辰巳庚辛壬癸子丑", ["", "寅卯辰巳"]),
    ],
)  # fmt: skip
def test_a_place_is_shown(
    rule: Rule, differences: Differences, earlier: str, later: str, place: list[str]
) -> None:
    assert shown(earlier, later, differences) == (rule, place)


def test_no_place_is_shown_where_no_single_one_decides() -> None:
    earlier, later = "庚辛壬癸子丑寅卯甲乙丙丁", "午未申酉庚辛壬癸子丑寅卯"
    assert shown(earlier, later, FULL) == (Rule.BOTH_SAY_MORE, [])
