"""A live tail of a topic as server-sent events.

Every event has the offsets of all partitions that are followed as its id, such as `1:5,0:17`, the
message's own first. A browser sends the last id that it has seen as `Last-Event-ID` when it
reconnects, and the tail goes on behind it, at this gateway or another one.
"""

from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.responses import Response

from queueber import errors
from queueber.gateway.bounds import Bound
from queueber.gateway.calls import Call
from queueber.gateway.problems import invalid
from queueber.gateway.routes import Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.named_topic import present_topic
from queueber.gateway.topics.tails.event_stream import EVENTS_TYPE, EventStream
from queueber.gateway.topics.tails.followed import begin
from queueber.limits import MIB, SECOND_MS, TOPIC_PARTITIONS_MAX

_LAST_EVENT_ID = b"last-event-id"
_UNSENT_BYTES_MAX = 128 * MIB
"""Messages of all tails of a process that their callers have not read yet."""


class TailQuery(msgspec.Struct, forbid_unknown_fields=True):
    partitions: Annotated[str, Meta(pattern=r"^([0-9]{1,3}(,[0-9]{1,3}){0,255})?$")] = ""
    """Numbers with commas between them; all if it is left out."""
    from_: fields.PlaceText = msgspec.field(name="from", default="latest")
    moves: bool = False
    """Begin at the nearest message if the offset is not there, instead of 416."""
    messages_max: fields.Some | None = None
    """End after so many messages."""
    heartbeat_ms: Annotated[int, Meta(ge=100, le=300_000)] = 15 * SECOND_MS
    """A comment is sent when there was no message for so long."""


async def tail(call: Call[TailQuery, None]) -> Response:
    query, topic = call.query, present_topic(call)
    position = fields.to_position(query.from_, moves=query.moves)
    resumed = _resumed(call.headers.get(_LAST_EVENT_ID, b""))
    count = len((await topic.describe()).partitions)
    partitions = _partitions(query.partitions, count)
    followed = await begin(topic, partitions, position, resumed)
    if resumed and all(each.is_over for each in followed):
        # The one answer after which a browser does not connect again.
        return Response(status_code=204)
    unsent = call.state.setdefault("tails", Bound("bytes wait for slow tails", _UNSENT_BYTES_MAX))
    assert isinstance(unsent, Bound)
    return EventStream(call, topic, followed, unsent, query.messages_max, query.heartbeat_ms)


def _partitions(given: str, count: int) -> list[int]:
    partitions = [int(each) for each in given.split(",")] if given else list(range(count))
    if len(set(partitions)) != len(partitions):
        raise invalid("query: partitions: one is named twice")
    for each in partitions:
        if each >= count:
            raise invalid(f"query: partitions: the topic has {count}, from 0 on; {each} is none")
    return partitions


def _resumed(text: bytes) -> dict[int, int]:
    """For each partition the offset that comes next."""
    try:
        pairs = [each.split(b":") for each in text.split(b",")] if text else []
        resumed = {int(partition): int(offset) + 1 for partition, offset in pairs}
        is_right = all(
            0 <= partition < TOPIC_PARTITIONS_MAX and 0 <= offset <= fields.COUNT_MAX
            for partition, offset in resumed.items()
        )
    except ValueError:
        is_right = False
    if not is_right:
        raise invalid(f"last-event-id: {text[:100]!r} is not the id of an event of a tail")
    return resumed


ROUTES = (
    Route(
        "GET", "/v1/topics/{topic}/tail", tail, "Follow a topic as server-sent events",
        "messages",
        description="Events are of type `message` (its data is a message as `GET "
        "/v1/topics/{topic}/messages` shows it), `missed` (messages that were deleted before they "
        "could be sent), `closed` (the topic is closed and all was sent) or `problem`. The id of "
        "an event is `PARTITION:OFFSET`, followed by those of the other partitions; with it as "
        "`Last-Event-ID` the tail goes on behind it, and 204 says that nothing will follow. A "
        "caller that does not read is disconnected.",
        query=TailQuery, answer_type=EVENTS_TYPE,
        errors=(errors.NotFound, errors.OutOfRange),
        other_statuses={204: "The topic is closed, and the caller has seen all of it."},
    ),
)  # fmt: skip
