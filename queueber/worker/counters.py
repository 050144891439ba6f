"""The numbers of a worker: counted by each pool, added up over processes."""

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """The numbers of a worker at one moment."""

    done: int = 0
    """Items whose completion the server has confirmed."""
    failed: int = 0
    """Failed attempts. The settings of the queue decide whether the item is retried."""
    died: int = 0
    """Failed attempts after which the item became a dead letter."""
    refused: int = 0
    """Outcomes that came too late: the lease had ended, and another worker may have the item."""
    unknown: int = 0
    """Outcomes that were sent as the connection broke; the server may have accepted them."""
    released: int = 0
    """Items that were released unhandled because the worker shut down."""
    abandoned: int = 0
    """Released items whose handlers did not end in time."""
    in_flight: int = 0
    """Items that handlers have now."""
    waiting: int = 0
    """Items that are leased and wait for a free handler."""
    unreported: int = 0
    """Handled items whose outcome the server has not confirmed yet."""
    processes: int = 0
    """Running processes."""
    connecting: int = 0
    """Processes that have not reached the server yet."""
    disconnected: int = 0
    """Processes that reached the server before and cannot reach it now."""


_TOTALS = ("done", "failed", "died", "refused", "unknown", "released", "abandoned")


class Counters:
    """What one pool counts. Only the loop of the pool writes it; any thread may read it."""

    def __init__(self) -> None:
        self.done = self.failed = self.died = self.refused = self.unknown = self.released = 0
        self.abandoned = self.unreported = 0
        self.is_connected: bool | None = None
        """None until the first call was answered or failed."""

    def stats(self, *, in_flight: int, waiting: int) -> WorkerStats:
        return WorkerStats(
            **{name: getattr(self, name) for name in _TOTALS},
            in_flight=in_flight,
            waiting=waiting,
            unreported=self.unreported,
            processes=1,
            connecting=int(self.is_connected is None),
            disconnected=int(self.is_connected is False),
        )


def sum_stats(parts: Iterable[WorkerStats]) -> WorkerStats:
    listed = list(parts)
    return WorkerStats(
        **{f.name: sum(getattr(part, f.name) for part in listed) for f in fields(WorkerStats)}
    )


def totals_of(stats: WorkerStats) -> WorkerStats:
    """What still counts after a process has ended: its totals, without what it held."""
    return WorkerStats(**{name: getattr(stats, name) for name in _TOTALS})
