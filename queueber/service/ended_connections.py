"""Connections that have ended: the leases that were bound to them expire, a slice at a time."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from queueber.db.records.keys import NEVER_MS
from queueber.engine.queue.expire import expire_leases
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.errors import Unavailable
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.service.bound_leases import BoundLeases
from queueber.service.shell import Shell

_log = structlog.get_logger("queueber.service")


@dataclass(slots=True)
class _Ended:
    """The leases that a connection had in one queue."""

    queue: QueueState
    leases: list[bytes]
    held_together: int
    """How many items the connection held in all."""


class EndedConnections:
    def __init__(self, shell: Shell, bound: BoundLeases) -> None:
        self._shell = shell
        self._bound = bound
        self._ended: deque[_Ended] = deque()
        self._retry_at_ms = 0

    @property
    def due_ms(self) -> int:
        """When the next slice is to be done."""
        return self._retry_at_ms if self._ended else NEVER_MS

    def connection_ended(self, connection: object) -> None:
        """Its holder is gone: leases bound to it expire now, together.

        Call it once the calls of the connection are over, so that an unanswered poll of it is
        released and not expired.
        """
        of_queues = self._bound.take(connection)
        held_together = self._bound.held_under(of_queues).items
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


def _expire(tx: QueueTx, leases: Sequence[bytes], together: int) -> list[bytes]:
    """The leases that are left for the next slice."""
    return expire_leases(tx, leases, together=together, items_max=SWEEP_SLICE_ITEMS)[1]
