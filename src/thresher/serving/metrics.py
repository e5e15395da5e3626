"""Figures of a service for Prometheus: what was asked is counted here, the rest is asked of the service."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import Annotated, Any, get_origin, get_type_hints

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from thresher.serving.service import Service, Status

_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_BOUNDS = [*map(str, _SECONDS), "+Inf"]
_GROWING = ("sequence", "learned", "syncs", "sync_seconds", "skipped")


class Metrics:
    """Counters and figures for ``/metrics``."""

    connections: Collection[Any] = ()
    """those that are open"""

    def __init__(self, service: Service) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # times at which counting began, as many again
        self.registry = own = CollectorRegistry()
        self.rows = Counter("thresher_rows", "rows by what became of them", ["fate"], registry=own)
        self.ignored = Counter("thresher_columns_ignored", "unknown columns of bodies", registry=own)
        self._service = service
        self._sums, self._answered = defaultdict[str, float](float), defaultdict[tuple[str, int], int](int)
        self._taken = defaultdict[str, list[int]](lambda: [0] * len(_BOUNDS))
        """answers by path and status, and their seconds by path: a `Histogram` would lock for each"""
        own.register(self)

    def count_answers(self, path: str, status: int, seconds: Sequence[float]) -> None:
        """Count answers, each with the seconds that it took."""
        self._answered[path, status] += len(seconds)
        self._sums[path] += sum(seconds)
        taken = self._taken[path]
        for one in seconds:
            taken[bisect_left(_SECONDS, one)] += 1

    def collect(self) -> Iterable[Any]:
        """The figures of answers, and those that the service knows itself."""
        answers = CounterMetricFamily("thresher_requests", "requests answered", labels=["path", "status"])
        took = HistogramMetricFamily("thresher_request_seconds", "time to answer a request", labels=["path"])
        for (path, code), count in self._answered.items():
            answers.add_metric([path, str(code)], count)
        for path, counts in self._taken.items():
            took.add_metric([path], [*zip(_BOUNDS, accumulate(counts), strict=True)], self._sums[path])
        yield from (answers, took)
        owing = sum(one.owing for one in self.connections)
        yield GaugeMetricFamily("thresher_requests_under_way", "requests under way", owing)
        yield GaugeMetricFamily("thresher_connections", "connections that are open", len(self.connections))
        status, hints = self._service.status(), get_type_hints(Status, include_extras=True)
        for name, hint in hints.items():
            if get_origin(hint) is Annotated:
                family = CounterMetricFamily if name in _GROWING else GaugeMetricFamily
                words, value = hint.__metadata__[0], float(getattr(status, name))
                yield family(f"thresher_{name}", words, value=value)
