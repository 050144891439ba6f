"""The items of a lease."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from queueber.client.arguments.values import ItemIds, to_ids
from queueber.client.calls.client_calls import QueueCalls
from queueber.ids import made_at_ms
from queueber.limits import SECOND_MS
from queueber.model import Polled

NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})

_SHOWN_BYTES = 40


# Not frozen: that takes four times as long to build, and a lease may have thousands.
@dataclass(slots=True, unsafe_hash=True, repr=False)
class Item:
    """One item of a lease. Do not change its attributes."""

    id: bytes
    contents: bytes
    attempt: int = 1
    """1 for the first. Failures count, and so does a lease that expired with this item alone."""
    key: str = ""
    attributes: Mapping[str, str] = field(default_factory=lambda: NO_ATTRIBUTES, hash=False)
    batch: str = ""

    @property
    def added_at(self) -> datetime:
        """When it was added, by the server's clock."""
        return datetime.fromtimestamp(made_at_ms(self.id) / SECOND_MS, UTC)

    def __repr__(self) -> str:
        cut = "..." if len(self.contents) > _SHOWN_BYTES else ""
        return (
            f"<Item {self.id.hex()} {self.contents[:_SHOWN_BYTES]!r}{cut} attempt={self.attempt}>"
        )


class LeasedItems:
    """The items that a poll returned, as both kinds of leases have them."""

    def __init__(self, calls: QueueCalls, polled: Polled) -> None:
        self._calls = calls.leases
        self._queue_name = calls.name
        self._polled = polled
        self._items: list[Item] | None = None
        self.id = polled.lease_id

    def __repr__(self) -> str:
        kind, told = type(self).__name__, self.id.hex() or "empty"
        return f"<{kind} {told} items={len(self)} queue={self._queue_name!r}>"

    @property
    def items(self) -> list[Item]:
        if self._items is None:
            self._items = _items_of(self._polled)
        return self._items

    @property
    def ids(self) -> list[bytes]:
        return list(self._polled.ids)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self._polled.ids)

    def _chosen(self, ids: ItemIds | None) -> list[bytes]:
        return self.ids if ids is None else to_ids("ids", ids)


def _items_of(polled: Polled) -> list[Item]:
    details, count = polled.details, len(polled.ids)
    return list(
        map(
            Item,
            polled.ids,
            polled.contents,
            details.attempts or [1] * count,
            details.keys or [""] * count,
            details.attributes or [NO_ATTRIBUTES] * count,
            details.batches or [""] * count,
        )
    )
