"""What the user's settings do with a sample, and the pairs of it that may be labelled."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.pipeline.tools.tune.label_pairs import Candidate, candidates_of
from twinsieve.pipeline.tools.tune.sweep import SIMILARITIES, judge
from twinsieve.stages.contract import NO_LEADER, OFF, Batch, Kind
from twinsieve.stages.differ.rules import counts_by_name


@dataclass(slots=True)
class InForce:
    """What the user's settings do. Filled by `look`, which `sweep` calls.

    messages, exact, near: number of judged messages, and how many each stage dropped
    kept_apart: number of messages kept though alike to a kept one, by the name of the rule
    most: number of messages that were dropped for the same one, the greatest; candidates: pairs to label
    """

    settings: Settings
    messages: int = 0
    exact: int = 0
    near: int = 0
    kept_apart: dict[str, int] = field(default_factory=dict)
    most: int = 0
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def drop_share(self) -> float:
        """Share of the messages that are dropped, 0 to 1."""
        return (self.exact + self.near) / self.messages if self.messages else 0.0

    def look(self, batches: Sequence[Batch], pool: ThreadPoolExecutor) -> None:
        """Judge with the user's settings. batches: the messages with the fingerprints of these"""
        own = sieve_config(self.settings, "")
        config = replace(own, near=replace(own.near, threads=1))
        no_rule = config.near.differences._replace(level=OFF)
        widest = replace(config.near, similarity=SIMILARITIES[0], differences=no_rule)
        judged = pool.submit(judge, batches, config)
        free = pool.submit(judge, batches, replace(config, near=widest))
        verdicts = judged.result()
        kinds = verdicts.kinds
        self.messages = len(verdicts)
        self.exact, self.near = (int(np.count_nonzero(kinds == kind)) for kind in (Kind.EXACT, Kind.NEAR))
        self.kept_apart = counts_by_name(verdicts.reasons[kinds == Kind.UNIQUE])
        leaders = verdicts.leaders[(kinds != Kind.UNIQUE) & (verdicts.leaders != NO_LEADER)]
        self.most = int(np.unique(leaders, return_counts=True)[1].max(initial=0))
        self.candidates = candidates_of(batches, free.result())
