"""Texts made to be slow or to break something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stages.text import twin as text_twin
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

UNITS = [
    "#", "# ", "#\n", "@", "@a", "//@", "//@a", "// ", "//", "/", "http://", "https://a ", "www.", "w", "h",
    "L", " L", " LL",
    "L的", "的微博视频", " 的", "频", " 2京", " 2", "?", "O网页链接", "O", " O中", "RT ",
    "RT", "收起全文", "1,", "1,000",
    "1.", "\u0301", "\u0327\u0301", "\u3099", "ﷺ", "ß", "\ud800", "\x00", "👍", "\u200d", " ", "\n",
    "a", "中", "中\u0301",
    "→", "✓", "a→", "<", ">", "=", "-", "—", "!=", "<-", "->", "<a", "<b>", "C#", "c++", " C", "#a ", "@a ", "RT @",
    "RT @a ", "RT" + " " * 9 + "@", "http://a.b/c ", "a#",
    "✓ ", "C++ ", "<b> ", "甲=", "<=>", "-5", "$", "$ ", "> ", ">=", "-\u200d", "\u200d" * 50 + "-5", "度-", "<-$ ",
]  # fmt: skip

COUNT_READS = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from twinsieve.stages.text import compatibility, normalizer, profiles, keys
from twinsieve.stages.text.rules import TextConfig

class Counted(np.ndarray):
    reads = 0
    def __getitem__(self, at):
        if not isinstance(at, slice):
            Counted.reads += 1
        return super().__getitem__(at)

real_empty = np.empty
def counted_empty(shape, dtype=float):
    made = real_empty(shape, dtype=dtype)
    return made.view(Counted) if made.dtype == np.uint32 else made

real_pack = compatibility.pack
def counted_pack(texts):
    chars, starts = real_pack(texts)
    return chars.view(Counted), starts

compatibility.np.empty = counted_empty
normalizer.pack = compatibility.pack = counted_pack
results = {}
ALL = ("links", "mentions", "tags")
units = json.load(sys.stdin)
for profile, compare in (("microblog", ()), ("plain", ()), ("microblog", ALL), ("plain", ALL)):
    ready = normalizer.Normalizer(TextConfig(profile=profile, compare=compare))
    for unit in units:
        counts = []
        for length in (200, 800):
            Counted.reads = 0
            ready.bodies([(unit * length)[:length]])
            counts.append(Counted.reads)
        results.setdefault(unit, []).append(counts)
json.dump(results, sys.stdout)
"""


def test_reads_grow_in_proportion_to_the_text(root: Path) -> None:
    """Runs the kernels as plain Python and counts how often they read a character."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT_READS],
        input=json.dumps(UNITS),
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert len(results) == len(set(UNITS))
    for unit, profiles in results.items():
        for short, long in profiles:
            assert 200 <= short <= 200 * 90, unit
            assert long <= 5 * short, unit


def test_long_lines_of_one_unit_get_a_body() -> None:
    texts = [(unit * 200_000)[:200_000] for unit in UNITS]
    bodies = Normalizer(TextConfig()).bodies(texts)
    assert len(bodies) == len(texts)
    assert bodies.starts[-1] == len(bodies.chars) == len(bodies.word_starts)
    assert (bodies.own_lengths <= bodies.body_lengths).all()
    lengths = dict(zip(UNITS, bodies.body_lengths.tolist(), strict=True))
    assert [lengths[unit] for unit in ("a", "中", "#", "\u0301", "👍")] == [200_000, 200_000, 0, 0, 0]


@pytest.mark.parametrize("unit", UNITS)
def test_three_hundred_of_one_unit_equal_the_plain_twin(unit: str) -> None:
    texts = ["加油武汉加油 " + unit * 300, unit * 300 + " 加油武汉加油", unit * 300, f"甲{unit * 300}5"]
    bodies = Normalizer(TextConfig()).bodies(texts)
    for row, text in enumerate(texts):
        expected = text_twin.row(text, "microblog", "product")
        assert bodies.text(row) == expected.key
        assert bodies.own_lengths[row] == expected.own_length


def test_every_code_point_alone_gets_a_key() -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    bodies = Normalizer(TextConfig()).bodies(every)
    assert len(bodies) == len(every)
    assert (bodies.starts[1:] > bodies.starts[:-1]).all()
    assert bodies.exact_only.sum() >= len(every) - 10


def test_5_000_equal_tags_on_unlike_posts_leave_the_posts() -> None:
    tags = "#武汉加油#" * 5_000
    bodies = Normalizer(TextConfig()).bodies([tags + "今天天气真不错啊", tags + "明天一定会下雨吗", tags])
    assert [bodies.text(row) for row in range(3)] == ["今天天气真不错啊", "明天一定会下雨吗", tags]
