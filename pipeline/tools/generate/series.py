"""Generates posts that are similar but not duplicates: reports with new numbers, answers to the same poll."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from twinsieve.pipeline.tools.generate.grammar import Grammar

REPORTS = 400
POLLS = 400
"""Number of different reports and polls. Posts of the same report or poll are about 30,000 posts apart."""


class Series:
    """Reports whose numbers change with every post, and polls that many people answer.

    chinese: grammar for the subjects; random: generator that chooses them
    """

    def __init__(self, chinese: Grammar, random: np.random.Generator) -> None:
        texts = chinese.texts(np.full(REPORTS + POLLS, 3), random)
        names = chinese.slots["PERSON"]
        subjects = [text.rstrip("，。！？；…~") for text in texts]
        self._reports = [
            f"【{subjects[i]}】今日新增{{new}}例，累计{{total}}例，另有{{open}}人等候" for i in range(REPORTS)
        ]
        self._totals = (50 + random.random(REPORTS) * 900).astype(np.int64).tolist()
        self._steps = [0] * REPORTS
        self._polls = [
            f"我参与了@{names[i % len(names)]}发起的投票【{subjects[REPORTS + i]}？】，"
            "我投给了“{answer}”这个选项，你也快来表态吧~"
            for i in range(POLLS)
        ]

    def report(self, draws: Sequence[float]) -> str:
        """The next report on one subject; all its numbers differ from those of the previous report.

        draws: random numbers in [0, 1); draws[2] chooses the subject
        """
        number = int(draws[2] * REPORTS)
        self._steps[number] += 1
        new = 2 + (self._steps[number] * 7 + number) % 89
        self._totals[number] += new
        return self._reports[number].format(
            new=new, total=self._totals[number], open=100 + (self._steps[number] * 13 + number) % 887
        )

    def poll(self, own: str, draws: Sequence[float]) -> str:
        """A post with own words before the text of a poll; many posts share that text.

        own: the own words; draws: random numbers in [0, 1) that choose the poll and the answer
        """
        poll = self._polls[int(draws[2] * POLLS)]
        return f"{own[:40]} {poll.format(answer='支持' if draws[3] < 0.5 else '反对')}"
