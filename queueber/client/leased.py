"""The items of a lease, as every face shows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from queueber.client.arguments import CompletedResults, ItemIds, to_ids
from queueber.client.calls import QueueCalls
from queueber.ids import made_at_ms
from queueber.limits import SECOND_MS
from queueber.model import Polled

NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})

Completed = Mapping[bytes, bytes] | CompletedResults
"""Results of a lease: by id, or one for each item in order; bytes alone when there is one item."""


# Not frozen: that takes four times as long to build, and a lease may have thousands.
@dataclass(slots=True, unsafe_hash=True)
class Item:
    """One item of a lease, to be read only."""

    id: bytes
    contents: bytes
    attempt: int = 1
    """1 for the first. Failures count, and leases that ran out with this item alone in them."""
    key: str = ""
    attributes: Mapping[str, str] = field(default_factory=lambda: NO_ATTRIBUTES, hash=False)
    batch: str = ""

    @property
    def added_at(self) -> datetime:
        """When it was added, by the server's clock."""
        return datetime.fromtimestamp(made_at_ms(self.id) / SECOND_MS, UTC)


class Leased:
    """Items that are yours for a while. True when there are any."""

    def __init__(self, calls: QueueCalls, polled: Polled) -> None:
        self._calls = calls
        self._polled = polled
        self._items: list[Item] | None = None
        self.id = polled.lease_id

    @property
    def items(self) -> list[Item]:
        if self._items is None:
            self._items = list(_items(self._polled))
        return self._items

    @property
    def ids(self) -> list[bytes]:
        return list(self._polled.ids)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self._polled.ids)

    def _removal(self, ids: ItemIds | None) -> "Future[list[bool]] | None":
        """The call that removes those items, or all; None when there are none."""
        if ids is None:
            held = self._polled.ids
            return self._calls.outcomes.remove_whole(held, self.id) if held else None
        chosen = to_ids("ids", ids)
        return self._calls.outcomes.remove(chosen, self.id) if chosen else None

    def _chosen(self, ids: ItemIds | None) -> list[bytes]:
        return self.ids if ids is None else to_ids("ids", ids)

    def _results(self, results: Completed) -> tuple[Sequence[bytes], CompletedResults]:
        """AddedIds, and a result for each."""
        if isinstance(results, Mapping):
            return list(results), list(results.values())
        return self.ids, results


def _items(polled: Polled) -> Iterable[Item]:
    details, count = polled.details, len(polled.ids)
    return map(
        Item,
        polled.ids,
        polled.contents,
        details.attempts or [1] * count,
        details.keys or [""] * count,
        details.attributes or [NO_ATTRIBUTES] * count,
        details.batches or [""] * count,
    )
