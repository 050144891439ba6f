"""How long items had been ready when they were polled: some polls of each queue are looked at."""

from queueber.clock import Clock
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import oldest_claimable_age_ms
from queueber.limits import SECOND_MS
from queueber.service.measures.histogram import Histogram
from queueber.service.measures.metrics import WAIT_SECONDS

_EVERY = 32
"""One lease in so many of a queue is looked at, and the first after each sample."""


class Waits:
    """What the items that a poll leases first have waited."""

    def __init__(self) -> None:
        self.seconds = Histogram(WAIT_SECONDS)
        self._recent: dict[QueueState, tuple[int, int]] = {}
        """Of each queue the sum since the last sample, and how many."""

    def age_ms(self, queue: QueueState, clock: Clock) -> int | None:
        """How long the item that comes next has been ready; None: this poll is not looked at."""
        if queue in self._recent and queue.counters.leases_total % _EVERY:
            return None
        if queue.undelivered is not None:
            return None  # a group, which reads its messages from a topic
        return oldest_claimable_age_ms(queue, clock.now_ms())

    def polled(self, queue: QueueState, age_ms: int) -> None:
        total_ms, count = self._recent.get(queue, (0, 0))
        self._recent[queue] = (total_ms + age_ms, count + 1)
        self.seconds.observe(age_ms / SECOND_MS)

    def take(self) -> dict[QueueState, float]:
        """The means in ms since this was last called."""
        recent, self._recent = self._recent, {}
        return {queue: total_ms / count for queue, (total_ms, count) in recent.items()}
