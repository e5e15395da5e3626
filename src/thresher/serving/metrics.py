"""Figures of a service for Prometheus: what was asked is counted here, the rest is asked of the service."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, get_origin, get_type_hints

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from thresher.serving.service import Service, Status

_SECONDS = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_GROWING = ("sequence", "learned", "syncs", "sync_seconds", "skipped")


class Metrics:
    """Counters and figures for ``/metrics``."""

    def __init__(self, service: Service) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # times at which counting began, as many again
        self._registry = own = CollectorRegistry()
        self._requests = Counter("thresher_requests", "requests answered", ["path", "status"], registry=own)
        self._seconds = Histogram(
            *("thresher_request_seconds", "time to answer a request", ["path"]),
            buckets=_SECONDS,
            registry=own,
        )
        self._under_way = Gauge("thresher_requests_under_way", "requests under way", registry=own)
        self._connections = Gauge("thresher_connections", "connections that are open", registry=own)
        self.rows = Counter("thresher_rows", "rows by what became of them", ["fate"], registry=own)
        self.ignored = Counter("thresher_columns_ignored", "unknown columns of bodies", registry=own)
        self._children: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._service = service
        own.register(self)

    def watch(self, connections: Collection[Any]) -> None:
        """Tell how many of these there are, and how many owe an answer."""
        self._connections.set_function(lambda: len(connections))
        self._under_way.set_function(lambda: sum(one.owing for one in connections))

    def answered(self, path: str, status: int, seconds: Sequence[float]) -> None:
        """Count answers, each with the seconds that it took."""
        asked = path, status
        if asked not in self._children:  # finding them takes longer than counting
            self._children[asked] = self._requests.labels(path, str(status)), self._seconds.labels(path)
        requests, histogram = self._children[asked]
        requests.inc(len(seconds))
        for one in seconds:
            histogram.observe(one)

    def page(self) -> bytes:
        """All figures as text."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Any]:
        """The figures that the service knows itself."""
        status, hints = self._service.status(), get_type_hints(Status, include_extras=True)
        for name, hint in hints.items():
            if get_origin(hint) is Annotated:
                family = CounterMetricFamily if name in _GROWING else GaugeMetricFamily
                words, value = hint.__metadata__[0], float(getattr(status, name))
                yield family(f"thresher_{name}", words, value=value)
        loss = GaugeMetricFamily("thresher_shadow_loss", "loss of models that learn beside", labels=["model"])
        learned = CounterMetricFamily("thresher_shadow_learned", "rows that they learned", labels=["model"])
        for name, one in self._service.models.items():
            loss.add_metric([name], one.lately()[0])
            learned.add_metric([name], one.learned)
        yield from (loss, learned)
