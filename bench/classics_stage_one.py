"""Stage one of the published experiment on raw texts: `python -m bench.classics_stage_one [--rows N]`.

Prints machine, input and mean seconds of a Python set of the same texts, of the public `Sieve` with a Bloom
filter and of one with a trie, and how many times the set's time each took. The texts are the exact keys as
they are (`exact.fields: [text]`), and the near stage is off. Beside them stand the published times of the
paper's own Bloom filter and trie. The paper calls its 1 % the share of repeats in the text and the share of
unique texts in the figure, so both are run. Fails if a trie keeps other texts than the set does.

The three take turns, so that whatever else the machine does meets them alike. The first run of the set also
computes the hashes of the texts, which Python then remembers; the mean leaves it out, as it does the first
run of each sieve, which loads kernels.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from statistics import fmean
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from bench.machine import machine_line
from twinsieve import Sieve

PUBLISHED_MS = {"bloom": 3_526.8, "trie": 14_429.8}
"""Of 2.5 million texts, mean of 5 runs, on the paper's machine."""

SHORTEST, LONGEST = 20, 140
SHARES = {"1 % repeats": 0.99, "1 % unique": 0.01}
"""Share of the rows whose text did not stand in an earlier row."""

_POOL = 1 << 22
_LATIN = np.frombuffer(b"etaoinshrdlucmfwypvbgkqjxz     ", np.uint8).astype(np.uint32)
_HAN = np.arange(0x4E00, 0x4E00 + 3_000, dtype=np.uint32)


def texts_of(rows: int, unique: float, seed: int) -> list[str]:
    """Texts of 20 to 140 characters, half of Latin letters and half of Han; a repeat has its own object.

    unique: share of the rows whose text did not stand in an earlier row
    """
    rng = np.random.default_rng(seed)
    pools = [_text(rng.choice(letters, _POOL)) for letters in (_LATIN, _HAN)]
    distinct = max(1, round(rows * unique))
    lengths = rng.integers(SHORTEST, LONGEST + 1, distinct).tolist()
    # Two cuts may overlap, but none of the same place and length is taken twice.
    places = rng.permutation(_POOL - LONGEST)[:distinct].tolist()
    texts = [
        pools[number & 1][place : place + length]
        for number, (place, length) in enumerate(zip(places, lengths, strict=True))
    ]
    first = np.sort(rng.permutation(np.arange(1, rows))[: distinct - 1])
    is_new = np.zeros(rows, np.bool_)
    is_new[first] = True
    is_new[0] = True
    seen = np.cumsum(is_new)
    sources = np.where(is_new, seen - 1, (rng.random(rows) * seen).astype(np.int64))
    return [
        texts[source] if new else texts[source][:1] + texts[source][1:]
        for source, new in zip(sources.tolist(), is_new.tolist(), strict=True)
    ]


def _text(codes: NDArray[np.uint32]) -> str:
    return codes.astype("<u4").tobytes().decode("utf-32-le")


def by_set(texts: Sequence[str]) -> int:
    """Number of different texts, found with a Python set."""
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
    return len(seen)


def by_sieve(texts: Sequence[str], method: str) -> int:
    """Number of texts that a new sieve keeps."""
    sieve = Sieve(settings={"exact.fields": ["text"], "exact.method": method, "near.method": "none"})
    return int(np.count_nonzero(sieve.judge(texts).kept))


def measure(texts: Sequence[str], times: int) -> dict[str, tuple[float, int]]:
    """By name: mean seconds of that many runs, and the number of texts kept."""
    ways: dict[str, Callable[[], int]] = {
        "Python set": lambda: by_set(texts),
        "bloom": lambda: by_sieve(texts, "bloom"),
        "trie": lambda: by_sieve(texts, "trie"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    kept = {}
    for _ in range(times + 1):
        for name, way in ways.items():
            start = perf_counter()
            kept[name] = way()
            seconds[name].append(perf_counter() - start)
    return {name: (fmean(runs[1:]), kept[name]) for name, runs in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_500_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(machine_line())
    for name, unique in SHARES.items():
        texts = texts_of(given.rows, unique, given.seed)
        characters = fmean(map(len, texts))
        print(f"input: {given.rows:,} texts, {name}, mean {characters:.1f} characters, seed {given.seed}")
        print(f"  mean of {given.times} runs  seconds  of the set  texts kept  published, 2,500,000 texts")
        measured = measure(texts, given.times)
        base, distinct = measured["Python set"]
        for way, (seconds, kept) in measured.items():
            published = f"{PUBLISHED_MS[way] / 1_000:.4f} s" if way in PUBLISHED_MS else ""
            print(f"  {way:14} {seconds:8.3f} {seconds / base:9.2f} × {kept:11,}  {published}")
        if measured["trie"][1] != distinct:
            raise SystemExit("the trie kept other texts than the set")


if __name__ == "__main__":
    main()
