"""Leases that end with the connection that they were given to.

Kept in memory only: a server that restarts has lost the connections, but the holders are still at
work, and come back to finish under the leases that they have.
"""

from queueber.engine.queue.isolation import HeldTogether, has_quarantined, held_by
from queueber.engine.queue.queue_state import QueueState

_LOOK_AFTER = 1000

OfQueues = list[tuple[QueueState, list[bytes]]]
"""Leases by queue."""


class BoundLeases:
    def __init__(self) -> None:
        self._leases: dict[object, dict[bytes, QueueState]] = {}
        self._look_at: dict[object, int] = {}
        self._queues: dict[object, set[QueueState]] = {}

    def add(self, connection: object, queue: QueueState, lease_ids: list[bytes]) -> None:
        leases = self._leases.setdefault(connection, {})
        self._queues.setdefault(connection, set()).add(queue)
        for lease_id in lease_ids:
            leases[lease_id] = queue
        if len(leases) > self._look_at.get(connection, _LOOK_AFTER):
            self._drop_ended(connection)

    def size(self, connection: object) -> int:
        """How many leases are kept of a connection; some may have ended."""
        return len(self._leases.get(connection, ()))

    def of(self, connection: object) -> OfQueues:
        """The leases of a connection by queue, as far as they have not ended."""
        if connection in self._leases:
            self._drop_ended(connection)
        return self._by_queue(connection)

    def _by_queue(self, connection: object) -> OfQueues:
        queues: dict[QueueState, list[bytes]] = {}
        for lease_id, queue in self._leases.get(connection, {}).items():
            queues.setdefault(queue, []).append(lease_id)
        return list(queues.items())

    def take(self, connection: object) -> OfQueues:
        """The same, of a connection that is over."""
        left = self.of(connection)
        self._leases.pop(connection, None)
        self._look_at.pop(connection, None)
        self._queues.pop(connection, None)
        return left

    def held_together(self, queue: QueueState, connection: object | None) -> HeldTogether | None:
        """What a connection holds, if a poll of the queue needs to know: if there is a quarantined
        item in this queue, or in another of which it has leases."""
        if connection is None:
            return None
        queues = {queue, *self._queues.get(connection, ())}
        if not any(map(has_quarantined, queues)):
            return None
        return self.held_under(self.of(connection))

    def held_under(self, of_queues: OfQueues) -> HeldTogether:
        """The items that are held under these leases."""
        held = HeldTogether()
        for queue, leases in of_queues:
            held.merge(held_by(queue, leases))
        return held

    def _drop_ended(self, connection: object) -> None:
        """Nobody tells us when a lease ends, so now and then we look which are left."""
        left: dict[bytes, QueueState] = {}
        for queue, leases in self._by_queue(connection):
            held_of = [] if queue.is_deleted else queue.leases.read(leases)
            left |= {i: queue for i, (_, held) in zip(leases, held_of, strict=False) if held}
        self._leases[connection] = left
        self._look_at[connection] = 2 * len(left) + _LOOK_AFTER
