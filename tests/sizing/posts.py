"""Generated posts as Kafka brings them, for what the cost model says and for what is measured beside it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.generate.stream import generate_columns
from twinsieve.stages.contract import BandLayout, Batch
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig


def batches(layout: BandLayout, joined: int) -> Iterator[Batch]:
    """Batches of generated posts without end, with ids, times and positions.

    joined: how many posts make one text
    """
    scheme, random, first = Scheme(SchemeConfig(layout=layout)), np.random.default_rng(1), 0
    for posts in generate_columns(1_000_000_000, seed=1, rate=5_000):
        count = len(posts) // joined
        texts = ["\n".join(posts.texts[row * joined : (row + 1) * joined]) for row in range(count)]
        batch = batch_of(*scheme.read(texts))
        batch.times_ms[:] = posts.created_ms[: count * joined : joined]
        batch.ids[:] = random.integers(1, 1 << 63, count)
        batch.positions[:] = (random.integers(0, 8, count) << 40) + np.arange(first, first + count) // 8
        first += count
        yield batch
