"""Leases that end with the connection that they were given to.

Kept in memory only: a server that restarts has lost the connections, but the holders are still at
work, and come back to finish under the leases that they have. When a connection ends, its leases
expire, a slice at a time.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.engine.queue.expire import expire_leases
from queueber.engine.queue.isolation import HeldTogether, has_quarantined, held_by
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.errors import Unavailable
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.service.shell import Shell

_log = structlog.get_logger("queueber.service")

_LOOK_AFTER = 1000

OfQueues = list[tuple[QueueState, list[bytes]]]
"""Leases by queue."""


@dataclass(slots=True)
class _Ended:
    """The leases that an ended connection had in one queue."""

    queue: QueueState
    leases: list[bytes]
    held_together: int
    """How many items the connection held in all."""


class BoundLeases:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._leases: dict[object, dict[bytes, QueueState]] = {}
        self._look_at: dict[object, int] = {}
        self._queues: dict[object, set[QueueState]] = {}
        self._ended: deque[_Ended] = deque()
        self._retry_at_ms = 0

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

    def held_together(self, queue: QueueState, connection: object | None) -> HeldTogether | None:
        """What a connection holds, if a poll of the queue needs to know: if there is a quarantined
        item in this queue, or in another of which it has leases."""
        if connection is None or not self.may_matter(queue, connection):
            return None
        return _held_under(self.of(connection))

    def may_matter(self, queue: QueueState, connection: object) -> bool:
        """Whether a poll of the queue must know what the connection holds."""
        queues = {queue, *self._queues.get(connection, ())}
        return any(map(has_quarantined, queues))

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

    def _drop_ended(self, connection: object) -> None:
        """Nobody tells us when a lease ends, so now and then we look which are left."""
        left: dict[bytes, QueueState] = {}
        for queue, leases in self._by_queue(connection):
            held_of = [] if queue.is_deleted else queue.leases.read(leases)
            left |= {i: queue for i, (_, held) in zip(leases, held_of, strict=False) if held}
        self._leases[connection] = left
        self._look_at[connection] = 2 * len(left) + _LOOK_AFTER

    # --- connections that have ended --------------------------------------------------------------

    @property
    def due_ms(self) -> int:
        """When the next slice is to be done."""
        return self._retry_at_ms if self._ended else NEVER_MS

    def connection_ended(self, connection: object) -> None:
        """Its holder is gone: leases bound to it expire now, together.

        Call it once the calls of the connection are over, so that an unanswered poll of it is
        released and not expired.
        """
        of_queues = self.of(connection)
        for of_connections in (self._leases, self._look_at, self._queues):
            of_connections.pop(connection, None)
        held_together = _held_under(of_queues).items
        for queue, leases in of_queues:
            _log.debug("connection_lost", queue=queue.name, leases=len(leases))
            self._ended.append(_Ended(queue, leases, held_together))
        for _ in of_queues:
            self.expire_slice()

    def expire_slice(self) -> None:
        """A slice of what a connection held in one queue; the sweeper does the rest.

        If the disk is full, it is tried again later: an item that was alone must not be charged for
        it meanwhile.
        """
        ended, shell = self._ended.popleft(), self._shell
        queue = ended.queue
        if not queue.is_deleted:
            try:
                ended.leases = shell.run(queue, _expire, ended.leases, ended.held_together)
            except Unavailable:
                self._retry_at_ms = shell.clock.now_ms() + STORE_RETRY_MS
            else:
                shell.after_write(queue)
            if ended.leases:
                self._ended.append(ended)
        if self._ended:
            shell.wake_sweeper_for(0)


def _held_under(of_queues: OfQueues) -> HeldTogether:
    """The items that are held under these leases."""
    held = HeldTogether()
    for queue, leases in of_queues:
        held.merge(held_by(queue, leases))
    return held


def _expire(tx: QueueTx, leases: Sequence[bytes], together: int) -> list[bytes]:
    """The leases that are left for the next slice."""
    return expire_leases(tx, leases, together=together, items_max=SWEEP_SLICE_ITEMS)[1]
