"""What a pool holds: leases, and the items that handlers get."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from queueber.client import Item

_IDS_SHOWN_MAX = 20


class HeldLease:
    """A lease of this pool. It is kept alive as long as items of it are `left` to report."""

    __slots__ = ("extended_at", "id", "is_lost", "left")

    def __init__(self, lease_id: bytes, left: int, now: float) -> None:
        self.id = lease_id
        self.left = left
        self.is_lost = False
        """It has ended before its items were done; others may have them."""
        self.extended_at = now


class WorkItem(Item):
    """An item in the hands of a handler.

    Beside what every item has, it knows whether its lease still stands, and carries the contents as
    the pool's deserializer read them.
    """

    __slots__ = ("lease", "value")

    lease: HeldLease
    value: Any
    """What the deserializer made of the contents; without one, the contents."""

    def __init__(self, item: Item, lease: HeldLease) -> None:
        super().__init__(
            item.id,
            item.contents,
            item.attempt,
            item.key,
            item.attributes,
            item.batch,
        )
        _set(self, "lease", lease)
        _set(self, "value", item.contents)

    @property
    def is_lost(self) -> bool:
        """Whether the lease has ended: the result will be refused, and others may do the item."""
        return self.lease.is_lost

    def set_value(self, value: Any) -> None:
        _set(self, "value", value)

    # One item may be in the pool twice: given back when its lease was lost, and leased anew.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def shown_ids(items: Iterable[WorkItem]) -> list[str]:
    """As much of them as a line of a log can bear."""
    return [item.id.hex() for item in islice(items, _IDS_SHOWN_MAX)]


_set = object.__setattr__
"""Items are frozen."""
