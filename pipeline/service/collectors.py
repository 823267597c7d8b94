"""Kinds of metrics that prometheus_client lacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Condition = Callable[[], bool]
Value = float | Callable[[], float]


class OptionalGauge(Collector):
    """A gauge with series only for the values set last, and with none while `is_available` returns False.

    A value that is a function is called for each page.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        *,
        is_available: Condition = lambda: True,
    ) -> None:
        self._description = name, text, labels
        self._is_available = is_available
        self._values: Mapping[tuple[str, ...], Value] = {}
        registry.register(self)

    def set(self, values: Mapping[tuple[str, ...], Value]) -> None:
        """Replace all series; keys: the values of the labels."""
        self._values = dict(values)

    def describe(self) -> list[Metric]:
        """The name, for the registry."""
        return [self._family()]

    def collect(self) -> list[Metric]:
        """The present series."""
        family = self._family()
        for labels, value in self._values.items() if self._is_available() else ():
            family.add_metric(labels, value() if callable(value) else value)
        return [family]

    def _family(self) -> GaugeMetricFamily:
        name, text, labels = self._description
        return GaugeMetricFamily(name, text, labels=labels)


class DelayHistogram(Collector):
    """A histogram that takes many values at once."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, bounds: Sequence[float]) -> None:
        self._description = name, text
        self._bounds = np.array(bounds)
        self._counts_and_sum = np.zeros(len(bounds) + 1, np.int64), 0.0
        registry.register(self)

    def observe(self, seconds: NDArray[np.float64]) -> None:
        """Count these; a value below 0, from a clock that runs ahead, counts as 0."""
        taken = np.maximum(seconds, 0.0)
        counts, total = self._counts_and_sum
        places = np.searchsorted(self._bounds, taken)
        self._counts_and_sum = counts + np.bincount(places, minlength=len(counts)), total + float(taken.sum())

    def describe(self) -> list[Metric]:
        """The name, for the registry."""
        return [HistogramMetricFamily(*self._description)]

    def collect(self) -> list[Metric]:
        """All counts up to now."""
        counts, total = self._counts_and_sum
        names = [*map(floatToGoString, self._bounds.tolist()), "+Inf"]
        buckets = list(zip(names, np.cumsum(counts).tolist(), strict=True))
        return [HistogramMetricFamily(*self._description, buckets=buckets, sum_value=total)]
