"""Leases that end with the connection that they were given to.

Kept in memory only: a server that restarts has lost the connections, but the holders are still at
work, and come back to finish under the leases that they have.
"""

from queueber.db.families import Family
from queueber.db.store.contract import Store
from queueber.engine.kernel.state import QueueState

_LOOK_AFTER = 1000


class BoundLeases:
    def __init__(self, store: Store) -> None:
        self._store = store
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

    def queues(self, connection: object) -> set[QueueState]:
        """Where the connection has, or had, leases."""
        return self._queues.get(connection, set())

    def of(self, connection: object) -> list[tuple[QueueState, list[bytes]]]:
        """The leases of a connection by queue, as far as they have not ended."""
        if connection in self._leases:
            self._drop_ended(connection)
        return _by_queue(self._leases.get(connection, {}))

    def take(self, connection: object) -> list[tuple[QueueState, list[bytes]]]:
        """The same, of a connection that is over."""
        left = self.of(connection)
        self._leases.pop(connection, None)
        self._look_at.pop(connection, None)
        self._queues.pop(connection, None)
        return left

    def _drop_ended(self, connection: object) -> None:
        """Nobody tells us when a lease ends, so now and then we look which are left."""
        leases = list(self._leases[connection].items())
        keys = [queue.prefix + lease_id for lease_id, queue in leases]
        entries = self._store.get_many(Family.LEASES, keys) if keys else []
        left = {
            lease_id: queue
            for (lease_id, queue), entry in zip(leases, entries, strict=True)
            if entry is not None and not queue.is_deleted
        }
        self._leases[connection] = left
        self._look_at[connection] = 2 * len(left) + _LOOK_AFTER


def _by_queue(leases: dict[bytes, QueueState]) -> list[tuple[QueueState, list[bytes]]]:
    queues: dict[QueueState, list[bytes]] = {}
    for lease_id, queue in leases.items():
        queues.setdefault(queue, []).append(lease_id)
    return list(queues.items())
