"""Decides whether measurements over time are flat and within their limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression, median

from queueber.db.store.options import BLOCK_CACHE_BYTES, WAL_BYTES_MAX, WRITE_BUFFERS_BYTES

WARM_SECONDS = 180.0
"""Before that RocksDB fills its caches, which is not a leak."""
MEMORY_MB_MAX = 300 + (WRITE_BUFFERS_BYTES + BLOCK_CACHE_BYTES) / 1e6
MEMORY_SHARE_MAX, MEMORY_MB_FREE = 0.05, 32.0
"""How much memory may grow over the second half. It rises and falls as RocksDB flushes tables."""
LATENCY_TIMES_MAX = 2.0
LATENCY_MS_FREE = 10.0
"""A smaller rise is noise of the machine."""
DISK_MB_MAX = 3 * WAL_BYTES_MAX / 1e6
"""The log, and twice its size for compactions."""
FILES_MAX = 200
DESCRIPTORS_FREE = 32
"""The store opens and closes files all the time."""


@dataclass(frozen=True, slots=True)
class Sample:
    seconds: float
    """Since the start."""
    memory_mb: float
    calls: int
    p50_ms: float
    p99_ms: float
    files: int
    disk_mb: float
    descriptors: int


def growth(samples: Sequence[Sample], column: str) -> float:
    """How much a regression line through the samples rises from the first to the last."""
    times = [sample.seconds for sample in samples]
    slope = linear_regression(times, [getattr(sample, column) for sample in samples]).slope
    return slope * (times[-1] - times[0])


def second_half(samples: Sequence[Sample]) -> Sequence[Sample]:
    """The second half of the samples; in the first half the server warms up."""
    return samples[len(samples) // 2 :]


def judge(samples: Sequence[Sample]) -> list[str]:
    """Everything that is not flat, or above its limit."""
    if len(samples) < 8:
        return [f"{len(samples)} samples are too few"]
    wrong = []
    half = second_half(samples)
    usual_mb = median(sample.memory_mb for sample in half)
    is_warm = half[0].seconds >= WARM_SECONDS
    allowed_mb = max(MEMORY_MB_FREE, MEMORY_SHARE_MAX * usual_mb)
    if is_warm and (grown := growth(half, "memory_mb")) > allowed_mb:
        wrong.append(f"memory grew by {grown:.0f} MB in the second half, from {usual_mb:.0f}")
    earlier, later = half[: len(half) // 2], half[len(half) // 2 :]
    for column in ("p50_ms", "p99_ms"):
        before, after = (median(getattr(s, column) for s in part) for part in (earlier, later))
        if after > LATENCY_TIMES_MAX * before + LATENCY_MS_FREE:
            wrong.append(f"{column.removesuffix('_ms')} went from {before:.1f} to {after:.1f} ms")
    bounds = (("memory_mb", MEMORY_MB_MAX), ("disk_mb", DISK_MB_MAX), ("files", FILES_MAX))
    for column, most in bounds:
        if (found := max(getattr(sample, column) for sample in samples)) > most:
            wrong.append(f"{column} came to {found:.0f}, over {most:.0f}")
    if (grown := growth(half, "descriptors")) > DESCRIPTORS_FREE:
        wrong.append(f"{grown:.0f} more open files in the second half")
    if any(not sample.calls for sample in half):
        wrong.append("no call was answered for a while")
    return wrong
