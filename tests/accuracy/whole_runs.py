"""Near drops of runs over whole sets: what a user meets who gives a file to `dedup`."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.accuracy.labels import MORE_PROFILES, PROFILES, configured, texts_of
from twinsieve.pipeline.basics.printable import printable
from twinsieve.pipeline.tools.evaluate.evaluate import batch_of
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair
from twinsieve.stages.contract import Kind
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme

RUN_PROFILES = PROFILES | MORE_PROFILES
"""The profile of each set that is run as a whole."""
_ROOT = Path(__file__).resolve().parents[2]


class Drop(NamedTuple):
    """The ids of a dropped message and of its leader."""

    later: str
    earlier: str


def near_drops(name: str) -> list[Drop]:
    """All near drops of a run over a whole set under its profile, in the order of the set."""
    texts = texts_of(name)
    ids = list(texts)
    scheme, config = configured(RUN_PROFILES[name])
    verdicts = BatchSieve(config).judge(batch_of(*Scheme(scheme).read(list(texts.values()))))
    rows = (verdicts.kinds == Kind.NEAR).nonzero()[0].tolist()
    return [Drop(ids[row], ids[int(verdicts.leaders[row])]) for row in rows]


def drawn(drops: Sequence[Drop], most: int, seed: int) -> list[Drop]:
    """At most `most` of these drops, drawn at random; at most one for each leader."""
    shuffled = random.Random(seed).sample(drops, len(drops))
    by_leader: dict[str, Drop] = {}
    for drop in shuffled:
        by_leader.setdefault(drop.earlier, drop)
    return list(by_leader.values())[:most]


def still_dropped(pairs: Sequence[JudgedPair]) -> int:
    """How many of these pairs of one set are near drops of this version, with the same leader."""
    drops = set(near_drops(pairs[0].set))
    return sum(Drop(pair.later, pair.earlier) in drops for pair in pairs)


def write_sheet(path: Path, most: int, seed: int, sets: Iterable[str] = RUN_PROFILES) -> None:
    """Write drops to label. raises: UsageError for a path in the project, OSError where it exists already"""
    if path.resolve().is_relative_to(_ROOT):
        raise UsageError(f"{path}: the sheet holds texts of others; name a file outside {_ROOT}")
    lines = ["set\tlater_id\tearlier_id\tlabel\tearlier\tlater"]
    for name in sets:
        texts = texts_of(name)
        for later, earlier in drawn(near_drops(name), most, seed):
            cells = (name, later, earlier, "", printable(texts[earlier]), printable(texts[later]))
            lines.append("\t".join(cells))
    with path.open("x", encoding="utf-8") as sheet:
        sheet.write("\n".join([*lines, ""]))
