"""An app in one process, as a worker and an index judge: JSON messages in, verdicts out."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import orjson

from twinsieve.pipeline.messages.reader import MessageReader, make_batch
from twinsieve.pipeline.service.build import make_scheme
from twinsieve.pipeline.settings.model import Settings
from twinsieve.pipeline.settings.stage_config import sieve_config
from twinsieve.stages.contract import NO_TIME, Batch, Kind, Verdicts
from twinsieve.stages.fingerprint.secret import NO_SECRET, Secret
from twinsieve.stages.judge.batch_sieve import BatchSieve

NEAR_WINDOW, EXACT_WINDOW = 100, 1_000
WINDOWS: dict[str, object] = {
    "near": {"window": {"messages": NEAR_WINDOW}},
    "exact": {"window": {"messages": EXACT_WINDOW}},
}
"""One to ten, as by default."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class App:
    """secret: as `digest.key: own` draws it; NO_SECRET: `digest.key: none`"""

    def __init__(self, secret: Secret, sections: Mapping[str, object] | None = None) -> None:
        settings = Settings.model_validate(dict(WINDOWS if sections is None else sections))
        self.scheme = make_scheme(settings, secret)
        self.sieve = BatchSieve(sieve_config(settings, self.scheme.scheme_id))
        self._reader = MessageReader(settings, secret=secret)
        self._judged = 0

    def batch(self, messages: Sequence[Mapping[str, str]]) -> Batch:
        """The messages as the index gets them; the first one is number 0 of the app if none was judged."""
        columns = self._reader.read([orjson.dumps(each) for each in messages])
        bodies, prints = self.scheme.read(columns.texts, columns.keys)
        positions = np.arange(self._judged, self._judged + len(columns))
        return make_batch(columns, bodies, prints, positions, NO_TIME)

    def judge(self, messages: Sequence[Mapping[str, str]]) -> Verdicts:
        batch = self.batch(messages)
        self._judged += len(batch)
        return self.sieve.judge(batch)

    def kinds(self, messages: Sequence[Mapping[str, str]]) -> list[Kind]:
        return [Kind(kind) for kind in self.judge(messages).kinds.tolist()]

    def kind(self, **message: str) -> Kind:
        """Of one message."""
        return self.kinds([message])[0]


def any_key(seed: int) -> Secret:
    """A key of an app, another one for each seed."""
    return Secret.of_key(random.Random(seed).randbytes(16))


def posts(texts: Sequence[str]) -> list[dict[str, str]]:
    return [{"text": text} for text in texts]


def ordinary(dice: random.Random, count: int) -> list[str]:
    """Posts that nobody has posted before, and that are not alike."""
    return [
        " ".join("".join(dice.choices(_LETTERS, k=dice.randint(3, 9))) for _ in range(8))
        for _ in range(count)
    ]


NO_KEY = NO_SECRET
"""What `digest.key: none` means."""
