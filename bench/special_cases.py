"""What each special case of the rules is worth: pairs that get another verdict without it.

    python -m bench.special_cases

The rules in plain Python (tests/stages/differ/plain_differences.py) judge every labelled pair
and every hard pair that is alike enough, under the profile of its set, once as they are and once without
each special case. A case helps where a pair is right with it and wrong without it; it harms where it is the
other way round. Pairs labelled `unsure`, and hard pairs without a wish, do not count. Of a body beyond what
the index stores the head alone is judged, and cards are not looked at. Data: TWINSIEVE_DATA. Only counts and
classes are printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

import orjson
from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.data_sets import data_dir
from tests.accuracy.labels import PROFILES, configured, judged_pairs, texts_of
from tests.stages.differ import plain_differences as plain
from twinsieve.pipeline.tools.evaluate.judged import JudgedPair, judge_pairs
from twinsieve.stages.contract import OFF, Differences
from twinsieve.stages.differ.rules import Rule
from twinsieve.stages.judge.scheme import Scheme

_NO = {"return_value": False}
_SPECIAL: dict[str, list[tuple[object, str, dict[str, Any]]]] = {
    "characters added inside a phrase (明日, 明後日)": [(plain, "lengthened", {"return_value": Rule.NONE})],
    "a negation where an added run can stand in two places": [(plain, "slide", {"return_value": 0})],
    "names around a word that stays change places": [(plain, "turned", _NO)],
    "the same numbers in another order": [(plain, "reordered", _NO)],
    "words that differ in their marks (A+, A-)": [(plain, "marked_apart", _NO)],
    "two spellings of a word": [(plain, "spelled_alike", _NO)],
    "runs are joined over weak tokens": [(plain, "are_joined", _NO)],
    "a mix with more than two letters is a name": [(plain, "is_name", _NO)],
}


class Case(NamedTuple):
    """Two bodies that are alike enough. kind: set of a judged pair, class of a hard one"""

    later: tuple[str, list[int]]
    earlier: tuple[str, list[int]]
    differences: Differences
    same: bool
    kind: str
    hard: bool

    def right(self) -> bool:
        """Whether the rules agree with the label."""
        return (plain.reason(*self.later, *self.earlier, self.differences) == Rule.NONE) == self.same


def cases() -> Iterator[Case]:
    """Every pair with a wish that is alike enough under its profile."""
    rows = map(orjson.loads, (data_dir() / "hard_dev.jsonl").read_bytes().splitlines())
    hard = [row for row in rows if row["want"] != "either"]
    texts = {f"{n}{side}": row[side] for n, row in enumerate(hard) for side in ("earlier", "later")}
    labels = [
        JudgedPair(row["class"], f"{n}later", f"{n}earlier", "same" if row["want"] == "drop" else "different")
        for n, row in enumerate(hard)
    ]
    yield from _alike(labels, texts, "microblog", hard=True)
    judged = [pair for pair in judged_pairs() if pair.label != "unsure"]
    for name, profile in sorted(PROFILES.items()):
        yield from _alike([pair for pair in judged if pair.set == name], texts_of(name), profile, hard=False)


def _alike(pairs: list[JudgedPair], texts: dict[str, str], profile: str, *, hard: bool) -> Iterator[Case]:
    scheme, sieve = configured(profile)
    near = replace(sieve.near, candidates="scan", differences=Differences(OFF))
    verdicts = judge_pairs(pairs, texts, scheme, replace(sieve, near=near))
    bodies = Scheme(scheme).bodies([texts[row] for pair in pairs for row in (pair.later, pair.earlier)])
    ends = bodies.starts[:-1] + bodies.body_lengths
    read = [
        ("".join(map(chr, bodies.chars[first:end].tolist())), bodies.word_starts[first:end].tolist())
        for first, end in zip(bodies.starts[:-1], ends, strict=True)
    ]
    for row, (pair, verdict) in enumerate(zip(pairs, verdicts, strict=True)):
        if verdict.dropped:
            same = pair.label == "same"
            yield Case(read[2 * row], read[2 * row + 1], sieve.near.differences, same, pair.set, hard)


def main() -> None:
    """Print machine and table."""
    every = list(cases())
    right = [case.right() for case in every]
    table = Table("special case", "helps judged", "hard", "harms judged", "hard", "where it helps")
    for name, patches in _SPECIAL.items():
        with ExitStack() as without:
            for place, attribute, how in patches:
                without.enter_context(patch.object(place, attribute, **how))
            right_without = [case.right() for case in every]
        changed = [
            (case, was) for case, was, now in zip(every, right, right_without, strict=True) if was != now
        ]
        counts = [
            sum(helped == was and hard == case.hard for case, was in changed)
            for helped in (True, False)
            for hard in (False, True)
        ]
        kinds = Counter(case.kind for case, was in changed if was)
        table.add_row(
            name, *map(str, counts), ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        )
    console = Console(width=150, highlight=False)
    console.print(machine_line())
    for hard, pairs in ((False, "judged pairs"), (True, "hard pairs")):
        some = [was for case, was in zip(every, right, strict=True) if case.hard == hard]
        console.print(f"{sum(some)} of {len(some)} {pairs} that are alike enough get the wanted verdict")
    console.print(table)


if __name__ == "__main__":
    main()
