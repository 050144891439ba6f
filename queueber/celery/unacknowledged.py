"""The messages that a channel holds: leased items, as many as its prefetch count allows.

Any thread may acknowledge: the pools of Celery do so from threads of their own.
"""

import contextlib
import logging
import threading
from collections.abc import Iterable
from typing import Any

from kombu.transport import virtual

from queueber.client import Item, Lease
from queueber.errors import OutcomeUnknown, QueueberError

FETCHED_MAX = 100
"""Messages that one poll fetches, and that a channel without a prefetch count holds unread."""
EXTENDS_PER_LEASE = 3
"""Leases are extended so often within their time that one or two lost calls do no harm."""
REMOVES_MAX = 3
"""How often an acknowledgement is sent whose answer was lost."""

logger = logging.getLogger(__name__)


class Unacknowledged(virtual.QoS):
    """Kombu's `QoS`: what a channel has and has not acknowledged."""

    def __init__(self, channel: Any, prefetch_count: int = 0) -> None:
        self._held: dict[str, tuple[Lease, Item]] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._extender: threading.Thread | None = None
        self._lease_seconds: float = channel.visibility_timeout
        super().__init__(channel, prefetch_count)

    # --- prefetch ---------------------------------------------------------------------------------

    @property
    def prefetch_count(self) -> int:
        return self._prefetch_count

    @prefetch_count.setter
    def prefetch_count(self, count: int) -> None:
        with self._changed:
            self._prefetch_count = count or 0
            self._changed.notify_all()

    def _room(self) -> int:
        return max((self._prefetch_count or FETCHED_MAX) - len(self._held), 0)

    def wait_for_room(self, timeout: float) -> int:
        """How many more messages may be fetched; 0 if there is no room within `timeout`."""
        with self._changed:
            self._changed.wait_for(self._room, timeout)
            return min(self._room(), FETCHED_MAX)

    def can_consume(self) -> bool:
        return self._room() > 0

    def can_consume_max_estimate(self) -> int:
        return self._room()

    # --- what is held -----------------------------------------------------------------------------

    def take(self, lease: Lease) -> list[tuple[str, Item]]:
        """Hold the items of a lease, with a delivery tag for each.

        Threads fetch from several queues at once, and together may bring more than there is room
        for: what is too much goes back, and is not counted as tried.
        """
        with self._changed:
            room = 0 if self._ended.is_set() else self._room()
            items = list(lease)
            taken = [(f"{lease.id.hex()}-{item.id.hex()}", item) for item in items[:room]]
            for tag, item in taken:
                self._held[tag] = (lease, item)
            if taken and self._extender is None:
                self._extender = threading.Thread(
                    target=self._extend, name="queueber-celery-leases", daemon=True
                )
                self._extender.start()
        if surplus := items[room:]:
            lease.release(surplus)
        return taken

    def _extend(self) -> None:
        lost: set[bytes] = set()
        while not self._ended.wait(self._lease_seconds / EXTENDS_PER_LEASE):
            with self._changed:
                leases = {lease.id: lease for lease, _ in self._held.values()}
            lost &= leases.keys()
            for lease_id in leases.keys() - lost:
                try:
                    is_extended = leases[lease_id].extend(self._lease_seconds)
                except QueueberError as error:
                    logger.warning("cannot extend a lease: %s", error)
                    continue
                if not is_extended:
                    lost.add(lease_id)
                    logger.warning("a lease was lost; its tasks may be run twice")

    def _pop(self, tag: str) -> tuple[Lease, Item] | None:
        with self._changed:
            held = self._held.pop(tag, None)
            self._changed.notify_all()
        return held

    # --- what kombu calls -------------------------------------------------------------------------

    def append(self, message: Any, delivery_tag: str) -> None:
        """`take` has noted it already."""

    def get(self, delivery_tag: str) -> Any:
        return self._held[delivery_tag][1]

    def ack(self, delivery_tag: str) -> None:
        if (held := self._pop(delivery_tag)) is None:
            return
        lease, item = held
        for last in (False,) * (REMOVES_MAX - 1) + (True,):
            try:
                [is_removed] = lease.remove(item)
            except OutcomeUnknown:
                if last:
                    raise
            else:
                if not is_removed:
                    logger.warning("a task lost its lease before it was acknowledged: %s", item)
                return

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Without `requeue` the message is deleted, as AMQP does."""
        if not requeue:
            self.ack(delivery_tag)
        elif (held := self._pop(delivery_tag)) is not None:
            held[0].release(held[1])

    def fail(self, delivery_tag: str, error: str) -> None:
        """The item is no message: it becomes a dead letter when it has failed often enough."""
        if (held := self._pop(delivery_tag)) is not None:
            held[0].fail(error, ids=held[1])

    def release(self, tags: Iterable[str]) -> None:
        for tag in tags:
            self.reject(tag, requeue=True)

    def restore_unacked(self) -> list[Any]:
        """Give back everything that is held."""
        with self._changed:
            held = list(self._held.values())
            self._held.clear()
            self._changed.notify_all()
        for lease, item in held:
            with contextlib.suppress(QueueberError):  # then it comes back when the lease expires
                lease.release(item)
        return []

    def restore_unacked_once(self, stderr: Any = None) -> None:
        self._on_collect.cancel()
        self._ended.set()
        self.restore_unacked()
