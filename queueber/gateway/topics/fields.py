"""Fields that the structs of several routes share, with their limits and what they mean."""

from typing import Annotated, Literal

from msgspec import Meta

from queueber.gateway.problems import invalid
from queueber.gateway.queues import fields as queue_fields
from queueber.gateway.settings import WAIT_MS_MAX
from queueber.limits import (
    ATTRIBUTES_MAX,
    DEDUP_ID_BYTES_MAX,
    GROUP_NAME_BYTES_MAX,
    KEY_BYTES_MAX,
    RETENTION_MS_MAX,
    TOPIC_NAME_BYTES_MAX,
    TOPIC_PARTITIONS_MAX,
)
from queueber.model import Position, Start

COUNT_MAX = queue_fields.COUNT_MAX
TIME_MS_MAX = 10**15 - 1

TopicName = Annotated[
    str,
    Meta(pattern=f"^[A-Za-z0-9._/-]{{1,{TOPIC_NAME_BYTES_MAX}}}$", examples=["orders"]),
]
GroupName = Annotated[str, Meta(min_length=1, max_length=GROUP_NAME_BYTES_MAX)]
Payload = Annotated[bytes, Meta(description="Bytes, in base64.", examples=["aGVsbG8="])]
Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=KEY_BYTES_MAX,
        description="Messages of one key go to one partition. At most "
        f"{KEY_BYTES_MAX} bytes of UTF-8.",
    ),
]
DedupId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=DEDUP_ID_BYTES_MAX,
        description="A second message with this id is not published within the topic's dedup "
        f"window. At most {DEDUP_ID_BYTES_MAX} bytes of UTF-8.",
    ),
]
Attributes = Annotated[
    dict[str, str], Meta(max_length=ATTRIBUTES_MAX, description="Text that goes with a message.")
]
Partition = Annotated[int, Meta(ge=0, le=TOPIC_PARTITIONS_MAX - 1)]
Count = queue_fields.Count
Offset = Count
TimeMs = Annotated[int, Meta(ge=0, le=TIME_MS_MAX, description="Milliseconds since 1970.")]
Retention = Annotated[int, Meta(ge=0, le=RETENTION_MS_MAX)]
Some = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]

Place = Annotated[
    Annotated[int, Meta(ge=0, le=COUNT_MAX)] | Literal["earliest", "latest"],
    Meta(description="An offset, `earliest` or `latest`."),
]


def to_position(
    field: str,
    place: int | str | None,
    time_ms: int | None,
    last: int | None,
    *,
    moves: bool = False,
) -> Position | None:
    """The place that a request names in one of three ways, or None. `field` is what the request
    calls the first of them."""
    ways = ((field, place), ("time_ms", time_ms), ("last", last))
    given = [name for name, value in ways if value is not None]
    if len(given) > 1:
        raise invalid(f"{given[1]}: {given[0]} was given, too; give one of them")
    if time_ms is not None:
        return Position(Start.TIME, time_ms, moves)
    if last is not None:
        return Position(Start.LAST, last, moves)
    if isinstance(place, str):
        return Position(Start(place), 0, moves)
    return None if place is None else Position(Start.OFFSET, place, moves)


def needed_position(to: int | str | None, time_ms: int | None, last: int | None) -> Position:
    """As `to_position`, for a request that changes something: it must name the place."""
    position = to_position("to", to, time_ms, last)
    if position is None:
        raise invalid("to: it is missing; give to, time_ms or last")
    return position
