"""What `/metrics` tells of the gRPC door."""

import os

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.statuses import Status
from queueber.gateway.metrics import PREFIX

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class GrpcMeasures:
    def __init__(self, registry: CollectorRegistry, streams: Bound) -> None:
        self._process = str(os.getpid())
        self._calls = Counter(
            f"{PREFIX}_grpc_calls",
            "Calls that have ended, by method and status; of Subscribe the streams.",
            ("process", "method", "status"),
            registry=registry,
        )
        self._durations = Histogram(
            f"{PREFIX}_grpc_call_duration_seconds",
            "How long calls took, without streams.",
            ("process", "method"),
            buckets=_SECONDS,
            registry=registry,
        )
        self._delivered = Counter(
            f"{PREFIX}_grpc_deliveries",
            "Messages that were sent to subscribers.",
            ("process",),
            registry=registry,
        ).labels(self._process)
        Gauge(
            f"{PREFIX}_grpc_streams", "Open streams of Subscribe.", ("process",), registry=registry
        ).labels(self._process).set_function(lambda: streams.used)  # fmt: skip
        self._counted: dict[tuple[str, Status], tuple[Counter, Histogram]] = {}

    def observe(self, method: str, status: Status, seconds: float) -> None:
        counted = self._of(method, status)
        counted[0].inc()
        counted[1].observe(seconds)

    def stream_ended(self, method: str, status: Status) -> None:
        self._of(method, status)[0].inc()

    def delivered(self, count: int) -> None:
        self._delivered.inc(count)

    def _of(self, method: str, status: Status) -> tuple[Counter, Histogram]:
        counted = self._counted.get((method, status))
        if counted is None:
            counted = self._counted[method, status] = (
                self._calls.labels(self._process, method, status.name),
                self._durations.labels(self._process, method),
            )
        return counted
