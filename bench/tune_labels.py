"""What `tune --judged` recommends with few labels of a set, on the pairs of the set that were not labelled.

    python -m bench.tune_labels [--draws 20] [--rules]

Each judged set in turn: 60 or 130 of its pairs are drawn by a seed, `advise` gets their labels and the points
that `tune` has for them, and the other pairs of the set judge the settings in its YAML. After a draw without
a recommendation, the settings of a user without settings are judged. Pooled: all sets of one draw together.

The only number of `advise` that comes from judged sets, `Rule.slip`, is counted on the other sets. But the
profiles were made with these sets. "Without its profile" leaves out the profile that README names for the
set, as if nobody had made one for this kind of text.
--rules: the same with other rules. Data: TWINSIEVE_DATA. Only counts are printed.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import mean, median, quantiles
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench.machine import machine_line
from tests.accuracy.labels import PROFILES, configured, judged_pairs, texts_of
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    JudgedVerdict,
    batch_of_pairs,
    judge_pairs,
    precision,
    recall,
    verdicts_of,
)
from twinsieve.pipeline.tools.tune.advice import LIMITS_FROM, RULE, Rule, advise
from twinsieve.pipeline.tools.tune.labels import Labels, distinct_labels
from twinsieve.pipeline.tools.tune.sweep import (
    SIMILARITIES,
    Curve,
    Judged,
    Point,
    config_at,
    curves_of,
    with_keys,
)
from twinsieve.stages.contract import Batch

_LARGE = ("weibo_dev", "world_dev", "sms_dev", "titles_dev", "tweets_dev")
_LABELLED = ("weibo_dev", "world_dev", "sms_dev", "titles_dev")
"""Sets with more than LIMITS_FROM pairs."""
_RULES = [Rule(beta=beta, weight=weight) for beta in (0.2, 1 / 3, 0.5, 1.0) for weight in (0, 5, 10)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Verdicts on the pairs that were not drawn.

    yaml: what was recommended
    advised, profiled: under the recommended settings, and under the profile of the set
    no_limits: under the recommended settings without the limits in them
    """

    yaml: str | None
    advised: list[JudgedVerdict]
    profiled: list[JudgedVerdict]
    no_limits: list[JudgedVerdict]


@cache
def pairs_of(name: str) -> tuple[JudgedPair, ...]:
    """The judged pairs of a set, each once."""
    return tuple(distinct_labels([pair for pair in judged_pairs() if pair.set == name]).pairs)


@cache
def texts(name: str) -> dict[str, str]:
    """The texts of a set, by id."""
    return texts_of(name)


@cache
def curves() -> list[Curve]:
    """Those of `tune` for a user without settings."""
    return curves_of(lambda keys: load_settings(None, {}, with_keys([], keys), on_files=True))


@cache
def verdicts_on(name: str, curve: int, similarity: int) -> list[JudgedVerdict]:
    """The verdicts on all pairs of a set at one point of the sweep. Each pair is judged alone, so they do not
    depend on which pairs were drawn."""
    return verdicts_of(pairs_of(name), _batch(name, curve), config_at(curves()[curve], similarity))


@cache
def _batch(name: str, curve: int) -> Batch:
    return batch_of_pairs(pairs_of(name), texts(name), scheme_config(curves()[curve].settings))


@cache
def verdicts_under(name: str, yaml: str) -> list[JudgedVerdict]:
    """The verdicts on all pairs of a set under settings that are copied from a recommendation."""
    settings = settings_of(yaml)
    return judge_pairs(pairs_of(name), texts(name), scheme_config(settings), sieve_config(settings, ""))


@cache
def settings_of(yaml: str) -> Settings:
    """As the program reads them from a file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "advised.yaml"
        path.write_text(yaml)
        return load_settings(path, {}, on_files=True)


@cache
def profiled(name: str) -> list[JudgedVerdict]:
    """The verdicts on all pairs of a set under its own profile."""
    return judge_pairs(pairs_of(name), texts(name), *configured(PROFILES[name]))


@cache
def slip_without(name: str) -> float:
    """`Rule.slip` as all other sets have it, under their profiles."""
    others = [verdict for other in PROFILES if other != name for verdict in profiled(other)]
    different = [verdict.dropped for verdict in others if verdict.pair.label == "different"]
    return sum(different) / len(different)


def points_of(name: str, drawn: Sequence[int], *, without: str = "") -> list[Point]:
    """The points of `tune` with the labels of the drawn pairs. without: a profile that does not exist"""
    points = []
    for number, curve in enumerate(curves()):
        if without and curve.profile == without:
            continue
        for similarity in SIMILARITIES:
            said = [verdicts_on(name, number, similarity)[row] for row in drawn]
            points.append(Point(curve, similarity, 1, 0, 0, judged=Judged(precision(said), recall(said))))
    return points


def outcome(name: str, count: int, seed: int, rule: Rule, *, without_profile: bool) -> Outcome:
    """What the settings that `advise` recommends by these labels do to the other pairs."""
    pairs = pairs_of(name)
    drawn = sorted(random.Random(f"{name} {count} {seed}").sample(range(len(pairs)), count))
    points = points_of(name, drawn, without=PROFILES[name] if without_profile else "")
    labels = Labels([pairs[row] for row in drawn], [])
    rule = replace(rule, slip=slip_without(name))
    advice = advise(points, labels, texts(name), settings_of(""), rule=rule)
    under = verdicts_under(name, advice.yaml or "")
    if advice.yaml is not None:
        _check(advice.yaml, points, [under[row] for row in drawn])
    rest = sorted(set(range(len(pairs))) - set(drawn))
    no_limits = verdicts_under(name, (advice.yaml or "").partition("  limits:")[0])
    return Outcome(
        advice.yaml,
        [under[row] for row in rest],
        [profiled(name)[row] for row in rest],
        [no_limits[row] for row in rest],
    )


def _check(yaml: str, points: Sequence[Point], drawn: Sequence[JudgedVerdict]) -> None:
    """Copied settings without limits do to the drawn pairs what the point did."""
    settings = settings_of(yaml)
    if "limits" in yaml:
        return
    for point in points:
        if (point.curve.profile, point.similarity) == (settings.profile, settings.near.similarity):
            assert point.judged == Judged(precision(drawn), recall(drawn)), yaml
            return
    raise AssertionError(f"no point is {yaml}")


def outcomes_of(
    count: int, names: Sequence[str], draws: int, rule: Rule, *, without_profile: bool = False
) -> dict[str, list[Outcome]]:
    """The outcome of each draw, by set."""
    return {
        name: [outcome(name, count, seed, rule, without_profile=without_profile) for seed in range(draws)]
        for name in names
    }


def pooled(every: Mapping[str, Sequence[Outcome]]) -> list[Outcome]:
    """The outcomes of each draw, all sets together."""
    return [
        Outcome(
            None,
            [verdict for one in draw for verdict in one.advised],
            [verdict for one in draw for verdict in one.profiled],
            [verdict for one in draw for verdict in one.no_limits],
        )
        for draw in zip(*every.values(), strict=True)
    ]


def table_of(count: int, names: Sequence[str], draws: int, *, without_profile: bool) -> Table:
    """A row a set, and one for all sets of a draw together; medians over the draws."""
    table = Table(title=f"{count} labels, {draws} draws{', without its profile' if without_profile else ''}")
    for head in (
        "set",
        "precision",
        "worst tenth",
        "of its profile",
        "recall",
        "worst tenth",
        "of its profile",
    ):
        table.add_column(head, justify="left" if head == "set" else "right")
    table.add_column("recommended")
    every = outcomes_of(count, names, draws, RULE, without_profile=without_profile)
    for name, outcomes in every.items():
        told = Counter(one.yaml or "none" for one in outcomes)
        table.add_row(name, *_cells(outcomes), _profiles(told))
    table.add_section()
    table.add_row("pooled", *_cells(pooled(every)), "")
    return table


def limits_table(draws: int) -> Table:
    """What limits that are recommended bring: means over the draws, as few draws change any."""
    table = Table(title=f"{LIMITS_FROM} labels, {draws} draws")
    for head in ("set", "draws with limits", "precision", "without them", "recall", "without them", "which"):
        table.add_column(head, justify="left" if head in ("set", "which") else "right")
    for without_profile in (False, True):
        for name, outcomes in outcomes_of(
            LIMITS_FROM, _LABELLED, draws, RULE, without_profile=without_profile
        ).items():
            limits = [settings_of(one.yaml).near.limits for one in outcomes if "limits" in (one.yaml or "")]
            changed = Counter(
                f"{key} {value}"
                for each in limits
                for key, value in each.model_dump(exclude_unset=True).items()
            )
            cells = [
                f"{mean(share(verdicts).value for verdicts in rest):.3f}"
                for share in (precision, recall)
                for rest in ([one.advised for one in outcomes], [one.no_limits for one in outcomes])
            ]
            told = ", ".join(f"{key}: {times}" for key, times in changed.most_common())
            row = f"{name}{', without its profile' if without_profile else ''}"
            table.add_row(row, f"{len(limits)}", *cells, told)
    return table


def rules_table(sizes: Sequence[tuple[int, Sequence[str]]], draws: int) -> Table:
    """Pooled figures of other rules than that of `advise`."""
    table = Table("labels", "beta", "weight", title="pooled, by rule")
    for head in ("precision", "worst tenth", "of its profile", "recall", "worst tenth", "of its profile"):
        table.add_column(head, justify="right")
    for count, names in sizes:
        for rule in _RULES:
            cells = _cells(pooled(outcomes_of(count, names, draws, rule)))
            table.add_row(str(count), f"{rule.beta:.2f}", str(rule.weight), *cells)
    return table


def _profiles(told: Counter[str]) -> str:
    """How often each profile was recommended."""
    profiles = Counter[str]()
    for yaml, times in told.items():
        profiles["none" if yaml == "none" else settings_of(yaml).profile] += times
    return ", ".join(f"{profile} {times}" for profile, times in profiles.most_common())


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    cells = []
    for share in (precision, recall):
        advised = [share(one.advised).value for one in outcomes]
        own = [share(one.profiled).value for one in outcomes]
        cells += [f"{median(advised):.3f}", f"{quantiles(advised, n=10)[0]:.3f}", f"{median(own):.3f}"]
    lost = [recall(one.advised).value - recall(one.profiled).value for one in outcomes]
    cells[-1] += f" ({median(lost):+.3f})"
    return cells


def main() -> None:
    """Print machine and tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--rules", action="store_true", help="with other rules, too")
    asked = parser.parse_args()
    console = Console(width=150, highlight=False)
    console.print(machine_line())
    sizes = [(60, tuple(PROFILES)), (130, _LARGE)]
    for without_profile in (False, True):
        for count, names in sizes:
            console.print(table_of(count, names, asked.draws, without_profile=without_profile))
    console.print(limits_table(asked.draws))
    if asked.rules:
        console.print(rules_table(sizes, asked.draws))


if __name__ == "__main__":
    main()
