"""The store: how large it is, and whether it keeps up with the writes."""

from collections.abc import Callable, Mapping

from queueber.db.store.properties import StoreProperties
from queueber.model import Metric, MetricFamily, Sample
from queueber.service.measures import metrics

_PROPERTIES: dict[Metric, str] = {
    metrics.STORE_SST: "files_bytes",
    metrics.STORE_WAL: "log_bytes",
    metrics.STORE_DISK: "disk_bytes",
    metrics.STORE_DISK_FREE: "disk_free_bytes",
    metrics.STORE_MEMTABLES: "memtables_bytes",
    metrics.STORE_CACHE: "cache_bytes",
    metrics.STORE_CACHE_MAX: "cache_bytes_max",
    metrics.STORE_COMPACTION_DEBT: "compaction_pending_bytes",
    metrics.STORE_COMPACTIONS: "compactions_running",
    metrics.STORE_FLUSHES: "flushes_running",
    metrics.STORE_L0_FILES: "level0_files",
    metrics.STORE_STOPPED: "is_write_stopped",
    metrics.STORE_ERRORS: "background_errors",
}


def store_families(
    properties: Callable[[], StoreProperties], refused: Mapping[str, int]
) -> list[MetricFamily]:
    """`refused` has the writes that the store refused, by reason."""
    read = properties()
    families = [
        MetricFamily(metric, [Sample((), (getattr(read, name),))])
        for metric, name in _PROPERTIES.items()
    ]
    samples = [Sample((reason,), (count,)) for reason, count in sorted(refused.items())]
    return [*families, MetricFamily(metrics.STORE_STALLS, samples)]
