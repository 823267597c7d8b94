"""Query how many bytes topics take on a broker's disk, once a minute in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from contextlib import closing

from twinsieve.pipeline.broker.ports import Broker, Clock
from twinsieve.pipeline.broker.records import BrokerError

_log = logging.getLogger("twinsieve")
_EVERY_S = 60.0


class LogSizes:
    """Queries the bytes of topics; counts one replica of each partition.

    connect: makes a broker client for one query; background: runs the queries
    """

    def __init__(
        self, connect: Callable[[], Broker], topics: Collection[str], background: Executor, clock: Clock
    ) -> None:
        self._connect = connect
        self._topics = tuple(topics)
        self._background = background
        self._clock = clock
        self._query: Future[dict[str, int]] | None = None
        self._queried_s = -_EVERY_S
        self._is_refusal_logged = False

    def newest(self) -> Mapping[str, int] | None:
        """Bytes by topic if a query has ended since the last call, else None. Starts a query once a minute.

        Empty if no broker reports sizes: this process may lack the permission to describe the cluster, or no
        broker answers.
        """
        now_s = self._clock.monotonic_s()
        sizes = None
        if self._query is not None and self._query.done():
            sizes = self._answer(self._query)
            self._query = None
        if self._query is None and now_s - self._queried_s >= _EVERY_S:
            self._queried_s = now_s
            self._query = self._background.submit(self._sizes)
        return sizes

    def _sizes(self) -> dict[str, int]:
        with closing(self._connect()) as broker, closing(broker.admin()) as admin:
            return admin.log_bytes(self._topics)

    def _answer(self, query: Future[dict[str, int]]) -> dict[str, int]:
        try:
            sizes = query.result()
        except BrokerError as error:
            _log.info("index: cannot query the sizes of topics (%s)", error)
            return {}
        if not sizes and not self._is_refusal_logged:
            self._is_refusal_logged = True
            _log.info(
                "index: no broker reports the sizes of %s; for the metric twinsieve_log_bytes grant Describe "
                "on the cluster",
                ", ".join(self._topics),
            )
        return sizes
