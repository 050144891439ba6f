"""The item that a handler gets, and the lease that holds it."""

from typing import Any

from queueber.client import Item


class HeldLease:
    """A lease of this pool. The heartbeat extends it while `unreported` is above zero."""

    __slots__ = ("extended_at", "id", "is_lost", "unreported")

    def __init__(self, lease_id: bytes, items: int, now: float) -> None:
        self.id = lease_id
        self.unreported = items
        """Items of the lease whose outcome the server has not confirmed yet."""
        self.is_lost = False
        """The lease ended before its items were reported; other workers may have them."""
        self.extended_at = now


class WorkItem(Item):
    """An item as a handler gets it: an `Item` with `value` and `is_lost`."""

    __slots__ = ("lease", "value")

    lease: HeldLease
    value: Any
    """What the deserializer returned for the contents; without a deserializer, the contents."""

    def __init__(self, item: Item, lease: HeldLease) -> None:
        super().__init__(
            item.id, item.contents, item.attempt, item.key, item.attributes, item.batch
        )
        self.lease = lease
        self.value = item.contents

    @property
    def is_lost(self) -> bool:
        """Whether the lease has ended: the server will refuse the result, and another worker may
        already have the item."""
        return self.lease.is_lost

    # Compared by identity: a pool may hold one item twice, under a lost lease and under a new one.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other
