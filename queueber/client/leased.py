"""The items of a lease, as every face shows them."""

from collections.abc import Iterator
from dataclasses import dataclass

from queueber.client.calls import QueueCalls
from queueber.model import Polled


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a lease."""

    id: bytes
    contents: bytes


class Leased:
    """Items that are yours for a while. True when there are any."""

    def __init__(self, calls: QueueCalls, polled: Polled) -> None:
        self._calls = calls
        self.id = polled.lease_id
        self.items = [Item(i, c) for i, c in zip(polled.ids, polled.contents, strict=True)]

    @property
    def ids(self) -> list[bytes]:
        return [item.id for item in self.items]

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
