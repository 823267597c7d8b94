"""What was tried beyond the list of docs/DIFFERENCES.md, measured on sets that no choice has seen.

    python -m bench.quality_beyond

Each set is left out once. Limits, thresholds and weights are chosen on the judged pairs of the other sets: of
the choices with a precision of .97 the one with the highest recall. The choice then judges the set left out.
Guards and the card guard hold throughout. All pairs are compared, so the candidate index plays no part.
Data: TWINSIEVE_DATA (tests/accuracy/data_sets.py). Only counts and names of rules are printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import pairwise, permutations, product

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.labels import PROFILES, judged_pairs, texts_of
from tests.stages.near import plain_differences as plain
from twinsieve.pipeline.evaluate.judged import JudgedPair, Share, judge_pairs
from twinsieve.pipeline.settings.load import check_tree, tree_of
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.stages.contract import SIMILARITY_SCALE, STORED_LENGTH, Bodies, Differences, Reason
from twinsieve.stages.judge.scheme import Scheme

Flags = NDArray[np.bool_]
"""bool[pairs]"""
Choices = NDArray[np.bool_]
"""bool[choices, pairs]: what each choice of limits drops."""
Sums = dict[str, NDArray[np.int64]]
"""By name, int64[pairs]: what rules 8 to 12 measure, in points."""

_FLOOR = 7_000
_PRECISION = 0.97
_UNSEEN = 99.0
"""IDF of what fewer than two messages hold: rarer than any threshold."""
_RARE = (6.0, 7.0, 8.0, 9.0)
"""IDF from which a feature is rare: in 1 of 150, 400, 1,100 or 3,000 messages."""
_COMMON = (4.0, 5.0, 6.0, 7.0)
"""IDF below which a replacement is no name: of features in 1 of 20, 55, 150 or 400 messages."""
_NAME_TOKENS = 8
_MOVED_POINTS = (4, 6, 8, 12)
_WEIGHT_UNITS = 2_000
_PENALTY = 10.0
_DEFAULT = Differences("full")


@dataclass(frozen=True, slots=True)
class Case:
    """A judged pair.

    similarity: 0 where the two are not alike from _FLOOR on; guarded: a guard keeps them apart
    shipped: dropped under the settings of the set's profile
    idf: of the features of all messages of the set; labels play no part
    """

    judged: JudgedPair
    similarity: float
    guarded: bool
    shipped: bool
    pair: plain.Pair
    idf: dict[str, float]


def read_cases() -> list[Case]:
    """Every judged pair under the body rules of its set's profile."""
    pairs, cases = judged_pairs(), []
    for name, profile in PROFILES.items():
        settings, findings = check_tree(tree_of({"profile": profile}), on_files=True)
        assert settings is not None, findings
        scheme, sieve = scheme_config(settings), sieve_config(settings, "")
        texts, some = texts_of(name), [pair for pair in pairs if pair.set == name]
        near = replace(sieve.near, candidates="scan")
        low = replace(near, similarity=_FLOOR)
        alike, guarded, shipped = (
            judge_pairs(some, texts, scheme, replace(sieve, near=config))
            for config in (
                replace(low, differences=Differences("off")),
                replace(low, differences=Differences("guards")),
                near,
            )
        )
        reader = Scheme(scheme)
        idf = dict(reader.train_idf([reader.bodies(list(dict.fromkeys(texts.values())))], min_documents=2))
        bodies = reader.bodies([texts[row] for pair in some for row in (pair.later, pair.earlier)])
        cases += [
            Case(pair, one.similarity or 0.0, not two.dropped, three.dropped, pair_of(bodies, 2 * row), idf)
            for row, (pair, one, two, three) in enumerate(zip(some, alike, guarded, shipped, strict=True))
        ]
    return cases


def pair_of(bodies: Bodies, row: int) -> plain.Pair:
    """The alignment of a row, the later body, with the next row."""
    texts, tokens = [], []
    for at in (row, row + 1):
        first, end = bodies.starts[at], bodies.starts[at] + bodies.body_lengths[at]
        texts.append("".join(map(chr, bodies.chars[first:end].tolist())))
        tokens.append(plain.tokens(texts[-1], bodies.word_starts[first:end].tolist()))
    cut = max(map(len, texts)) > STORED_LENGTH
    return plain.Pair(tokens[0], tokens[1], plain.runs_of(tokens[0], tokens[1], cut)[0])


def moved(pair: plain.Pair, least: int) -> tuple[set[int], set[int]]:
    """Places of the tokens, in both bodies, of blocks that stand in another run of the other body.

    least: points of a block
    """
    mine, other = set[int](), set[int]()
    for run, then in permutations(pair.runs, 2):
        x, y = ([token.text for token in side] for side in (pair.texts(run)[0], pair.texts(then)[1]))
        match = SequenceMatcher(None, x, y, autojunk=False).find_longest_match()
        block = range(run.a0 + match.a, run.a0 + match.a + match.size)
        twin = range(then.b0 + match.b, then.b0 + match.b + match.size)
        taken = mine.intersection(block) or other.intersection(twin)
        if not taken and sum(plain.points(pair.a[at]) for at in block) >= least:
            mine.update(block)
            other.update(twin)
    return mine, other


def measures(case: Case, least: int = 0, rare: float = 0.0) -> dict[str, int]:
    """What rules 8 to 12 and the score look at.

    least: points from which a moved block counts as equal, 0 for none
    rare: IDF that both sides of a replacement reach; other replacements are forgiven
    """
    pair = case.pair
    mine, other = moved(pair, least) if least else (set(), set())
    found: Counter[str] = Counter()
    changed: set[int] = set()
    only = [0, 0]
    earlier = "".join(token.text for token in pair.b)
    known = set(map("".join, pairwise(earlier)))
    for run in pair.runs:
        changed.update(range(run.a0, run.a1))
        x = [pair.a[at] for at in range(run.a0, run.a1) if at not in mine]
        y = [pair.b[at] for at in range(run.b0, run.b1) if at not in other]
        whole = plain.paired(pair, run)
        blocks = [
            sum(plain.points(some[at]) for at in range(first, end) if at in places)
            for some, first, end, places in ((pair.a, run.a0, run.a1, mine), (pair.b, run.b0, run.b1, other))
        ]
        points = [max(0, side - block) for side, block in zip(whole, blocks, strict=True)]
        counts = x and y and min(rarity(x, case.idf), rarity(y, case.idf)) >= rare
        both = min(points) if counts else 0
        inside = pair.is_inside(run)
        held = min(sum(plain.points(t) for t in side if t.kind == "H") for side in (x, y)) if counts else 0
        text = "".join(token.text for token in pair.texts(run)[0])
        found["places"] += bool(x or y)
        found["replaced"] += both
        found["longest"] = max(found["longest"], both)
        before_end = run.a1 < len(pair.a) and run.b1 < len(pair.b)
        # Names stand at the head: where places are few, one character is enough.
        at_head = run.a0 == run.b0 == 0 and held > 0
        found["in place"] = max(found["in place"], (_ANY if at_head else held) if before_end else 0)
        found["own"] = max(found["own"], sum(bigram not in known for bigram in map("".join, pairwise(text))))
        found["numbers"] += any(t.kind in "NM" for t in x) or any(t.kind in "NM" for t in y)
        found["inside"] = max(found["inside"], max(points) if inside and not (x and y) else 0)
        found["added inside" if inside else "added at an end"] += points[0] - both
        found["left out inside" if inside else "left out at an end"] += points[1] - both
        only = [one + here for one, here in zip(only, points, strict=True)]
    kept = [plain.points(token) for at, token in enumerate(pair.a) if at not in changed or at in mine]
    sizes = [sum(len(token.text) for token in some) for some in (pair.a, pair.b)]
    return {
        **found,
        "only": min(only),
        "shared": sum(kept),
        "shorter": min(sizes),
        "tokens": min(len(pair.a), len(pair.b)),
        "moved": sum(plain.points(pair.a[at]) for at in mine),
    }


_NAMES = (
    *("places", "replaced", "longest", "own", "in place", "inside", "numbers", "only", "shared"),
    *("shorter", "tokens"),
    *("added inside", "added at an end", "left out inside", "left out at an end", "moved"),
)
_ANY = 1 << 20
_LISTED = ("replaced share", "only share", "longest", "own", "in place")
"""What rules 8 to 12 bound."""


def is_named(case: Case, rare: float, replaced: bool) -> bool:
    """Whether something rare was replaced by something rare, or was added or left out inside."""
    for run in case.pair.runs:
        sides = [side for side in case.pair.texts(run) if side]
        short = all(len(side) <= _NAME_TOKENS for side in sides)
        fits = len(sides) == 2 if replaced else len(sides) == 1 and case.pair.is_inside(run)
        if short and fits and all(rarity(side, case.idf) >= rare for side in sides):
            return True
    return False


def rarity(some: list[plain.Token], idf: dict[str, float]) -> float:
    """IDF of the rarest word, pair of characters or lone character; 0 for numbers, which guards compare."""
    features = [s.text + t.text for s, t in pairwise(some) if s.kind == t.kind == "H"]
    features += [token.text for token in some if token.kind == "W"]
    features = features or [token.text for token in some if token.kind == "H"]
    return max((idf.get(feature, _UNSEEN) for feature in features), default=0.0)


class Bench:
    """All cases as arrays, and the ideas."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = cases
        self.sets = np.array([case.judged.set for case in cases])
        self.same = np.array([case.judged.label == "same" for case in cases])
        self.different = np.array([case.judged.label == "different" for case in cases])
        self.similarity = np.array([round(case.similarity * SIMILARITY_SCALE) for case in cases])
        self.differ = np.array([bool(case.pair.runs) for case in cases])
        self.open = np.array([case.similarity > 0 and not case.guarded for case in cases])
        self.sums = self.sums_with()
        for case, drop in zip(cases, self.dropped(_DEFAULT, _FLOOR, self.sums), strict=True):
            if case.similarity and not case.guarded and case.pair.runs:
                assert drop == (plain.measured(case.pair, _DEFAULT) == Reason.NONE), case.judged

    def sums_with(self, least: int = 0, rare: float = 0.0) -> Sums:
        rows = [measures(case, least, rare) for case in self.cases]
        return {name: np.array([row.get(name, 0) for row in rows]) for name in _NAMES}

    def dropped(self, limits: Differences, floor: int, sums: Sums) -> Flags:
        """By the whole list."""
        short = sums["shorter"] < limits.short
        share = np.where(short, limits.replaced_short, limits.replaced)
        apart: Flags = sums["replaced"] * 1000 > share * (sums["replaced"] + sums["shared"])
        apart |= short & (sums["only"] * 1000 > limits.only_short * (sums["only"] + sums["shared"]))
        apart |= sums["longest"] > limits.longest
        few = sums["places"] <= limits.place_runs
        apart |= few & (limits.place_points > 0) & (sums["in place"] >= limits.place_points)
        apart |= sums["inside"] > limits.inside
        apart |= sums["own"] > limits.own
        drop: Flags = self.open & (self.similarity >= floor) & ~(apart & self.differ)
        return drop

    def limits(self, sums: Sums, fixed: bool) -> Choices:
        """The list under its default limits, or under combinations of limits around those of the profiles."""
        every = [(_DEFAULT, _FLOOR)] if fixed else _grid()
        return np.array([self.dropped(limits, floor, sums) for limits, floor in every])

    def with_names(self, fixed: bool, replaced: bool) -> Choices:
        """The list, and rare names keep apart, from each threshold or not at all."""
        listed = self.limits(self.sums, fixed)
        return np.concatenate([listed, *(listed & ~self.named(rare, replaced) for rare in _RARE)])

    def named(self, rare: float, replaced: bool) -> Flags:
        """`is_named` of each case."""
        return np.array([is_named(case, rare, replaced) for case in self.cases])

    def with_common(self, fixed: bool) -> Choices:
        """The list, and replacements that are no names are forgiven, below each threshold or not at all."""
        return np.concatenate([self.limits(self.sums_with(rare=rare), fixed) for rare in (0.0, *_COMMON)])

    def with_moved(self, fixed: bool, forgive: bool) -> Choices:
        """The list, and moved blocks count as equal, or keep apart, from each size or not at all."""
        listed = self.limits(self.sums, fixed)
        every = [listed]
        for least in _MOVED_POINTS:
            sums = self.sums_with(least)
            every.append(self.limits(sums, fixed) if forgive else listed & (sums["moved"] == 0))
        return np.concatenate(every)

    def pick(self, choices: Choices, train: Flags) -> int:
        """The choice with the highest recall on `train` at _PRECISION, else the most precise one."""
        same = choices[:, train & self.same].sum(1)
        wrong = choices[:, train & self.different].sum(1)
        precision = same / np.maximum(1, same + wrong)
        enough = precision >= min(_PRECISION, precision.max())
        return int(np.argmax(np.where(enough, same + precision, -1)))

    def left_out(self, choices: Choices) -> Flags:
        """What is dropped of each set by the choice that the other sets make."""
        dropped = np.zeros(len(self.cases), bool)
        for name in PROFILES:
            train = self.sets != name
            dropped |= choices[self.pick(choices, train)] & ~train
        return dropped

    def labels(self, some: Flags) -> str:
        """How many of some pairs readers call the same, and how many different."""
        return f"{int((some & self.same).sum())}/{int((some & self.different).sum())}"

    def score(self, features: Sums) -> tuple[Flags, Counter[str], list[Score]]:
        """What the score of the other sets drops of each set; top reasons for what is kept; the scores."""
        dropped, reasons, scores = np.zeros(len(self.cases), bool), Counter[str](), list[Score]()
        for name in PROFILES:
            train = self.sets != name
            flags, score = scored(self, features, train)
            dropped |= flags & ~train
            scores.append(score)
            tops = score.parts(features).argmax(0)[self.open & ~flags & ~train]
            reasons.update(list(features)[top] for top in tops)
        return dropped, reasons, scores

    def shares(self, dropped: Flags, name: str = "") -> tuple[Share, Share]:
        """Precision and recall of `same`, of one set or of all."""
        of = (self.sets == name) | (not name)
        right, wrong = int((dropped & self.same & of).sum()), int((dropped & self.different & of).sum())
        return Share(right, right + wrong), Share(right, int((self.same & of).sum()))


def _grid() -> Iterator[tuple[Differences, int]]:
    for floor, short, replaced_short, replaced, only, longest, place, own in product(
        (7_000, 7_500), (20, 32), (80, 120, 200), (200, 250), (250, 1000), (14, 20), (0, 4), (35, 40)
    ):
        yield (
            replace(
                _DEFAULT,
                short=short,
                replaced_short=replaced_short,
                replaced=replaced,
                only_short=only,
                longest=longest,
                place_points=place,
                own=own,
            ),
            floor,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """A linear score in integers; what is above `most` keeps apart. weights: by the name of a feature"""

    weights: dict[str, int]
    most: int

    def parts(self, features: Sums) -> NDArray[np.int64]:
        """int64[features, pairs]: what each feature adds."""
        return np.array([weight * features[name] for name, weight in self.weights.items()])


def features_of(bench: Bench) -> Sums:
    """What the score adds up: the measures, bounded, and their shares per mille."""
    sums = bench.sums
    shares = {
        f"{name} share": 1000 * sums[name] // np.maximum(1, sums[name] + sums["shared"])
        for name in ("replaced", "only")
    }
    return shares | {name: np.minimum(sums[name], 140) for name in _NAMES if name != "moved"}


def scored(bench: Bench, features: Sums, train: Flags) -> tuple[Flags, Score]:
    """What the score drops whose weights and bound are learned on `train`.

    source: logistic regression with a quadratic penalty, by Newton's method; weights are rounded
    """
    matrix = np.array(list(features.values())).T.astype(float)
    rows = train & bench.open & bench.differ & (bench.same | bench.different)
    spread = matrix[rows].std(0) + 1e-9
    x = np.column_stack([(matrix[rows] - matrix[rows].mean(0)) / spread, np.ones(int(rows.sum()))])
    y = bench.different[rows].astype(float)
    penalty = np.append(np.full(x.shape[1] - 1, _PENALTY), 1e-6)
    beta = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ beta))
        hessian = (x.T * (p * (1 - p))) @ x + np.diag(penalty)
        beta += np.linalg.solve(hessian, x.T @ (y - p) - penalty * beta)
    weights: NDArray[np.int64] = np.rint(_WEIGHT_UNITS * beta[:-1] / spread).astype(int)
    score = Score(dict(zip(features, weights.tolist(), strict=True)), 0)
    totals = score.parts(features).sum(0)
    bounds = np.unique(totals[rows])
    choices = bench.open & ((totals <= bounds[:, None]) | ~bench.differ)
    best = bench.pick(choices, train)
    return choices[best], replace(score, most=int(bounds[best]))


def main() -> None:
    console = Console(width=200, highlight=False)
    console.print(machine_line())
    bench = Bench(read_cases())
    console.print(f"{len(bench.cases):,} judged pairs; precision / recall of each set when it is left out")
    listed = bench.limits(bench.sums, fixed=True)[0]
    console.print(
        "same/different among what the list drops at default limits from .70:", bench.labels(listed)
    )
    for rare in _RARE:
        both, one = (bench.labels(listed & bench.named(rare, replaced)) for replaced in (True, False))
        console.print(f"  with a name from IDF {rare:g} on: replaced {both}, added {one}")
    for least in _MOVED_POINTS:
        blocks = bench.sums_with(least)["moved"] > 0
        console.print(f"  with a moved block of {least} points: {bench.labels(listed & blocks)}")
    titles = [name.removesuffix("_dev") for name in PROFILES]
    table = Table("", *titles, "all, with 95 % intervals")
    shipped = np.array([case.shipped for case in bench.cases])
    rows: list[tuple[str, Flags]] = [("settings of each profile, chosen on all sets", shipped)]
    for fixed, what in ((True, "default limits from .70"), (False, "limits chosen")):
        ideas = {
            "": bench.limits(bench.sums, fixed),
            " + rare names replaced": bench.with_names(fixed, replaced=True),
            " + rare names added": bench.with_names(fixed, replaced=False),
            " + common words forgiven": bench.with_common(fixed),
            " + moved blocks are equal": bench.with_moved(fixed, forgive=True),
            " + moved blocks keep apart": bench.with_moved(fixed, forgive=False),
        }
        rows += [(what + idea, bench.left_out(choices)) for idea, choices in ideas.items()]
        if not fixed:
            for name in PROFILES:
                limits, floor = list(_grid())[bench.pick(ideas[""], bench.sets != name)]
                console.print(f"limits chosen without {name}: from {floor / SIMILARITY_SCALE}, {limits}")
    features = features_of(bench)
    for what, some in (
        ("score of what rules 8 to 12 bound", {name: features[name] for name in _LISTED}),
        ("score of all measures", features),
    ):
        dropped, reasons, scores = bench.score(some)
        rows.append((what, dropped))
        console.print(f"{what}, top reasons:", ", ".join(f"{name} {n}" for name, n in reasons.most_common()))
        for feature in some:
            console.print(
                f"  {feature}, a weight for each set left out:", *(s.weights[feature] for s in scores)
            )
    for what, dropped in rows:
        each = [bench.shares(dropped, name) for name in PROFILES]
        table.add_row(
            what,
            *(f"{precision.value:.3f} / {recall.value:.3f}" for precision, recall in each),
            " / ".join(map(str, bench.shares(dropped))),
        )
    console.print(table)


if __name__ == "__main__":
    main()
