"""Values of routes: which changes of a queue's items a topic gets, and what their events hold."""

from dataclasses import dataclass
from enum import StrEnum


class On(StrEnum):
    """What a change does with an item."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class EventPayload(StrEnum):
    """What an event holds of the item."""

    KEY = "key"
    """Its id and key."""
    FULL = "full"
    """Its contents, as they are; its attributes are those of the message."""
    DIFF = "diff"
    """The fields that changed, each as it was and as it is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A route as its topic knows it. A topic has one at most for each queue and `on`."""

    queue: str
    on: On
    where: str = ""
    """Only changes that this filter matches; "": all."""
    partition_by: str = ""
    """The fields that choose the partition; "": the key of the event."""
    payload: EventPayload = EventPayload.KEY
