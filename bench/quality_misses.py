"""Why the sieve missed what it missed: each wrongly kept row with its ideal leader, and what lost the pair.

    python -m bench.quality_misses [weibo|sms|tweets|titles|comments …] [--at 8500]

no common band: no MinHash band key in common, so only other bands would find the pair
lost in a bucket: a key in common, but the entry was pushed out of its bucket or filtered by its signature
long body: a body of over 512 characters is estimated, not compared
other leaders: the sieve dropped the ideal leader itself, rightly or not
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace

import numpy as np

from bench.machine import machine_line
from tests.accuracy.data_sets import POOLED, WEIBO, DataSet
from tests.accuracy.quality import NO_GUARD, scheme_of
from twinsieve.pipeline.evaluate.evaluate import batch_of, read_texts, variant_config
from twinsieve.pipeline.evaluate.truth import ideal_pass, read_pairs
from twinsieve.stages.contract import SIMILARITY_SCALE, STORED_LENGTH, Batch, Kind, SieveConfig, Verdicts
from twinsieve.stages.judge.scheme import Scheme
from twinsieve.stages.judge.sieve import Sieve

SETS = {data.name: data for data in (WEIBO, *POOLED)}


def common_bands(batch: Batch, a: int, b: int) -> int:
    """MinHash bands in which two rows have the same key."""
    keys = batch.fingerprints.band_keys
    return int(np.count_nonzero(keys[a] == keys[b]))


def why(batch: Batch, verdicts: Verdicts, row: int, leader: int) -> str:
    """The step that lost a pair."""
    if verdicts.kinds[leader] != Kind.UNIQUE:
        return "other leaders"
    if max(batch.bodies.body_lengths[row], batch.bodies.body_lengths[leader]) > STORED_LENGTH:
        return "long body"
    bands = common_bands(batch, row, leader)
    return "lost in a bucket" if bands else "no common band"


def show(data: DataSet, at: int) -> None:
    ids, texts = (column[: data.rows] for column in read_texts(data.texts))
    truth = ideal_pass(ids, read_pairs(data.pairs), at)
    scheme = scheme_of(data)
    batch = batch_of(*Scheme(replace(scheme, text=replace(scheme.text, body_rule="letters"))).read(texts))
    verdicts = Sieve(variant_config(SieveConfig(), NO_GUARD, at, len(ids))).judge(batch)
    missed = [
        row for row, leader in enumerate(truth.leaders) if leader >= 0 and verdicts.kinds[row] == Kind.UNIQUE
    ]
    reasons = Counter[str]()
    print(f"{data.name}_dev, first {len(ids):,} rows at {at / SIMILARITY_SCALE}: {len(missed)} wrongly kept")
    bands = batch.fingerprints.band_keys.shape[1]
    for row in missed:
        leader = truth.leaders[row]
        reason = why(batch, verdicts, row, leader)
        reasons[reason] += 1
        kept_between = int(np.count_nonzero(verdicts.kinds[leader:row] == Kind.UNIQUE))
        similarity = truth.similarities[row] / SIMILARITY_SCALE
        print(
            f"  {reason}: {ids[row]} {ids[leader]} similarity {similarity:.4f}, "
            f"{common_bands(batch, row, leader)} of {bands} bands in common, {kept_between:,} kept in between"
        )
        print(f"    {batch.bodies.text(row)!r}\n    {batch.bodies.text(leader)!r}")
    print(f"  in all: {dict(reasons)}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*", help=f"of {', '.join(SETS)}; all by default")
    parser.add_argument("--at", type=int, default=8_500)
    arguments = parser.parse_args()
    print(machine_line())
    for name in arguments.sets or SETS:
        show(SETS[name], arguments.at)


if __name__ == "__main__":
    main()
