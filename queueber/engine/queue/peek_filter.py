"""Filters of items that are looked at: which fields items have, and whether an item matches.

The language is that of the filters of routes (`queueber/filters/`). A route asks an event, a peek
asks an item as it is now: so some fields are only here, and `change` is only there.
"""

from queueber.errors import InvalidArgument
from queueber.filters import Field, Filter, RecordView, Room, parse_filter
from queueber.model import ItemInfo, ItemState

ITEM_FIELDS = frozenset(
    {
        "id", "key", "state", "attempt", "deliveries", "priority", "batch", "error", "reason",
        "lease", "added_at_ms", "at_ms", "bytes",
    }
)  # fmt: skip
"""What filters may ask of an item, beside its attributes and contents."""

_NEEDING_CONTENTS = Field(Room.ITEM, ("bytes",))


class PeekFilter:
    def __init__(self, text: str) -> None:
        """Raises `InvalidArgument` if the text is wrong, or names a field that items do not
        have."""
        self._filter: Filter = parse_filter(text)
        for field in sorted(self._filter.fields, key=str):
            if field.room is Room.ITEM and ".".join(field.path) not in ITEM_FIELDS:
                raise InvalidArgument(
                    f"where: {field} is no field of an item; there are "
                    f"{', '.join(sorted(ITEM_FIELDS))}"
                )
        self.needs_contents = (
            self._filter.reads_contents or _NEEDING_CONTENTS in self._filter.fields
        )

    def matches(self, item: ItemInfo, state: ItemState) -> bool:
        fields: dict[str, object] = {
            "id": item.id.hex(),
            "key": item.key or None,
            "state": state.value,
            "attempt": item.attempts + 1,
            "deliveries": item.deliveries,
            "priority": item.priority,
            "batch": item.batch or None,
            "error": item.last_error or None,
            "reason": item.reason or None,
            "lease": item.lease_id.hex() or None,
            "added_at_ms": item.added_at_ms,
            "at_ms": item.at_ms,
            "bytes": len(item.contents),
        }
        return self._filter.matches(RecordView(fields, item.attributes, item.contents))
