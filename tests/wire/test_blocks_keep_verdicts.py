"""The wire changes no verdict: batches that went through blocks are judged like those that did not."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from tests.twins import batch_of
from twinsieve.pipeline.wire.block import Block, BlockFlag, decode_block, encode_block, split_block
from twinsieve.pipeline.wire.frame import scheme_hash
from twinsieve.stages.contract import Batch, ExactConfig, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

CONFIG = SieveConfig(
    exact=ExactConfig(window=Window(2_000)), near=NearConfig(window=Window(500)), scheme_id="test"
)


def posts() -> list[str]:
    """Short and long posts, edits of earlier ones, digits alone, and long digit runs that share their
    head."""
    rng = random.Random(7)
    found: list[str] = ["8" * 700, "8" * 800, "8" * 700]
    for _ in range(400):
        length = rng.choice([3, 20, 60, 140, 511, 513, 900])
        if found and rng.random() < 0.5:
            text = list(rng.choice(found))
            text[rng.randrange(len(text))] = chr(rng.randint(0x4E00, 0x4E40))
            found.append("".join(text))
        else:
            found.append("".join(chr(rng.randint(0x4E00, 0x5E00)) for _ in range(length)))
    return found


def arrived(rows: Batch, first: int) -> Batch:
    """The rows with what the index adds: positions and arrival."""
    n = len(rows)
    return replace(rows, positions=np.arange(first, first + n), arrivals_ms=np.full(n, 1_600_000_000_000))


def test_verdicts_are_the_same_on_either_side_of_the_wire() -> None:
    texts = posts()
    n = len(texts)
    bodies, prints = Scheme(SchemeConfig()).read(texts)
    times = np.arange(n, dtype=np.int64) * 1_000 + 1_599_999_000_000
    rows = batch_of(bodies, prints, times=times)
    direct = BatchSieve(CONFIG).judge(arrived(rows, 0))
    whole = Block(
        bytes(16), 0, 0, 1, BlockFlag.NONE, 0, n, 0, 0,
        offsets=np.arange(n), kinds=np.zeros(n, np.uint8), batch=rows,
    )  # fmt: skip
    sieve, at = BatchSieve(CONFIG), 0
    scheme = scheme_hash("test")
    parts = split_block(whole, 20_000)
    assert len(parts) > 5
    for part in parts:
        read = decode_block(encode_block(part, scheme), scheme, "here").batch
        verdicts = sieve.judge(arrived(read, at))
        here = slice(at, at + len(read))
        assert verdicts.kinds.tolist() == direct.kinds[here].tolist()
        assert verdicts.leaders.tolist() == direct.leaders[here].tolist()
        assert verdicts.matched.tolist() == direct.matched[here].tolist()
        at += len(read)
    assert at == n
    assert len(set(direct.kinds.tolist())) == 3


def test_rows_taken_by_a_mask_are_those_rows() -> None:
    texts = posts()[:60]
    n = len(texts)
    bodies, prints = Scheme(SchemeConfig()).read(texts)
    rows = batch_of(bodies, prints, times=np.arange(n), ids=np.arange(n))
    wanted = np.arange(n) % 3 == 1
    taken = rows.take(wanted)
    again_bodies, again = Scheme(SchemeConfig()).read(
        [text for text, want in zip(texts, wanted, strict=True) if want]
    )
    assert taken.times_ms.tolist() == np.arange(n)[wanted].tolist()
    assert [taken.bodies.text(row) for row in range(len(taken))] == [
        again_bodies.text(row) for row in range(len(again_bodies))
    ]
    for name in (
        "digests",
        "simhashes",
        "weak_bits",
        "band_keys",
        "bags",
        "signatures",
        "sketches",
        "sketch_rows",
        "tallies",
    ):
        assert np.array_equal(getattr(taken.fingerprints, name), getattr(again, name)), name
