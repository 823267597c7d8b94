"""A pair of messages is measured by itself, whatever other pairs there are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.tune.alone import similarities_of
from twinsieve.stages.contract import NearConfig, SieveConfig
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

TEXTS = [
    "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳",
    "甲乙丙丁戊己庚辛壬癸子丑寅卯辰午",
    "甲乙丙丁戊己庚辛壬癸子丑寅卯未午",
    "甲乙丙丁戊己庚辛壬癸子丑寅申未午",
    "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳",
    "一个普通的句子放在这里没有别的意思",
]
BODIES, PRINTS = Scheme(SchemeConfig()).read(TEXTS)
PAIRS = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1])


@given(st.lists(PAIRS, max_size=12), st.integers(1, 5))
def test_pairs_do_not_meet(pairs: list[tuple[int, int]], cut: int) -> None:
    whole = batch_of(BODIES, PRINTS)
    whole.positions[:] += 10
    batches = [whole.take(np.arange(6) < cut), whole.take(np.arange(6) >= cut)]
    config = SieveConfig(near=NearConfig(similarity=7_000))
    later = np.array([later + 10 for later, _ in pairs], np.int64)
    earlier = np.array([earlier + 10 for _, earlier in pairs], np.int64)
    expected = []
    for one, other in pairs:
        alike = int(fuzz.ratio(BODIES.text(one), BODIES.text(other)) * 100 + 1e-6)
        expected.append(alike if alike >= 7_000 else -1)
    assert similarities_of(batches, later, earlier, config).tolist() == expected
