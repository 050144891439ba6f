"""One item of a lease."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

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


def items_of(polled: Polled) -> list[Item]:
    """The items that a poll returned."""
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
