"""Compares the settings of a worker with those under which its app is judged."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from contextlib import closing

from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError
from twinsieve.pipeline.index.ends import recorded_under
from twinsieve.pipeline.operate.committed_index import committed_by_index
from twinsieve.pipeline.service.build import Builder
from twinsieve.pipeline.settings.common import common_settings, differing_keys

_log = logging.getLogger("twinsieve")
_FIRST_S = 5.0
_EVERY_S = 60.0


def judging_settings(app: str, broker: Broker) -> str:
    """The settings under which this app was last judged (`settings.common`); empty if none are on record.

    raises: BrokerError
    """
    with closing(broker.admin()) as admin:
        return recorded_under(committed_by_index(app, admin)).settings


class JudgingSettings:
    """Reads, once a minute in the background, the settings that the index has recorded. Does nothing in a
    `seed` or `redrive`, which read other topics than the app.

    keys: settings of this process that are others than those on record
    """

    def __init__(self, builder: Builder, clock: Clock) -> None:
        self._builder = builder
        self._clock = clock
        self._own = common_settings(builder.settings) if builder.job == "worker" else ""
        self._query: Future[str] | None = None
        self._next_s = clock.monotonic_s() + _FIRST_S
        self._told: list[str] = []
        self.keys: list[str] = []

    def look(self, *, judges: bool) -> None:
        """Take the answer of the last query, and start a query if one is due.

        judges: whether this process judges, or may do so next: then the record is its own, or soon will be
        """
        if self._query is not None and self._query.done():
            query, self._query = self._query, None
            try:
                self.keys = differing_keys(self._own, query.result())
            except BrokerError:
                return  # the next query finds out
        if judges:
            self.keys = []
        if self.keys and self.keys != self._told:
            self._told = self.keys
            _log.warning(
                "worker: this process has other settings than the one that judges: %s; give all processes of "
                "an app the same ones",
                ", ".join(self.keys),
            )
        now_s = self._clock.monotonic_s()
        if self._own and self._query is None and now_s >= self._next_s:
            self._next_s = now_s + _EVERY_S
            self._query = self._builder.queries.submit(self._recorded)

    def _recorded(self) -> str:
        settings = self._builder.settings
        with closing(self._builder.connect(settings)) as broker:
            return judging_settings(settings.app, broker)

    @property
    def remark(self) -> str:
        """Which settings differ; empty if none does, or it is not known."""
        return f"has other settings than the index: {', '.join(self.keys)}" if self.keys else ""
