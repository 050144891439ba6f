"""Leases that end with the connection that they were given to.

Kept in memory only: a server that restarts has lost the connections, but the holders are still at
work, and come back to finish under the leases that they have.
"""

from queueber.db.families import Family
from queueber.db.store import Store
from queueber.engine.state import QueueState

_LOOK_AFTER = 1000


class BoundLeases:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._leases: dict[object, dict[bytes, QueueState]] = {}
        self._look_at: dict[object, int] = {}

    def add(self, connection: object, queue: QueueState, lease_ids: list[bytes]) -> None:
        leases = self._leases.setdefault(connection, {})
        for lease_id in lease_ids:
            leases[lease_id] = queue
        if len(leases) > self._look_at.get(connection, _LOOK_AFTER):
            self._drop_ended(connection)

    def of(self, connection: object, queue: QueueState) -> list[bytes]:
        """The leases of a connection in one queue; some may have ended."""
        return [lease for lease, each in self._leases.get(connection, {}).items() if each is queue]

    def take(self, connection: object) -> list[tuple[QueueState, list[bytes]]]:
        """All leases of a connection that is over, by queue; some may have ended before."""
        self._look_at.pop(connection, None)
        by_queue: dict[QueueState, list[bytes]] = {}
        for lease_id, queue in self._leases.pop(connection, {}).items():
            by_queue.setdefault(queue, []).append(lease_id)
        return list(by_queue.items())

    def _drop_ended(self, connection: object) -> None:
        """Nobody tells us when a lease ends, so now and then we look which are left."""
        leases = list(self._leases[connection].items())
        keys = [queue.prefix + lease_id for lease_id, queue in leases]
        entries = self._store.get_many(Family.LEASES, keys)
        left = {
            lease_id: queue
            for (lease_id, queue), entry in zip(leases, entries, strict=True)
            if entry is not None
        }
        self._leases[connection] = left
        self._look_at[connection] = 2 * len(left) + _LOOK_AFTER
