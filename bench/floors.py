"""Compares shapes of the index at low floors: near recall, cost, and where rows were lost.

    python -m bench.floors [recall] [cost] [misses] [--at 7500] [--only LAYOUT …]

recall: by string truth, differences off, windows over all rows: near recall of weibo, of four other sets, of
    two more in alphabets, and pooled over the four, for each layout and floor
cost: bytes of the index a kept message of a full window; CPU µs a message for fingerprints and judging
    (weibo, 20,000 rows, one thread; medians of rounds in which all layouts take turns)
misses: rows that each layout kept wrongly at the floor `--at`, by set, length and the step that lost them
Data: TWINSIEVE_DATA (tests/accuracy/data_sets.py). Only counts are printed.

other leaders: the sieve dropped the ideal leader itself
long body: a body of over 512 characters is estimated, not compared
length or bag, signature: filters before the comparison
no shared bucket: no band and no table has both
pushed out: a bucket has both, but eight newer entries stood in it
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median
from time import process_time
from typing import Literal

from bench.machine import machine_line
from tests.accuracy.data_sets import ALPHABETS, POOLED, WEIBO, DataSet
from tests.accuracy.quality import NO_GUARD, scheme_of
from twinsieve.pipeline.settings.model import LOW_FLOOR_LAYOUT
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of, read_texts, variant_config
from twinsieve.pipeline.tools.evaluate.scores import Counts, length_class, score
from twinsieve.pipeline.tools.evaluate.truth import Truth, ideal_pass, read_pairs
from twinsieve.stages.contract import (
    SIMILARITY_SCALE,
    STORED_LENGTH,
    BandLayout,
    Batch,
    Bodies,
    ExactConfig,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
    Window,
)
from twinsieve.stages.fingerprint.fingerprinter import Fingerprinter
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.inspect import inspect_pair
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

FLOORS = (8_500, 8_000, 7_500, 7_000)
_ROUNDS = 5
_FULL_WINDOW = 100_000
GRAMS: tuple[Literal["chars", "by_script"], ...] = ("chars", "by_script")


def _layouts(only: list[str]) -> dict[str, BandLayout]:
    """The default, that of profiles with a low floor, and others that were tried."""
    found = {"default": BandLayout(), "low floor": BandLayout(**LOW_FLOOR_LAYOUT.model_dump())}
    shapes = ((24, 4), (28, 3), (38, 3), (48, 3), (36, 2))
    tried = [BandLayout(bands, rows, grams=grams) for grams in GRAMS for bands, rows in shapes]
    tried += [
        BandLayout(24, 4, tables=6, grams="chars"),
        BandLayout(24, 3, tables=6),
        BandLayout(36, 3, tables=6),
        BandLayout(36, 3, weak=4, simhash_from=16),
    ]
    named = {_name(one): one for one in tried}
    found |= {name: layout for name, layout in named.items() if layout not in found.values()}
    return {name: layout for name, layout in found.items() if not only or name in ("default", *only)}


def _name(layout: BandLayout) -> str:
    tables = f"{layout.tables}/{layout.weak} from {layout.simhash_from}"
    return f"{layout.bands} × {layout.rows} {layout.grams}, {tables}"


@dataclass(frozen=True, slots=True)
class Posts:
    """One set: its bodies, made by the rule of the truth, and the truth at each floor."""

    data: DataSet
    bodies: Bodies
    truths: dict[int, Truth]

    @classmethod
    def of(cls, data: DataSet, floors: tuple[int, ...] = FLOORS) -> Posts:
        ids, texts = (column[: data.rows] for column in read_texts(data.texts))
        pairs = read_pairs(data.pairs)
        scheme = scheme_of(data)
        bodies = Scheme(replace(scheme, text=replace(scheme.text, body_rule="letters"))).bodies(texts)
        return cls(data, bodies, {at: ideal_pass(ids, pairs, at) for at in floors})

    def batch(self, layout: BandLayout) -> Batch:
        return batch_of(self.bodies, maker_of(layout).fingerprints(self.bodies))


def maker_of(layout: BandLayout) -> Fingerprinter:
    default = SchemeConfig()
    return Fingerprinter(default.features, layout, default.digest)


def config_of(layout: BandLayout, at: int, rows: int) -> SieveConfig:
    return variant_config(SieveConfig(layout=layout), NO_GUARD, at, rows)


def judged(batch: Batch, layout: BandLayout, at: int) -> Verdicts:
    return BatchSieve(config_of(layout, at, len(batch))).judge(batch)


def near_counts(posts: Posts, batch: Batch, layout: BandLayout, at: int) -> Counts:
    dropped = judged(batch, layout, at).kinds != Kind.UNIQUE
    return score(posts.truths[at], dropped.tolist(), posts.bodies.body_lengths.tolist()).near


def show_recall(_at: int, only: list[str]) -> None:
    sets = [Posts.of(data) for data in (WEIBO, *POOLED, *ALPHABETS)]
    names = [posts.data.name for posts in sets]
    print(
        f"{'layout':32} {'floor':>5} " + " ".join(f"{name:>8}" for name in (*names, "pooled")) + "  near F1:"
    )
    for name, layout in _layouts(only).items():
        batches = [posts.batch(layout) for posts in sets]
        for floor in FLOORS:
            counts = [
                near_counts(posts, batch, layout, floor) for posts, batch in zip(sets, batches, strict=True)
            ]
            counts.append(sum(counts[1 : 1 + len(POOLED)], Counts()))
            recalls = " ".join(f"{count.recall:8.4f}" for count in counts)
            f1 = " ".join(
                f"{name} {count.f1:.4f}" for name, count in zip((*names, "pooled"), counts, strict=True)
            )
            print(f"{name:32} {floor / SIMILARITY_SCALE:5.2f} {recalls}  {f1}", flush=True)


def show_cost(at: int, only: list[str]) -> None:
    posts = Posts.of(WEIBO, ())
    layouts = _layouts(only)
    held = {name: _bytes_a_message(layout) for name, layout in layouts.items()}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in layouts}
    for _ in range(_ROUNDS + 1):
        for name, layout in layouts.items():
            began = process_time()
            batch = posts.batch(layout)
            middle = process_time()
            judged(batch, layout, at)
            seconds[name].append((middle - began, process_time() - middle))
    print(f"weibo, {len(posts.bodies):,} rows at {at / SIMILARITY_SCALE}, {_ROUNDS} rounds")
    columns = ("bytes a message", "more", "fingerprints", "judge", "both / default")
    print(f"{'layout':32} " + " ".join(f"{column:>15}" for column in columns))
    whole = {name: [sum(round_) for round_ in rounds[1:]] for name, rounds in seconds.items()}
    for name, rounds in seconds.items():
        # The first round compiles or loads kernels.
        made, judging = (median(part) / len(posts.bodies) * 1e6 for part in zip(*rounds[1:], strict=True))
        ratio = median(new / old for new, old in zip(whole[name], whole["default"], strict=True))
        more = held[name] - held["default"]
        numbers = f"{held[name]:15.1f} {more:15.1f} {made:15.2f} {judging:15.2f} {ratio:15.3f}"
        print(f"{name:32} {numbers}", flush=True)


def _bytes_a_message(layout: BandLayout) -> float:
    """Of the candidate index alone, as the sieve counts it."""

    def used(candidates: Literal["index", "scan"]) -> int:
        config = NearConfig(window=Window(_FULL_WINDOW), candidates=candidates)
        return BatchSieve(SieveConfig(ExactConfig("none"), config, layout=layout)).stats().bytes_used

    return (used("index") - used("scan")) / _FULL_WINDOW


def lost_by(
    posts: Posts, batch: Batch, config: SieveConfig, verdicts: Verdicts, row: int, leader: int
) -> str:
    """The step that lost a row and its ideal leader."""
    if verdicts.kinds[leader] != Kind.UNIQUE:
        return "other leaders"
    if max(posts.bodies.body_lengths[row], posts.bodies.body_lengths[leader]) > STORED_LENGTH:
        return "long body"
    report = inspect_pair(batch.bodies, batch.fingerprints, config, leader, row)
    if not (report.length_ratio_ok and report.bag_bound_ok):
        return "length or bag"
    if not report.signature_ok:
        return "signature"
    return "pushed out" if report.bands_shared or report.tables_shared else "no shared bucket"


def show_misses(at: int, only: list[str]) -> None:
    for name, layout in _layouts(only).items():
        steps_of_lengths: dict[str, Counter[str]] = {}
        print(f"{name} at {at / SIMILARITY_SCALE}: wrongly kept near rows")
        for data in (WEIBO, *POOLED):
            posts = Posts.of(data, (at,))
            batch, truth = posts.batch(layout), posts.truths[at]
            config = config_of(layout, at, len(batch))
            verdicts = BatchSieve(config).judge(batch)
            steps = Counter[str]()
            for row, (leader, seen) in enumerate(zip(truth.leaders, truth.seen_before, strict=True)):
                if leader < 0 or seen or verdicts.kinds[row] != Kind.UNIQUE:
                    continue
                step = lost_by(posts, batch, config, verdicts, row, leader)
                steps[step] += 1
                length = length_class(int(posts.bodies.body_lengths[row]))
                steps_of_lengths.setdefault(length, Counter())[step] += 1
            print(f"  {data.name:9} {_said(steps)}", flush=True)
        for length in sorted(steps_of_lengths, key=lambda name: int(name.split("-")[0])):
            print(f"  {length:>9} {_said(steps_of_lengths[length])}")


def _said(steps: Counter[str]) -> str:
    parts = ", ".join(f"{count} {step}" for step, count in steps.most_common())
    return f"{steps.total():4}: {parts}" if parts else "   0"


PARTS: dict[str, Callable[[int, list[str]], None]] = {
    "recall": show_recall,
    "cost": show_cost,
    "misses": show_misses,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--at", type=int, default=7_500, help="floor of cost and misses, out of 10,000")
    parser.add_argument("--only", nargs="*", default=[], help="names of layouts; all by default")
    given = parser.parse_args()
    print(machine_line())
    for name in given.parts or PARTS:
        PARTS[name](given.at, given.only)


if __name__ == "__main__":
    main()
