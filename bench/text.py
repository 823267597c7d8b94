"""Time of the text stage in µs a message, by step, on real posts: `python -m bench.text [--rows N]`.

Prints machine, input, and the best of several runs of every step; beside them the reference that made the
truth files, which is regular expressions and one message at a time. Bodies by the letters rule are compared
with it while it is timed. The first run is reported apart: it compiles, or loads what an earlier process
compiled.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from typing import Any

import orjson

from bench.machine import best_seconds, machine_line
from tests.accuracy.data_sets import ARTICLES, POOLED, WEIBO, DataSet, truth_body
from twinsieve.stages.text import normalizer, tables
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

STEPS = {"pack": "code points", "nfkc": "NFKC", "apply_profile": "profile", "write_keys": "keys"}
RUNS = 7
OTHER_TEXTS = {
    "English": "The quick brown fox can't jump over 13 lazy dogs, http://t.co/abc @someone #tag",
    "Hindi": "नई दिल्ली में आज मौसम बहुत अच्छा है और लोग पार्क में घूमने के लिए निकले हैं",
    "Arabic with vowel signs": "ذَهَبَ الْوَلَدُ إِلَى الْمَدْرَسَةِ فِي الصَّبَاحِ الْبَاكِرِ مَعَ أَصْدِقَائِهِ",
    "Vietnamese, decomposed": unicodedata.normalize(
        "NFD", "Hôm nay thời tiết ở Hà Nội rất đẹp và tôi muốn đi chơi"
    ),
    "Korean": "오늘 날씨가 정말 좋아서 친구들과 함께 한강 공원에 다녀왔습니다 ㅋㅋㅋ",
    "Japanese": "今日はとても天気がいいので、友達と公園でサッカーをしました！ﾀﾉｼｶｯﾀ",
}


def step_seconds(ready: Normalizer, texts: list[str]) -> tuple[dict[str, float], float]:
    """Time of each step within the best whole run, and that run's time."""
    spent: Counter[str] = Counter()
    originals = {name: getattr(normalizer, name) for name in STEPS}

    def timed(name: str) -> Callable[..., Any]:
        def run(*args: object) -> Any:
            start = time.perf_counter()
            result = originals[name](*args)
            spent[name] += time.perf_counter() - start  # type: ignore[assignment]
            return result

        return run

    best: tuple[dict[str, float], float] = ({}, float("inf"))
    for name in STEPS:
        setattr(normalizer, name, timed(name))
    try:
        for _ in range(RUNS):
            spent.clear()
            start = time.perf_counter()
            ready.bodies(texts)
            whole = time.perf_counter() - start
            if whole < best[1]:
                best = ({name: float(spent[name]) for name in STEPS}, whole)
    finally:
        for name in STEPS:
            setattr(normalizer, name, originals[name])
    return best


def read_texts(data: DataSet, rows: int) -> list[str]:
    """Texts of a data set's first rows."""
    with gzip.open(data.texts) as lines:
        return [orjson.loads(line)["text"] for line, _ in zip(lines, range(rows), strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    rows = parser.parse_args().rows
    texts = read_texts(WEIBO, rows)
    print(machine_line())
    print(
        f"input: weibo_dev, first {len(texts)} rows, "
        f"mean {sum(map(len, texts)) / len(texts):.1f} characters, one thread"
    )
    start = time.perf_counter()
    tables.tables()
    print(f"character tables: {time.perf_counter() - start:.2f} s, once a process")
    start = time.perf_counter()
    product = Normalizer(TextConfig())
    product.bodies(texts[:10])
    print(f"first run, with compiling or loading kernels: {time.perf_counter() - start:.2f} s")

    def show(name: str, seconds: float, count: int) -> None:
        print(f"{name:44} {seconds / count * 1e6:8.3f} µs a message")

    steps, whole = step_seconds(product, texts)
    for name, seconds in steps.items():
        show(STEPS[name], seconds, len(texts))
    show("other: cutting into chunks, joining columns", whole - sum(steps.values()), len(texts))
    show("microblog, product rule, all", whole, len(texts))
    letters = Normalizer(TextConfig(body_rule="letters"))
    bodies = letters.bodies(texts)
    show("microblog, letters rule, all", best_seconds(lambda: letters.bodies(texts)), len(texts))
    for size in (1, 10, 100, 1_000):
        batches = [texts[i : i + size] for i in range(0, min(len(texts), 2_000 * size), size)]
        seconds = best_seconds(lambda batches=batches: [product.bodies(b) for b in batches], 3)  # type: ignore[misc]
        show(f"microblog, product rule, batches of {size}", seconds, sum(map(len, batches)))
    body = truth_body("microblog")
    expected: list[str] = []
    show(
        "reference: expressions, plain Python",
        best_seconds(lambda: expected.extend(map(body, texts)), 1),
        len(texts),
    )
    wrong = sum(bodies.text(row) != (text or texts[row]) for row, text in enumerate(expected))
    print(f"rows where the letters rule differs from the reference: {wrong} of {len(texts)}")
    for data in (*POOLED, ARTICLES):
        others = read_texts(data, rows)
        ready = Normalizer(TextConfig(profile=data.profile))
        show(f"{data.name}_dev, {data.profile}", best_seconds(lambda: ready.bodies(others)), len(others))  # noqa: B023
    for name, text in OTHER_TEXTS.items():
        many = [text] * 5_000
        show(f"{name}, {len(text)} characters", best_seconds(lambda: product.bodies(many), 3), len(many))  # noqa: B023
    for name, config in {
        "three drop patterns": TextConfig(drop=(r"【广告】", r"(?i)\bad:\s*\S+", r"\d{11}")),
        "variants folded to simplified": TextConfig(fold_variants="simplified"),
    }.items():
        ready = Normalizer(config)
        show(name, best_seconds(lambda: ready.bodies(texts), 2), len(texts))  # noqa: B023
    if wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
