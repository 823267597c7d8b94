"""Recall and false drops on the generated stream, at sizes for which no real truth exists.

    python -m bench.quality_generated [--posts 300000] [--seed 1] [--repeats 0.28]

Every generated post knows what it repeats. Repeats count as to be dropped where they are at least .85 like
their source, or like what it was dropped for (by the plain Indel similarity), and no guard kept them apart.
Fresh posts that are dropped happened to come out alike: a low share says that the words are rich enough.
"""

from __future__ import annotations

import argparse
from collections import Counter

from rapidfuzz.distance import Indel

from bench.machine import machine_line
from twinsieve.pipeline.evaluate.evaluate import APART, batch_of
from twinsieve.pipeline.generate.stream import Origin, generate_columns
from twinsieve.stages.contract import SIMILARITY_SCALE, ExactConfig, Kind, NearConfig, SieveConfig, Window
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig
from twinsieve.stages.judge.sieve import Sieve

DUPLICATES = (Origin.COPY, Origin.DRESSED, Origin.EDIT, Origin.CHAIN)


def script(body: str) -> str:
    """Han, kana, or letters with blanks between words: what the bands of a body are made of."""
    if any("\u3040" <= char < "\u3100" for char in body[:40]):
        return "kana"
    han = sum("\u4e00" <= char < "\ua000" for char in body[:40])
    return "han" if han * 2 > len(body[:40]) else "letters"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--posts", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeats", type=float, default=0.28)
    arguments = parser.parse_args()
    print(machine_line())
    count = arguments.posts
    config = SieveConfig(near=NearConfig(window=Window(count)), exact=ExactConfig(window=Window(count)))
    scheme, sieve = Scheme(SchemeConfig()), Sieve(config)
    kept: dict[int, str] = {}
    leader_of: dict[int, int] = {}
    found: Counter[tuple[Origin, str]] = Counter()
    wanted: Counter[tuple[Origin, str]] = Counter()
    fresh = dropped_fresh = guarded = 0
    for posts in generate_columns(count, arguments.seed, repeats=arguments.repeats):
        batch = batch_of(*scheme.read(posts.texts))
        batch.positions += posts.first
        verdicts = sieve.judge(batch)
        for row, (kind, origin, source) in enumerate(
            zip(verdicts.kinds.tolist(), posts.origins.tolist(), posts.sources.tolist(), strict=True)
        ):
            number, body = posts.first + row, batch.bodies.text(row)
            if kind == Kind.UNIQUE:
                kept[number] = body
            else:
                leader_of[number] = int(verdicts.leaders[row])
            if origin == Origin.FRESH:
                fresh += 1
                dropped_fresh += kind != Kind.UNIQUE
            elif origin in DUPLICATES:
                text = kept.get(source) or kept.get(leader_of.get(source, -1), "")
                if Indel.normalized_similarity(body, text) * SIMILARITY_SCALE < config.near.similarity:
                    continue
                if kind == Kind.UNIQUE and int(verdicts.flags[row]) & APART:
                    guarded += 1
                    continue
                wanted[Origin(origin), script(body)] += 1
                found[Origin(origin), script(body)] += kind != Kind.UNIQUE
    print(f"{count:,} generated posts (seed {arguments.seed}, repeats {arguments.repeats}), window {count:,}")
    print(f"kept: {len(kept):,}")
    print(f"fresh posts dropped: {dropped_fresh:,} of {fresh:,} ({dropped_fresh / max(fresh, 1):.3%})")
    print(f"repeats kept apart by a guard: {guarded:,}")
    for (origin, name), number in sorted(wanted.items()):
        hits = found[origin, name]
        print(f"{origin.name.lower():8} {name:8} recall {hits / number:.4f} ({number:,} to drop)")


if __name__ == "__main__":
    main()
