"""What the tails of long texts cost and bring: copies of made-up texts, changed behind what is stored.

    python -m bench.long_texts [TEXTS]

Each text is 30 made-up posts in a row; each copy is changed in one way behind 512 characters and judged
with its original alone, under `guards` and without differences; with TWINSIEVE_DATA also the articles.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.data_sets import named_dir
from tests.accuracy.quality import article_pairs
from tests.twins import batch_of
from twinsieve.pipeline.tools.generate.stream import generate
from twinsieve.stages.contract import (
    LEVELS,
    STORED_LENGTH,
    Batch,
    Differences,
    Kind,
    NearConfig,
    SieveConfig,
    Verdicts,
)
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig, TextConfig

_POSTS = 30
_FRONT = 12
"""Posts that no copy changes: longer than what is stored."""
Change = Callable[[list[str], random.Random], list[str]]


def _swap(posts: list[str], chance: random.Random) -> list[str]:
    moved = list(posts)
    moved.append(moved.pop(chance.randrange(len(moved))))
    return moved


def _typos(posts: list[str], chance: random.Random) -> list[str]:
    letters = list("\n".join(posts))
    for _ in range(5):
        at = chance.choice([at for at, letter in enumerate(letters) if letter.isalpha()])
        letters[at] = chance.choice("甲乙丙丁戊")
    return "".join(letters).split("\n")


def _other_number(posts: list[str], chance: random.Random) -> list[str]:
    text = "\n".join(posts)
    digits = [found.start() for found in re.finditer(r"[0-9]", text)]
    if not digits:
        return [*posts[:-1], posts[-1] + "共12人", ""]
    at = chance.choice(digits)
    return (text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]).split("\n")


def _negation(posts: list[str], chance: random.Random) -> list[str]:
    changed = list(posts)
    at = chance.randrange(len(changed))
    middle = len(changed[at]) // 2
    changed[at] = changed[at][:middle] + "没有" + changed[at][middle:]
    return changed


CHANGES: dict[str, tuple[bool, Change]] = {
    "five typos": (True, _typos),
    "a moved paragraph": (True, _swap),
    "a word added": (True, lambda posts, _: [posts[0] + "哈哈", *posts[1:]]),
    "a paragraph added": (
        True,
        lambda posts, _: [*posts, "欢迎大家转发给身边的朋友们看看，谢谢各位读者的支持"],
    ),
    "a counter of views": (True, lambda posts, chance: [*posts, f"阅读{chance.randrange(9999)}"]),
    "a number replaced": (False, _other_number),
    "a negation added": (False, _negation),
}
"""By name: whether the copy still says the same, and the change of the posts behind what is stored."""


def pairs(count: int, change: Change) -> list[str]:
    """A text and its copy, one after the other."""
    chance = random.Random(22)
    texts = []
    # The digits of a link or name are no number that a body has.
    posts = [re.sub(r"(https?://|@)\S+|\n", " ", post["text"]) for post in generate(count * _POSTS, 22)]
    for at in range(0, len(posts), _POSTS):
        own = posts[at : at + _POSTS]
        texts += ["\n".join(own), "\n".join(own[:_FRONT] + change(own[_FRONT:], chance))]
    return texts


def judged(batch: Batch, level: str) -> list[Verdicts]:
    """What each copy gets."""
    near = NearConfig(differences=Differences(LEVELS.index(level)))
    config = SieveConfig(near=near)
    return [
        BatchSieve(config).judge(batch.slice(at, at + 2)).slice(1, 2)
        for at in range(0, len(batch), 2)
        if batch.bodies.body_lengths[at : at + 2].min() > STORED_LENGTH
    ]


def main() -> None:
    console = Console(width=140, highlight=False)
    console.print(machine_line())
    count = int(sys.argv[1]) if sys.argv[1:] else 200
    scheme = Scheme(SchemeConfig(TextConfig("plain")))
    table = Table("behind 512 characters", "meaning", "pairs", "dropped, off", "dropped, guards", "by tail")
    for name, (same, change) in CHANGES.items():
        batch = batch_of(*scheme.read(pairs(count, change)))
        off, guards = judged(batch, "off"), judged(batch, "guards")
        dropped = [sum(int(said.kinds[0]) != Kind.UNIQUE for said in some) for some in (off, guards)]
        by_tail = sum(int(said.reasons[0]) == Rule.TAIL for said in guards)
        table.add_row(name, "same" if same else "other", *map(str, (len(off), *dropped, by_tail)))
    console.print(table)
    if named_dir() is not None:
        found, planted = article_pairs(8_500)
        hits, more = len(found & planted), len(found - planted)
        console.print(f"articles_dev: {hits} of {len(planted)} planted pairs dropped, {more} others")


if __name__ == "__main__":
    main()
