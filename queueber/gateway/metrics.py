"""`/metrics`: what the server measures and what this gateway does, as Prometheus reads it.

The server is asked as the caller, whom it may refuse. While it does not answer, there are only the
gateway's own metrics, and `queueber_gateway_server_up` is 0.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import cast

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as ShownMetric
from starlette.responses import Response

from queueber.errors import PermissionDenied, QueueberError, Unauthenticated
from queueber.gateway.bounds import Bounds
from queueber.gateway.calls import Call
from queueber.gateway.clients import ClientPool
from queueber.gateway.origins import caller_of
from queueber.gateway.routes import NoQuery, Route
from queueber.model import MetricFamily, MetricKind

PREFIX = "queueber_gateway"
STATE = "metrics"
"""Where the measures are in the gateway's state."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
_NO_ROUTE = "none"
"""The label of requests for what is not there, whose paths and methods callers choose."""


class GatewayMeasures:
    """The requests of one gateway process. Several processes are told apart by their number."""

    def __init__(self, bounds: Bounds, pool: ClientPool) -> None:
        self.registry = CollectorRegistry()
        labels = {"process": str(os.getpid())}
        self._requests = Counter(
            f"{PREFIX}_requests",
            "Requests that were answered, by route and status.",
            ("process", "method", "route", "status"),
            registry=self.registry,
        )
        self._durations = Histogram(
            f"{PREFIX}_request_duration_seconds",
            "How long requests took, with the time in which they waited for items or messages.",
            ("process", "method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._process = labels["process"]
        self._counted: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        """What is counted of each route and status."""
        self._gauge("requests_in_flight", "Requests under way, without those that wait.").labels(
            **labels
        ).set_function(lambda: bounds.requests.used)
        self._gauge("requests_waiting", "Requests that wait for items or messages.").labels(
            **labels
        ).set_function(lambda: bounds.waits.used)
        self._gauge("bodies_bytes", "Bodies of requests that are received or handled.").labels(
            **labels
        ).set_function(lambda: bounds.bodies.used)
        self._gauge("unread_bytes", "Answers that their callers have not read.").labels(
            **labels
        ).set_function(lambda: bounds.unread.used)
        self._gauge("clients", "Connections to the server: one for each caller.").labels(
            **labels
        ).set_function(lambda: pool.count)
        self._server_up = self._gauge("server_up", "1 if the server answered this request.").labels(
            **labels
        )
        ProcessCollector(namespace=PREFIX, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", text, ("process",), registry=self.registry)

    def observe(self, route: Route | None, _method: str, status: int, seconds: float) -> None:
        """A request was answered; see `Observer`."""
        method, path = (_NO_ROUTE, _NO_ROUTE) if route is None else (route.method, route.path)
        counted = self._counted.get((method, path, status))
        if counted is None:
            # Looking them up by their labels would take longer than counting.
            counted = self._counted[method, path, status] = (
                self._requests.labels(self._process, method, path, str(status)),
                self._durations.labels(self._process, method, path),
            )
        counted[0].inc()
        counted[1].observe(seconds)

    def shown(self, families: list[MetricFamily] | None, accept: str) -> tuple[bytes, str]:
        """All metrics and their media type; of the server none if it did not answer."""
        self._server_up.set(families is not None)
        encode, media_type = choose_encoder(accept)
        collected = _Collected([*map(shown_family, families or ()), *self.registry.collect()])
        return encode(cast(CollectorRegistry, collected)), media_type


class _Collected:
    """Families as an encoder asks a registry for them."""

    def __init__(self, families: Iterable[ShownMetric]) -> None:
        self._families = families

    def collect(self) -> Iterator[ShownMetric]:
        yield from self._families


def shown_family(family: MetricFamily) -> ShownMetric:
    """As `prometheus_client` has it."""
    metric = family.metric
    name, text, labels = metric.name, metric.help, metric.labels
    match metric.kind:
        case MetricKind.COUNTER:
            counter = CounterMetricFamily(name.removesuffix("_total"), text, labels=labels)
            for sample in family.samples:
                counter.add_metric(sample.label_values, sample.value)
            return counter
        case MetricKind.GAUGE:
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for sample in family.samples:
                gauge.add_metric(sample.label_values, sample.value)
            return gauge
        case MetricKind.HISTOGRAM:
            histogram = HistogramMetricFamily(name, text, labels=labels)
            bounds = [*map(str, metric.bounds), "+Inf"]
            for sample in family.samples:
                total, *buckets = sample.values
                cumulated = list(zip(bounds, accumulate(buckets), strict=True))
                histogram.add_metric(sample.label_values, cumulated, total)
            return histogram


async def _server_families(call: Call[NoQuery, None]) -> list[MetricFamily] | None:
    pool = cast(ClientPool, call.state["pool"])
    try:
        async with pool.client_for(caller_of(call.headers, call.settings)) as client:
            return await client.metrics()
    except (Unauthenticated, PermissionDenied):
        raise
    except QueueberError:
        return None


async def show_metrics(call: Call[NoQuery, None]) -> Response:
    families = await _server_families(call)
    accept = call.headers.get(b"accept", b"").decode("latin-1")
    body, media_type = cast(GatewayMeasures, call.state[STATE]).shown(families, accept)
    return Response(body, headers={"content-type": media_type})


ROUTES = (
    Route(
        "GET", "/metrics", show_metrics, "Metrics of the server and of this gateway", "health",
        description="The text format of Prometheus, or OpenMetrics if that is accepted.",
        answer_type="text/plain", uses_client=False, errors=(Unauthenticated, PermissionDenied),
    ),
)  # fmt: skip
