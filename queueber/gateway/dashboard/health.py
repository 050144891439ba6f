"""How the server is, in a few numbers out of all that it measures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from queueber.model import MetricFamily, Sample

_RANK = 0.99

Buckets = tuple[float, ...]
"""How often each bucket of a histogram was."""


class Health(msgspec.Struct, frozen=True):
    """Durations are in seconds and those of 99 of 100; rates are since the last look."""

    calls_per_s: float
    refused_per_s: float
    """Calls that ended with an error."""
    sync_p99_s: float
    connections: int
    calls_in_flight: int
    calls_waiting: int
    cpu: float
    """1.0: one core is busy."""
    memory_bytes: int
    store_bytes: int
    """Files and write-ahead log."""
    disk_free_bytes: int
    compaction_bytes: int
    """What RocksDB still has to compact."""


@dataclass(slots=True)
class HealthWatch:
    """Compares what the server measured with what it had measured at the last look."""

    _at: float = 0.0
    _totals: Sequence[float] = (0.0, 0.0, 0.0)
    _sync: Buckets = field(default=())

    def look(self, families: Iterable[MetricFamily], at: float) -> Health:
        by_name = {family.name: family for family in families}
        calls = _samples(by_name, "queueber_calls_total")
        totals = (
            sum(sample.value for sample in calls),
            sum(sample.value for sample in calls if sample.label_values[-1] != "OK"),
            _value(by_name, "queueber_process_cpu_seconds_total"),
        )
        seconds = at - self._at if self._at else 0.0
        rates = [
            round(max(0.0, now - before) / seconds, 3) if seconds > 0 else 0.0
            for now, before in zip(totals, self._totals, strict=True)
        ]
        bounds, sync = _histogram(by_name, "queueber_sync_duration_seconds")
        health = Health(
            calls_per_s=rates[0],
            refused_per_s=rates[1],
            sync_p99_s=quantile(bounds, _difference(sync, self._sync)),
            cpu=rates[2],
            **{
                name: int(sum(_value(by_name, metric) for metric in metrics))
                for name, metrics in _NUMBERS.items()
            },
        )
        self._at, self._totals, self._sync = at, totals, sync
        return health


_NUMBERS = {
    "connections": ("queueber_connections",),
    "calls_in_flight": ("queueber_calls_in_flight",),
    "calls_waiting": ("queueber_calls_waiting",),
    "memory_bytes": ("queueber_process_resident_memory_bytes",),
    "store_bytes": ("queueber_store_files_bytes", "queueber_store_log_bytes"),
    "disk_free_bytes": ("queueber_store_disk_free_bytes",),
    "compaction_bytes": ("queueber_store_compaction_pending_bytes",),
}
"""The metrics of which each number is the sum."""


def _samples(families: Mapping[str, MetricFamily], name: str) -> Sequence[Sample]:
    return families[name].samples if name in families else ()


def _value(families: Mapping[str, MetricFamily], name: str) -> float:
    return sum(sample.value for sample in _samples(families, name))


def _histogram(
    families: Mapping[str, MetricFamily], name: str
) -> tuple[tuple[float, ...], Buckets]:
    samples = _samples(families, name)
    if not samples:
        return (), ()
    return families[name].metric.bounds, tuple(samples[0].values[1:])


def _difference(now: Buckets, before: Buckets) -> Buckets:
    if len(now) != len(before) or sum(now) < sum(before):
        return now  # the first look, or the server was restarted
    return tuple(a - b for a, b in zip(now, before, strict=True))


def quantile(bounds: Sequence[float], buckets: Buckets) -> float:
    """The bound of the bucket that has the 99th of 100; 0 if nothing was observed."""
    wanted, seen = _RANK * sum(buckets), 0.0
    if not wanted:
        return 0.0
    for bound, count in zip(bounds, buckets, strict=False):
        seen += count
        if seen >= wanted:
            return bound
    return bounds[-1]
