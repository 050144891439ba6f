"""The agenda: when the sweeper looks at which queue next, because work may be due there."""

from heapq import heapify, heappop, heappush

from queueber.db.records.keys import NEVER_MS
from queueber.ids import QueueId

_LATE_DELETIONS_MAX = 100


class Agenda:
    """The earliest due time of each queue, and of all of them.

    A heap with late deletion: an entry is valid only while it has the time kept for its queue.
    """

    def __init__(self) -> None:
        self._due_ms: dict[QueueId, int] = {}
        self._heap: list[tuple[int, QueueId]] = []

    def schedule(self, queue_id: QueueId, at_ms: int) -> None:
        """Look at the queue at `at_ms`; if an earlier time is set already, that one stays."""
        if at_ms < self._due_ms.get(queue_id, NEVER_MS):
            self._due_ms[queue_id] = at_ms
            if len(self._heap) > 2 * len(self._due_ms) + _LATE_DELETIONS_MAX:
                self._heap = [(due_ms, each) for each, due_ms in self._due_ms.items()]
                heapify(self._heap)
            else:
                heappush(self._heap, (at_ms, queue_id))

    def due_ms(self, queue_id: QueueId) -> int:
        """When to look at one queue."""
        return self._due_ms.get(queue_id, NEVER_MS)

    def forget(self, queue_id: QueueId) -> None:
        self._due_ms.pop(queue_id, None)

    def next_ms(self) -> int:
        """When to look next; `NEVER_MS` when there is nothing to look at."""
        heap, due_ms = self._heap, self._due_ms
        while heap and due_ms.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        return heap[0][0] if heap else NEVER_MS

    def take_due(self, now_ms: int) -> QueueId | None:
        """A queue to look at now, taken off the agenda; None when none is due."""
        if self.next_ms() > now_ms:
            return None
        _, queue_id = heappop(self._heap)
        del self._due_ms[queue_id]
        return queue_id
