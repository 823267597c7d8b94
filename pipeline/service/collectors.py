"""Metric types that prometheus_client does not have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

Condition = Callable[[], bool]
Value = float | Callable[[], float | None]


class _Gauge(Collector):
    """A gauge whose series are made at each scrape."""

    _description: tuple[str, str, Sequence[str]]

    def describe(self) -> list[Metric]:
        """The metric without series, from which the registry reads the name."""
        return [self._family()]

    def _family(self) -> GaugeMetricFamily:
        name, text, labels = self._description
        return GaugeMetricFamily(name, text, labels=labels)


class OptionalGauge(_Gauge):
    """A gauge that exports the values of the last `set` only.

    A value may be a function; it is called at each scrape. None: the series is not exported.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        labels: Sequence[str] = (),
    ) -> None:
        self._description = name, text, labels
        self._is_available: Condition = lambda: True
        self._values: Mapping[tuple[str, ...], Value] = {}
        registry.register(self)

    def export_only_if(self, is_available: Condition) -> None:
        """Export nothing while `is_available` returns False; it is called at each scrape."""
        self._is_available = is_available

    def set(self, values: Mapping[tuple[str, ...], Value]) -> None:
        """Replace all series. values: each key is a tuple of label values, in the order of `labels`"""
        self._values = dict(values)

    def collect(self) -> list[Metric]:
        """The metric with its current series."""
        family = self._family()
        for labels, value in self._values.items() if self._is_available() else ():
            measured = value() if callable(value) else value
            if measured is not None:
                family.add_metric(labels, measured)
        return [family]


class CountedElsewhere(Collector):
    """A counter whose value a function returns at each scrape."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, count: Callable[[], float]) -> None:
        self._description = name, text
        self._count = count
        registry.register(self)

    def describe(self) -> list[Metric]:
        """The metric without its value, from which the registry reads the name."""
        return [CounterMetricFamily(*self._description)]

    def collect(self) -> list[Metric]:
        """The metric with its current value."""
        return [CounterMetricFamily(*self._description, value=self._count())]


class PhaseGauge(_Gauge):
    """A gauge with a series for each phase, in the label `phase`: 1 for the current phase, 0 for the others.

    `Enum` of prometheus_client is the same, but its label has the name of the metric.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        text: str,
        phases: Collection[str],
        labels: Sequence[str] = (),
    ) -> None:
        self._description = name, text, (*labels, "phase")
        self._phases = tuple(phases)
        self._current: dict[tuple[str, ...], str] = {}
        registry.register(self)

    def enter(self, phase: str, *labels: str) -> None:
        """Set the current phase. labels: values of the labels before `phase`"""
        self._current[labels] = phase

    def collect(self) -> list[Metric]:
        """The metric with the series of every `enter`."""
        family = self._family()
        for labels, current in list(self._current.items()):
            for phase in self._phases:
                family.add_metric((*labels, phase), float(phase == current))
        return [family]


class DelayHistogram(Collector):
    """A histogram of delays that counts a whole array of values in one call."""

    def __init__(self, registry: CollectorRegistry, name: str, text: str, bounds: Sequence[float]) -> None:
        self._description = name, text
        self._bounds = np.array(bounds)
        self._counts_and_sum = np.zeros(len(bounds) + 1, np.int64), 0.0
        registry.register(self)

    def observe(self, seconds: NDArray[np.float64]) -> None:
        """Count these delays. A delay below 0, which comes from a clock that runs ahead, counts as 0."""
        taken = np.maximum(seconds, 0.0)
        counts, total = self._counts_and_sum
        places = np.searchsorted(self._bounds, taken)
        self._counts_and_sum = counts + np.bincount(places, minlength=len(counts)), total + float(taken.sum())

    def describe(self) -> list[Metric]:
        """The metric without counts, from which the registry reads the name."""
        return [HistogramMetricFamily(*self._description)]

    def collect(self) -> list[Metric]:
        """The metric with the counts of all values so far."""
        counts, total = self._counts_and_sum
        names = [*map(floatToGoString, self._bounds.tolist()), "+Inf"]
        buckets = list(zip(names, np.cumsum(counts).tolist(), strict=True))
        return [HistogramMetricFamily(*self._description, buckets=buckets, sum_value=total)]
