"""The figures of a pool: counted by the one that works, added up by the one that shows."""

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """A worker in numbers, as of one moment."""

    done: int = 0
    """Completed, as the server has confirmed."""
    failed: int = 0
    """Attempts that failed; the queue decides whether there will be another."""
    died: int = 0
    """Of the failed: those that were the last attempt of their item."""
    refused: int = 0
    """Outcomes that came too late: the lease had ended, and others may have done the item."""
    unknown: int = 0
    """Outcomes that were sent as the connection broke; the server may have taken them."""
    released: int = 0
    """Given back undone, because the worker was told to stop."""
    abandoned: int = 0
    """Of the released: handlers that would not end, and were left behind when the worker ended."""
    in_flight: int = 0
    """With handlers now."""
    waiting: int = 0
    """Leased ahead, for handlers that become free."""
    unreported: int = 0
    """Handled; the server has not confirmed it yet."""
    processes: int = 0
    disconnected: int = 0
    """Processes that cannot reach the server now."""


_TOTALS = ("done", "failed", "died", "refused", "unknown", "released", "abandoned")


class Tally:
    """What a pool counts. Only its own loop writes."""

    def __init__(self) -> None:
        self.done = self.failed = self.died = self.refused = self.unknown = self.released = 0
        self.abandoned = self.unreported = 0
        self.is_connected = False

    def stats(self, *, in_flight: int, waiting: int) -> WorkerStats:
        return WorkerStats(
            done=self.done,
            failed=self.failed,
            died=self.died,
            refused=self.refused,
            unknown=self.unknown,
            released=self.released,
            abandoned=self.abandoned,
            in_flight=in_flight,
            waiting=waiting,
            unreported=self.unreported,
            processes=1,
            disconnected=0 if self.is_connected else 1,
        )


def added_up(parts: Iterable[WorkerStats]) -> WorkerStats:
    listed = list(parts)
    return WorkerStats(
        **{f.name: sum(getattr(part, f.name) for part in listed) for f in fields(WorkerStats)}
    )


def totals_of(stats: WorkerStats) -> WorkerStats:
    """What remains of a process that has ended: nothing is in its hands."""
    return WorkerStats(**{name: getattr(stats, name) for name in _TOTALS})
