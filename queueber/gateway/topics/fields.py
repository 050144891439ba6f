"""Fields that the structs of several routes share, with their limits and what they mean."""

from typing import Annotated

from msgspec import Meta

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
TIME_MS_MAX = (1 << 48) - 1

TopicName = Annotated[
    str,
    Meta(pattern=f"^[A-Za-z0-9._/-]{{1,{TOPIC_NAME_BYTES_MAX}}}$", examples=["orders"]),
]
GroupName = Annotated[str, Meta(min_length=1, max_length=GROUP_NAME_BYTES_MAX)]
Payload = queue_fields.Contents
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
    dict[Annotated[str, Meta(min_length=1)], str],
    Meta(max_length=ATTRIBUTES_MAX, description="Text that goes with a message."),
]
Partition = Annotated[int, Meta(ge=0, le=TOPIC_PARTITIONS_MAX - 1)]
Count = queue_fields.Count
Offset = Count
TimeMs = Annotated[int, Meta(ge=0, le=TIME_MS_MAX, description="Milliseconds since 1970.")]
Retention = Annotated[int, Meta(ge=0, le=RETENTION_MS_MAX)]
Some = Annotated[int, Meta(ge=1, le=COUNT_MAX)]
WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]

_PLACES = "earliest|latest|[0-9]{1,18}|time:[0-9]{1,14}|last:[0-9]{1,18}"
_PLACES_TEXT = (
    "An offset, `earliest`, `latest`, `time:MS` (the first message that was published then, in "
    "milliseconds since 1970, or later) or `last:N` (so many messages before the end){more}."
)
PlaceText = Annotated[str, Meta(pattern=f"^({_PLACES})$", description=_PLACES_TEXT.format(more=""))]
Place = Annotated[int, Meta(ge=0, le=COUNT_MAX)] | PlaceText
PlaceOrGroup = Annotated[
    str,
    Meta(
        pattern=f"^({_PLACES}|group:.+)$",
        max_length=len("group:") + GROUP_NAME_BYTES_MAX,
        description=_PLACES_TEXT.format(more=" or `group:NAME` (where that group goes on)"),
    ),
]


def to_position(place: int | str, *, moves: bool = False) -> Position:
    """The place that a request names."""
    if isinstance(place, int) or place.isdigit():
        return Position(Start.OFFSET, int(place), moves)
    word, _, value = place.partition(":")
    return Position(Start(word), int(value or 0), moves)
