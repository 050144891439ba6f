"""One route: which changes of a queue a topic gets. Its texts are parsed once.

A route that is read from the store is parsed when the first change comes: a server with many routes
starts as fast as one without.
"""

import json
from functools import cached_property

from queueber.db.records.routes import RouteRecord
from queueber.errors import InvalidArgument
from queueber.filters import Field, Filter, Room, View, parse_fields, parse_filter
from queueber.ids import QueueId
from queueber.model import EventPayload, On

ITEM_FIELDS = frozenset(
    {
        "id", "key", "queue", "change", "state", "attempt", "priority", "batch", "error",
        "added_at_ms", "bytes",
    }
)  # fmt: skip
"""What filters may ask of an item, beside its attributes and contents."""

_NEEDING_CONTENTS = Field(Room.ITEM, ("bytes",))


class Route:
    def __init__(self, queue_id: QueueId, on: On, topic_id: QueueId, record: RouteRecord) -> None:
        self.queue_id = queue_id
        self.on = on
        self.topic_id = topic_id
        self.record = record

    @property
    def payload(self) -> EventPayload:
        return self.record.payload

    @cached_property
    def where(self) -> Filter | None:
        return parse_filter(self.record.where) if self.record.where else None

    @cached_property
    def partition_by(self) -> tuple[Field, ...]:
        return parse_fields(self.record.partition_by) if self.record.partition_by else ()

    @cached_property
    def needs_contents(self) -> bool:
        """Whether the contents of an item must be read for its event."""
        return self.payload is EventPayload.FULL or any(
            each.room is Room.CONTENTS or each == _NEEDING_CONTENTS for each in self._fields
        )

    @cached_property
    def looks_at_items(self) -> bool:
        """Whether it asks for any field."""
        return bool(self._fields)

    @property
    def _fields(self) -> frozenset[Field]:
        asked = self.where.fields if self.where is not None else frozenset()
        return asked | set(self.partition_by)

    def check(self) -> None:
        """Raises `InvalidArgument` if a text is wrong, or names a field that items do not have."""
        for field in sorted(self._fields, key=str):
            if field.room is Room.ITEM and ".".join(field.path) not in ITEM_FIELDS:
                raise InvalidArgument(
                    f"{field} is no field of an item; there are {', '.join(sorted(ITEM_FIELDS))}"
                )

    def partition_text(self, view: View) -> str | None:
        """What chooses the partition of an event, as the key of a message would; None if the item
        has none of the fields."""
        values = [view.value(field) for field in self.partition_by]
        if all(each is None for each in values):
            return None
        if len(values) > 1:
            return json.dumps(values, separators=(",", ":"))
        (only,) = values
        if isinstance(only, str):
            return only.encode(errors="replace").decode()  # JSON may have halves of surrogates
        return json.dumps(only, separators=(",", ":"))
