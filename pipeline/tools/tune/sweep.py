"""Judge a sample under many settings. Under each of them leaders are chosen anew, as `dedup` chooses them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from twinsieve.pipeline.dedup.jumps import Jumps
from twinsieve.pipeline.settings.load import Override
from twinsieve.pipeline.settings.model import PROFILES, Settings
from twinsieve.pipeline.settings.stage_config import scheme_config, sieve_config
from twinsieve.pipeline.tools.evaluate.judged import (
    JudgedPair,
    Share,
    batch_of_pairs,
    precision,
    recall,
    verdicts_of,
)
from twinsieve.pipeline.tools.tune.sample import Sample
from twinsieve.stages.contract import LEVELS, SIMILARITY_SCALE, Batch, Kind, SieveConfig, Verdicts
from twinsieve.stages.differ.rules import counts_by_name
from twinsieve.stages.errors import UsageError
from twinsieve.stages.judge.batch_sieve import BatchSieve
from twinsieve.stages.judge.scheme import Scheme, SchemeConfig

SIMILARITIES = tuple(range(7_000, 9_501, 100))
"""The similarities that are tried, out of SIMILARITY_SCALE."""

WithKeys = Callable[[dict[str, str]], Settings]
"""The settings of the user with these keys set."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Settings that are tried at each similarity.

    name: for people; keys: what is set on top of the user's settings; settings: all of them
    profile: the profile that gives these settings; "" if none does
    is_own: whether these are the user's settings themselves, but for the similarity
    """

    name: str
    keys: dict[str, str]
    settings: Settings
    profile: str = ""
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """Labelled pairs: precision of the drops and recall, under one point."""

    precision: Share
    recall: Share


@dataclass(frozen=True, slots=True)
class Point:
    """What one curve does at one similarity.

    similarity: out of SIMILARITY_SCALE
    messages, exact, near: number of judged messages, and how many each stage dropped
    kept_apart: number of messages kept though similar to a kept one, by the name of the rule
    judged: None without labels
    """

    curve: Curve
    similarity: int
    messages: int
    exact: int
    near: int
    kept_apart: dict[str, int] = field(default_factory=dict)
    judged: Judged | None = None

    @property
    def drop_share(self) -> float:
        """Share of the messages that are dropped, 0 to 1."""
        return (self.exact + self.near) / self.messages


def with_keys(overrides: Sequence[Override], keys: dict[str, str]) -> list[Override]:
    """The user's overrides with these keys set instead of any value that they give them."""
    others = [override for override in overrides if override.key not in keys]
    return [*others, *(Override(key, text, "tune") for key, text in keys.items())]


def curves_of(settings: WithKeys) -> list[Curve]:
    """The user's settings under each level of `near.differences`, and under each profile.

    Curves that do the same are one, with the names of both.
    raises: UsageError if the settings do not compare texts
    """
    own = settings({})
    if own.near.method != "text":
        raise UsageError(
            f"near.method is {own.near.method}: tune tries similarities, which near.method: text compares"
        )
    levels = {level: {"near.differences": level} for level in LEVELS}
    wanted = [
        Curve(f"differences {level}", keys, settings(keys), is_own=level == own.near.differences)
        for level, keys in levels.items()
    ]
    profiles = {name: {"profile": name} for name in PROFILES}
    wanted += [Curve(f"profile {name}", keys, settings(keys), name) for name, keys in profiles.items()]
    found: dict[tuple[SchemeConfig, SieveConfig], Curve] = {}
    for curve in wanted:
        judges_as = (scheme_config(curve.settings), config_at(curve, SIMILARITIES[0]))
        known = found.get(judges_as)
        if known is not None:
            curve = replace(
                known,
                name=f"{known.name}, {curve.name}",
                profile=known.profile or curve.profile,
                is_own=known.is_own or curve.is_own,
            )
        found[judges_as] = curve
    return list(found.values())


def config_at(curve: Curve, similarity: int) -> SieveConfig:
    """The sieve of a curve at a similarity. It judges in one thread: points are judged side by side."""
    config = sieve_config(curve.settings, "")
    return replace(config, near=replace(config.near, similarity=similarity, threads=1))


def by_scheme(curves: Sequence[Curve]) -> dict[SchemeConfig, list[Curve]]:
    """The curves that share fingerprints, by their scheme; the schemes in the order of their first curves."""
    schemes: dict[SchemeConfig, list[Curve]] = {}
    for curve in curves:
        schemes.setdefault(scheme_config(curve.settings), []).append(curve)
    return schemes


def judge(batches: Sequence[Batch], config: SieveConfig) -> Verdicts:
    """The verdicts on the batches, in order, of a sieve that is empty at first."""
    sieve = BatchSieve(config)
    jumps = Jumps(config, sieve.stats())
    return Verdicts.concat([sieve.judge(jumps.over(batch)[0]) for batch in batches])


def sweep(
    sample: Sample,
    curves: Sequence[Curve],
    arrivals_ms: int,
    threads: int,
    pairs: Sequence[JudgedPair],
    texts: dict[str, str],
    look: Callable[[Sequence[Batch], ThreadPoolExecutor], None],
) -> Iterator[Point]:
    """The points of all curves at all similarities. Fingerprints are made once a scheme.

    arrivals_ms: time at which the messages arrive, ms since 1970
    threads: how many points are judged side by side
    pairs, texts: labelled pairs and the text of each name, to measure precision and recall
    look: called with the messages as the user's settings read them, while these are in memory
    raises: UsageError if a pair has no text
    """

    def points_of(configured: SchemeConfig, using: Sequence[Curve]) -> Iterator[Point]:
        both = batch_of_pairs(pairs, texts, configured) if pairs else None
        batches = sample.batches(Scheme(configured), arrivals_ms)

        def point(asked: tuple[Curve, int]) -> Point:
            curve, similarity = asked
            config = config_at(curve, similarity)
            judged = None
            if both is not None:
                of_pairs = verdicts_of(pairs, both, config)
                judged = Judged(precision(of_pairs), recall(of_pairs))
            verdicts = judge(batches, config)
            kinds = verdicts.kinds
            exact, near = (int(np.count_nonzero(kinds == kind)) for kind in (Kind.EXACT, Kind.NEAR))
            apart = counts_by_name(verdicts.reasons[kinds == Kind.UNIQUE])
            return Point(curve, similarity, len(kinds), exact, near, apart, judged)

        with ThreadPoolExecutor(threads) as pool:
            if any(curve.is_own for curve in using):
                look(batches, pool)
            yield from pool.map(point, [(curve, at) for curve in using for at in SIMILARITIES])

    for configured, using in by_scheme(curves).items():
        # A generator of its own, so that the fingerprints of a scheme are gone before those of the next.
        yield from points_of(configured, using)


def similarity_text(similarity: int) -> str:
    """A similarity as settings write it.

    >>> similarity_text(8500)
    '0.85'
    """
    return f"{similarity / SIMILARITY_SCALE:.4g}"
