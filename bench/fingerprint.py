"""Time of every fingerprint in µs a message, on real posts: `python -m bench.fingerprint [--rows N]`.

Prints machine, input and, for each kernel, the best of several runs over the whole batch. The first run
is reported apart: it compiles, or loads what an earlier process compiled.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from bench.machine import best_seconds, machine_line
from tests.accuracy.data_sets import data_dir
from twinsieve.stages.contract import BandLayout, Bodies
from twinsieve.stages.fingerprint import fingerprinter
from twinsieve.stages.fingerprint.digest import DigestConfig, digests
from twinsieve.stages.fingerprint.features import FeatureConfig
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.text.normalizer import Normalizer
from twinsieve.stages.text.rules import TextConfig

KERNELS = ("digests", "fill_simhashes", "fill_bands", "fill_bags", "fill_sketches")
KEYWORD_ROWS = 2_000
RUNS = 5
OTHERS = {
    "simhash, weights none": FeatureConfig(weights="none"),
    "simhash, weights position": FeatureConfig(weights="position"),
    "simhash, weights tfidf": FeatureConfig(
        weights="tfidf", idf=tuple((chr(0x4E00 + i), 2.0) for i in range(5000))
    ),
    "simhash, shingles of 4": FeatureConfig("shingles", width=4),
}
NEWS = {
    "keywords": FeatureConfig("keywords", weights="tfidf"),
    "keywords, parts of speech": FeatureConfig(
        "keywords", weights="tfidf", parts_of_speech=("n", "nr", "ns", "v")
    ),
}


def kernel_seconds(maker: Fingerprinter, bodies: Bodies) -> dict[str, float]:
    """Least time of each kernel over the whole batch, called as `fingerprints` calls it."""
    best = dict.fromkeys(KERNELS, float("inf"))
    originals = {name: getattr(fingerprinter, name) for name in KERNELS}

    def timed(name: str) -> Callable[..., Any]:
        def run(*args: object) -> Any:
            start = time.perf_counter()
            result = originals[name](*args)
            best[name] = min(best[name], time.perf_counter() - start)
            return result

        return run

    for name in KERNELS:
        setattr(fingerprinter, name, timed(name))
    try:
        for _ in range(RUNS):
            maker.fingerprints(bodies)
    finally:
        for name in KERNELS:
            setattr(fingerprinter, name, originals[name])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    rows = parser.parse_args().rows
    with gzip.open(data_dir() / "weibo_dev.jsonl.gz") as lines:
        texts = [orjson.loads(line)["text"] for line, _ in zip(lines, range(rows), strict=False)]
    normalizer = Normalizer(TextConfig())
    bodies = normalizer.bodies(texts)
    near = ~bodies.exact_only
    print(machine_line())
    print(
        f"input: weibo_dev, first {len(texts)} rows, {int(near.sum())} of the near stage, "
        f"mean body of those {np.mean(bodies.body_lengths[near]):.1f} characters, one thread"
    )
    layout = BandLayout()
    maker = Fingerprinter(FeatureConfig(), layout, DigestConfig(seed=1))
    start = time.perf_counter()
    maker.fingerprints(normalizer.bodies(texts[:10]))
    print(f"first run, with compiling or loading kernels: {time.perf_counter() - start:.2f} s")

    def show(name: str, seconds: float, count: int) -> None:
        print(f"{name:32} {seconds / count * 1e6:8.3f} µs a message")

    for name, seconds in kernel_seconds(maker, bodies).items():
        show(name, seconds, len(texts))
    show("all fingerprints", best_seconds(lambda: maker.fingerprints(bodies)), len(texts))
    blake = DigestConfig("blake2b", 1)
    show("digests, blake2b", best_seconds(lambda: digests(blake, bodies)), len(texts))
    for name, features in OTHERS.items():
        other = Fingerprinter(features, layout, DigestConfig(seed=1))
        show(name, kernel_seconds(other, bodies)["fill_simhashes"], len(texts))
    few = normalizer.bodies(texts[:KEYWORD_ROWS])
    for name, features in NEWS.items():
        news = Fingerprinter(features, layout, DigestConfig(seed=1))
        start = time.perf_counter()
        news.fingerprints(few)
        print(f"{name}: dictionary and first {KEYWORD_ROWS} rows {time.perf_counter() - start:.2f} s")
        show(name, best_seconds(lambda news=news: news.fingerprints(few), 2), KEYWORD_ROWS)  # type: ignore[misc]


if __name__ == "__main__":
    main()
