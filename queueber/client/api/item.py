"""The items of a lease."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import repeat
from types import MappingProxyType

from queueber.client.arguments.values import ItemIds, to_ids
from queueber.client.calls.queue_calls import QueueCalls
from queueber.errors import InvalidArgument
from queueber.ids import made_at_ms
from queueber.limits import SECOND_MS
from queueber.model import NO_DETAILS
from queueber.wire.polls import PolledColumns

NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})

_NO_DETAILS = (repeat(1), repeat(""), repeat(NO_ATTRIBUTES), repeat(""))
_SHOWN_BYTES = 40


class Held:
    """What a lease holds: it knows the lease, for calls that are about the item alone."""

    __slots__ = ("_lease",)

    _lease: "LeasedItems | None"


def held_by(item: object) -> tuple[str, bytes]:
    """The queue and the lease that hold an item."""
    lease = item._lease if isinstance(item, Held) else None
    if lease is None:
        raise InvalidArgument(f"item: {item!r} is not an item of a lease")
    return lease.queue_name, lease.id


# A lease may have thousands of these. So they are not frozen, which takes four times as long to
# build, and have a function of their own for that: a factory of defaults would be called for each.
@dataclass(slots=True, unsafe_hash=True, repr=False, init=False)
class Item(Held):
    """One item of a lease. Do not change its attributes."""

    id: bytes
    contents: bytes
    attempt: int
    """1 for the first. Failures count, and so does a lease that expired with this item alone."""
    key: str
    attributes: Mapping[str, str] = field(hash=False)
    batch: str
    deliveries: int
    """How often it was leased, this time included: also what counts no attempt, because it was
    released or lost together with others. Those are counted up to 255."""
    timeout: float | None
    """The seconds that a worker may take, if the item has a time limit of its own."""

    def __init__(
        self,
        id: bytes,
        contents: bytes,
        attempt: int = 1,
        key: str = "",
        attributes: Mapping[str, str] = NO_ATTRIBUTES,
        batch: str = "",
        lease: "LeasedItems | None" = None,
        deliveries: int = 1,
        timeout: float | None = None,
    ) -> None:
        self.id = id
        self.contents = contents
        self.attempt = attempt
        self.key = key
        self.attributes = attributes
        self.batch = batch
        self.deliveries = deliveries
        self.timeout = timeout
        self._lease = lease  # type: ignore[misc]  # a slot of the base, which a dataclass hides

    @property
    def added_at(self) -> datetime | None:
        """When it was added, by the server's clock. None for a message of a shared group, whose id
        says where it is, and not when it came; `peek` and `Topic.read` tell that."""
        made_ms = made_at_ms(self.id)
        return datetime.fromtimestamp(made_ms / SECOND_MS, UTC) if made_ms else None

    def __repr__(self) -> str:
        cut = "..." if len(self.contents) > _SHOWN_BYTES else ""
        return (
            f"<Item {self.id.hex()} {self.contents[:_SHOWN_BYTES]!r}{cut} attempt={self.attempt}>"
        )


class LeasedItems:
    """The items that a poll returned, as both kinds of leases have them."""

    def __init__(self, calls: QueueCalls, polled: PolledColumns) -> None:
        self._calls = calls.leases
        self.queue_name = calls.name
        self._polled = polled
        self._items: list[Item] | None = None
        self.id = polled.lease_id

    def __repr__(self) -> str:
        kind, told = type(self).__name__, self.id.hex() or "empty"
        return f"<{kind} {told} items={len(self)} queue={self.queue_name!r}>"

    @property
    def items(self) -> list[Item]:
        if self._items is None:
            self._items = _items_of(self._polled, self)
        return self._items

    @property
    def ids(self) -> list[bytes]:
        return list(self._polled.ids)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self._polled.contents)

    def _chosen(self, ids: ItemIds | None) -> list[bytes]:
        return self.ids if ids is None else to_ids("ids", ids)


def _items_of(polled: PolledColumns, lease: LeasedItems) -> list[Item]:
    details, count = polled.details, len(polled.contents)
    if details is NO_DETAILS:
        return list(map(Item, polled.ids, polled.contents, *_NO_DETAILS, repeat(lease)))
    return list(
        map(
            Item,
            polled.ids,
            polled.contents,
            details.attempts or [1] * count,
            details.keys or [""] * count,
            details.attributes or [NO_ATTRIBUTES] * count,
            details.batches or [""] * count,
            repeat(lease),
            details.deliveries or details.attempts or repeat(1),
            [each / SECOND_MS if each else None for each in details.timeouts_ms] or repeat(None),
        )
    )
