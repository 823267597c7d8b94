"""How often the near stage finds an English original, by the number of kept messages behind it.

    python -m bench.recall_by_age [--window 1000000] [--at 8500] [--layout BANDSxROWS[xTABLES]-GRAMS …]

Input: made-up sentences of 40 to 160 characters, a chain of word pairs as they follow each other in the
docstrings of this Python's standard library; words are as frequent as there. Copies with one edit (a letter,
a word more, less or exchanged) or more (--edits) come when the given number of messages was kept behind the
original, up to the end of the window. Only copies that are at least `--at` alike count. Differences off.
Prints recall by age, and the CPU µs a message.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
from rapidfuzz.distance import Indel

from bench.machine import machine_line
from tests.accuracy.quality import NO_GUARD
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of, variant_config
from twinsieve.stages.contract import SIMILARITY_SCALE, BandLayout, Kind, SieveConfig
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, TextConfig

_AGES = (0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99)
"""Ages of the originals, as shares of the window."""
_COPIES = 20_000
_BATCH = 2000
_LONGEST_WORD = 15


def chain() -> dict[str, list[str]]:
    """For each word of the docstrings the words that follow it, as often as they do; "" begins and ends."""
    follows = defaultdict[str, list[str]](list)
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for sentence in re.split(r"[.:;]\s", ast.get_docstring(node) or ""):
                    words = [
                        word for word in re.findall(r"[a-z]+", sentence.lower()) if len(word) <= _LONGEST_WORD
                    ]
                    for one, then in zip(["", *words], [*words, ""], strict=True):
                        follows[one].append(then)
    return dict(follows)


def sentences(rng: random.Random) -> Iterator[str]:
    """Sentences without end, each of 40 to 160 characters."""
    follows = chain()
    while True:
        wanted, length, words, word = rng.randint(40, 160), 0, [], ""
        while length < wanted:
            word = rng.choice(follows.get(word) or follows[""])
            if word:
                words.append(word)
                length += len(word) + 1
        yield " ".join(words)


def edited(text: str, most: int, rng: random.Random) -> str:
    """The sentence with one to `most` small edits."""
    words = text.split()
    for _ in range(rng.randint(1, most)):
        place = rng.randrange(len(words))
        kind = rng.randrange(4)
        if kind == 0:
            letter = rng.randrange(len(words[place]))
            words[place] = words[place][:letter] + rng.choice("aeinrst") + words[place][letter + 1 :]
        elif kind == 1:
            words.insert(place, rng.choice(words))
        elif kind == 2 and len(words) > 1:
            words.pop(place)
        else:
            words[place] = rng.choice(words)
    return " ".join(words)


def measure(layout: BandLayout, window: int, at: int, edits: int) -> None:
    """Print the line of one layout."""
    rng = random.Random(1)
    source = sentences(rng)
    scheme = Scheme(SchemeConfig(text=TextConfig(profile="plain"), layout=layout))
    sieve = BatchSieve(variant_config(SieveConfig(layout=layout), NO_GUARD, at, window))
    asked = rng.sample(range(window, 2 * window), _COPIES)
    due = {row: int(rng.choice(_AGES) * window) for row in asked}
    kept: dict[int, str] = {}
    wanted = {row - age for row, age in due.items()}
    found, all_ = defaultdict[int, int](int), defaultdict[int, int](int)
    seconds = 0.0
    for first in range(0, 2 * window, _BATCH):
        texts, ages = [], []
        for row in range(first, first + _BATCH):
            original = kept.get(row - due[row]) if row in due else None
            text = edited(original, edits, rng) if original else next(source)
            if row in wanted:
                kept[row] = text
            alike = (
                original is not None
                and Indel.normalized_similarity(original.replace(" ", ""), text.replace(" ", ""))
                * SIMILARITY_SCALE
                >= at
            )
            ages.append(due[row] if alike else 0)
            texts.append(text)
        began = process_time()
        verdicts = sieve.judge(batch_of(*scheme.read(texts)))
        seconds += process_time() - began
        for row in np.flatnonzero(ages).tolist():
            all_[ages[row]] += 1
            found[ages[row]] += verdicts.kinds[row] != Kind.UNIQUE
    recalls = " ".join(f"{found[age] / all_[age]:8.4f}" for age in sorted(all_))
    name = f"{layout.bands}x{layout.rows}x{layout.tables}-{layout.grams}"
    micros = seconds / 2 / window * 1e6
    print(f"{name:16} {recalls} {found_share(found, all_):8.4f} {micros:7.2f}", flush=True)


def found_share(found: dict[int, int], all_: dict[int, int]) -> float:
    """Recall over all ages."""
    return sum(found.values()) / sum(all_.values())


def layout_of(name: str) -> BandLayout:
    """Of a name such as 24x4-by_script, or 24x4x6-chars: with six tables."""
    shape, _, grams = name.partition("-")
    numbers = [int(number) for number in shape.split("x")]
    return BandLayout(*numbers, grams="by_script" if grams == "by_script" else "chars")


def main() -> None:
    """Print machine, input and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--window", type=int, default=1_000_000)
    parser.add_argument("--at", type=int, default=8_500, help="least similarity, out of 10,000")
    parser.add_argument("--edits", type=int, default=1, help="most edits of a copy")
    parser.add_argument(
        "--layout", nargs="*", default=["24x4x6-chars", "28x3x1-by_script", "38x3x1-by_script"]
    )
    given = parser.parse_args()
    print(machine_line())
    alike = f"window {given.window:,}, similarity from {given.at / SIMILARITY_SCALE}"
    print(f"{2 * given.window:,} made-up English sentences, {alike}, edits up to {given.edits}")
    ages = " ".join(f"{int(share * given.window):>8,}" for share in _AGES)
    print(f"{'layout':16} {ages} {'all':>8} {'µs':>7}")
    for name in given.layout:
        measure(layout_of(name), given.window, given.at, given.edits)


if __name__ == "__main__":
    main()
