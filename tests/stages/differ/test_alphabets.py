"""Words, names, sums, times and dates of alphabets: pairs that say the same, and pairs that do not."""

from __future__ import annotations

import pytest

from tests.stages.differ.test_differences import FULL, GUARDS, TITLES, reason_of
from twinsieve.stages.contract import Differences
from twinsieve.stages.differ.rules import Rule

POSTS = FULL._replace(name_places=1)
NAMES = TITLES._replace(name_places=2)


def why(later: str, earlier: str, limits: Differences) -> Rule:
    """The reason."""
    return reason_of(later, earlier, limits)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Man get two years in prison for theft of sheep", "Man gets two years in prison for theft of sheep"),
        ("Council discusses new plan for the harbour today", "Council discussed new plan for the harbor today"),
        ("The organisation cancelled its party by the sea", "The organization canceled its party by the sea"),
        ("Cerrada la estación central por la tormenta de hoy", "Cerrada la estacion central por la tormenta de hoy"),
        ("Цены на молоко растут этим летом в городах страны", "Цены на молоко растут этим летом в городе страны"),
        ("A 5 km run through the park for all beginners", "A 5 kilometres run through the park for all beginners"),
        ("Oil firm buys its rival for $1.8B in cash this year", "Oil firm buys its rival for $1.8 billion in cash this year"),
        ("Oil firm buys its rival for 1.8bn dollars this year", "Oil firm buys its rival for $1,800 million this year"),
        ("The city raised $5m for the shelter last winter", "The city raised 5 million dollars for the shelter last winter"),
        ("Council meeting starts at 3 pm in the town hall", "Council meeting starts at 15:00 in the town hall"),
        ("Council meeting starts at 3:30 p.m. in the town hall", "Council meeting starts at 3.30pm in the town hall"),
        ("The bridge opens on March 5, 2024 after long works", "The bridge opens on 5 March 2024 after long works"),
        ("The bridge opens on March 5th, 2024 after long works", "The bridge opens on 2024-03-05 after long works"),
        ("The bridge opens on December 25, 2024 after all", "The bridge opens on 25/12/2024 after all"),
        ("She came in 2nd in the race around the lake", "She came in second in the race around the lake"),
        ("Prices rose 4 % in the north of the country", "Prices rose 4 percent in the north of the country"),
        ("World war II bomb found under the old bridge", "World war 2 bomb found under the old bridge"),
        ("UPDATE 1-Oil prices climb on supply fears in the gulf", "UPDATE 2-Oil prices climb on supply fears in the gulf"),
        ("BREAKING: fire at the chemical plant near the river", "Fire at the chemical plant near the river - Reuters"),
        ("REFILE-Fire at the chemical plant near the river", "Fire at the chemical plant near the river (VIDEO)"),
        ("Does anybody know a reliable plumber in the north", "Does anybody know a relaible plumber in the north"),
    ],
)  # fmt: skip
def test_one_thing_in_two_forms_is_one(earlier: str, later: str) -> None:
    for limits in (POSTS, NAMES):
        assert why(later, earlier, limits) == why(earlier, later, limits) == Rule.NONE


@pytest.mark.parametrize(
    ("earlier", "later", "rule"),
    [
        ("Disk of 256 GB with a cable and a bag", "Disk of 256 TB with a cable and a bag", Rule.OPPOSITE),
        ("Disk of 256GB with a cable and a bag", "Disk of 256TB with a cable and a bag", Rule.NUMBER),
        ("The ferry waits three hours in the harbour", "The ferry waits three days in the harbour", Rule.OPPOSITE),
        ("The bridge opens on March 5, 2024 after all", "The bridge opens on 05/03/2024 after all", Rule.NUMBER),
        ("The bridge opens on March 5, 2024 after all", "The bridge opens on 2024-03-06 after all", Rule.NUMBER),
        ("Council meeting starts at 3 pm in the hall", "Council meeting starts at 03:00 in the hall", Rule.NUMBER),
        ("The firm paid $20 to the fund last year", "The firm paid 20 euros to the fund last year", Rule.NUMBER),
        ("The firm paid $5m to the fund last year", "The firm paid $5bn to the fund last year", Rule.NUMBER),
        ("The well ends at -5m below the old road", "The well ends at -5 million below the old road", Rule.NUMBER),
        ("The 2nd round of the talks begins in the city", "The third round of the talks begins in the city", Rule.NUMBER),
        ("Court upholds the ban on fishing in the lake", "Court overturns the ban on fishing in the lake", Rule.OPPOSITE),
        ("Nice shoes for men, size M, blue with laces", "Nice shoes for men, size L, blue with laces", Rule.OPPOSITE),
        ("Eight batteries AA for cameras and lamps", "Eight batteries AAA for cameras and lamps", Rule.OPPOSITE),
        ("CORRECTED-Fire at the plant near the river", "Fire at the plant near the river", Rule.CORRECTION),
        ("El juez absuelve al alcalde de la ciudad", "El juez condena al alcalde de la ciudad", Rule.OPPOSITE),
        ("Asciende el número de heridos por el incendio", "Baja a 42 el número de heridos por el incendio", Rule.OPPOSITE),
        ("Суд оправдал мэра города по всем статьям", "Суд осудил мэра города по всем статьям", Rule.OPPOSITE),
    ],
)  # fmt: skip
def test_another_thing_in_the_same_place_is_another_one(earlier: str, later: str, rule: Rule) -> None:
    assert why(later, earlier, GUARDS) == why(earlier, later, GUARDS) == rule


@pytest.mark.parametrize(
    ("earlier", "later", "names", "posts"),
    [
        (
            "Wildfire near Athens forces hundreds to leave their homes",
            "Wildfire near Lisbon forces hundreds to leave their homes",
            Rule.IN_ITS_PLACE,
            Rule.IN_ITS_PLACE,
        ),
        (
            "Arsenal beat the league leaders by a goal on a cold night",
            "Everton beat the league leaders by a goal on a cold night",
            Rule.IN_ITS_PLACE,
            Rule.IN_ITS_PLACE,
        ),
        ("Crash on the coast road", "Fatal crash on the coast road", Rule.NONE, Rule.NONE),
        ("Man dies in crash on road", "Man dies in fatal crash on road", Rule.WORD_ADDED, Rule.WORD_ADDED),
        (
            "Пожар возле Казани: сотни людей покинули свои дома ночью",
            "Пожар возле Самары: сотни людей покинули свои дома ночью",
            Rule.IN_ITS_PLACE,
            Rule.IN_ITS_PLACE,
        ),
        ("Flight to Boston", "Flight to Denver", Rule.REPLACED, Rule.REPLACED),
        (
            "All flights of this evening go from the old hall to Boston",
            "All flights of this evening go from the old hall to Denver",
            Rule.IN_ITS_PLACE,
            Rule.IN_ITS_PLACE,
        ),
        (
            "All flights of this evening go from the old hall",
            "All flights of this evening go from the old hall to Denver",
            Rule.NONE,
            Rule.NONE,
        ),
    ],
)
def test_a_name_in_a_template_keeps_apart_unless_it_was_added_at_the_end(
    earlier: str, later: str, names: Rule, posts: Rule
) -> None:
    assert why(later, earlier, NAMES) == names
    assert why(later, earlier, POSTS) == posts


def test_two_names_keep_titles_apart_and_not_posts() -> None:
    earlier = "Anna met the mayor of Boston at the old harbour on a sunny day in spring"
    later = "Clara met the mayor of Denver at the old harbour on a sunny day in spring"
    assert why(later, earlier, NAMES) == Rule.IN_ITS_PLACE
    assert why(later, earlier, POSTS) == Rule.NONE
    assert why(later, earlier, POSTS._replace(name_places=0)) == Rule.NONE
