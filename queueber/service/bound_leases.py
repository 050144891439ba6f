"""Leases that end with the connection that they were given to.

Kept in memory only: a server that restarts has lost the connections, but the holders are still at
work, and come back to finish under the leases that they have.
"""

from queueber.db.families import Family
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.queue.selection import Company, company_of

_LOOK_AFTER = 1000

OfQueues = list[tuple[QueueState, list[bytes]]]
"""Leases by queue."""


class BoundLeases:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
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

    def held_together(self, queue: QueueState, connection: object | None) -> Company | None:
        """What a connection holds, if a poll of the queue needs to know: if there is a quarantined
        item in this queue, or in another of which it has leases."""
        if connection is None:
            return None
        queues = {queue, *self._queues.get(connection, ())}
        if not any(each.counters.suspects for each in queues):
            return None
        return self.held_under(self.of(connection))

    def held_under(self, of_queues: OfQueues) -> Company:
        """The items that are held under these leases."""
        held = Company()
        for queue, leases in of_queues:
            held.merge(company_of(self._engine, queue, leases))
        return held

    def _drop_ended(self, connection: object) -> None:
        """Nobody tells us when a lease ends, so now and then we look which are left."""
        leases = list(self._leases[connection].items())
        keys = [queue.prefix + lease_id for lease_id, queue in leases]
        entries = self._engine.store.get_many(Family.LEASES, keys) if keys else []
        left = {
            lease_id: queue
            for (lease_id, queue), entry in zip(leases, entries, strict=True)
            if entry is not None and not queue.is_deleted
        }
        self._leases[connection] = left
        self._look_at[connection] = 2 * len(left) + _LOOK_AFTER
