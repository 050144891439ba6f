"""Reading messages, and finding one by its id or sequence. Neither leaves a trace."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.responses import Response

from queueber import errors
from queueber.client import MessagePage
from queueber.gateway.bodies import RAW_TYPE
from queueber.gateway.calls import Call
from queueber.gateway.problems import invalid, problem_of
from queueber.gateway.queues.fields import Id
from queueber.gateway.routes import Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.messages import (
    MessageRead,
    encoded_texts,
    raw_message,
    shown_message,
)
from queueber.gateway.topics.named_topic import present_topic
from queueber.limits import READ_ITEMS_MAX, SECOND_MS


class MessagesQuery(msgspec.Struct, forbid_unknown_fields=True):
    partition: fields.Partition = 0
    from_: fields.PlaceOrGroup = msgspec.field(name="from", default="earliest")
    moves: bool = False
    """Begin at the nearest message if the offset is not there, instead of 416; see `missed`."""
    messages_max: Annotated[int, Meta(ge=1, le=READ_ITEMS_MAX)] = 100
    bytes_max: fields.Some | None = None
    """One message is always sent. The server sends about 2 MiB at most."""
    end_offset: fields.Some | None = None
    """Only messages before it."""
    end_time_ms: fields.TimeMs | None = None
    """Only messages that were published before it."""
    wait_ms: fields.WaitMs = 0
    """How long to wait for a message if there is none."""


class MessagesAnswer(msgspec.Struct):
    messages: list[MessageRead]
    next_offset: int
    """Where the next read begins."""
    first_kept: int
    """The offset of the oldest message that is kept."""
    end_offset: int
    """The offset that the next message of the partition will get."""
    missed: int
    """Messages from the wanted offset on that had been deleted."""
    is_closed: bool
    """Whether no message will come after `end_offset`."""


class FindQuery(msgspec.Struct, forbid_unknown_fields=True):
    """One of the two."""

    id: Id | None = None
    sequence: fields.Count | None = None
    """The first message of partition 0 with this sequence or a greater one."""


class FindAnswer(msgspec.Struct):
    partition: int
    offset: int


async def read(call: Call[MessagesQuery, None]) -> MessagesAnswer | Response:
    query = call.query
    is_raw = call.headers.get(b"accept") == RAW_TYPE.encode()
    call.bounds.unread.make_room()
    reading = present_topic(call).read(
        query.partition,
        wait=query.wait_ms / SECOND_MS,
        **_options(query, messages_max=1 if is_raw else query.messages_max),
    )
    page = await (call.wait(reading) if query.wait_ms else reading)
    if is_raw:
        return _raw(page)
    return MessagesAnswer(
        [shown_message(each) for each in page],
        page.next_offset,
        page.first_kept,
        page.end_offset,
        page.missed,
        page.is_closed,
    )


def _options(query: MessagesQuery, *, messages_max: int) -> dict[str, Any]:
    options: dict[str, Any] = {"limit": messages_max, "moves": query.moves}
    word, _, name = query.from_.partition(":")
    if word == "group":
        options["group"] = name
    else:
        options["start"] = fields.to_position(query.from_, moves=query.moves)
    if query.bytes_max is not None:
        options["bytes"] = query.bytes_max
    if query.end_offset is not None:
        options["end_offset"] = query.end_offset
    if query.end_time_ms is not None:
        options["end_time"] = query.end_time_ms / SECOND_MS
    return options


def _raw(page: MessagePage) -> Response:
    """The first message as it was published; 204 if there is none."""
    told = {"next-offset": page.next_offset, "missed": page.missed}
    if not page:
        headers = {f"queueber-{name}": str(value) for name, value in told.items()}
        headers["queueber-closed"] = str(page.is_closed).lower()
        return Response(status_code=204, headers=headers)
    message = page[0]
    told |= {
        "partition": message.partition,
        "offset": message.offset,
        "sequence": message.sequence,
        "published-at-ms": message.timestamp_ms,
    }
    texts = {"id": message.id.hex(), **encoded_texts(message.key, message.attributes)}
    return raw_message(message.payload, told, texts)


async def find(call: Call[FindQuery, None]) -> FindAnswer:
    query = call.query
    if (query.id is None) == (query.sequence is None):
        raise invalid("query: id: give an id or a sequence, one of the two")
    found = await present_topic(call).find(query.id, sequence=query.sequence)
    if found is None:
        raise problem_of(errors.NotFound("there is no such message in the topic"))
    return FindAnswer(*found)


_MESSAGE = {
    "partition": 0,
    "offset": 17,
    "payload": "aGVsbG8=",
    "key": "order-17",
    "attributes": {},
    "id": "0192f0c1a2b37c4d8e5f60718293a4b5",
    "sequence": 170,
    "published_at_ms": 1730000000000,
}

ROUTES = (
    Route(
        "GET", "/v1/topics/{topic}/messages", read, "Read messages of a partition", "messages",
        description="Anybody may read, and leaves no trace. With `Accept: "
        "application/octet-stream` the answer is the payload of one message, and the rest is in "
        "headers such as `Queueber-Next-Offset`; 204 if there is none.",
        query=MessagesQuery, answer=MessagesAnswer, is_raw_answer_possible=True,
        errors=(errors.NotFound, errors.OutOfRange),
        answer_example={
            "messages": [_MESSAGE], "next_offset": 18, "first_kept": 0, "end_offset": 18,
            "missed": 0, "is_closed": False,
        },
    ),
    Route(
        "GET", "/v1/topics/{topic}/find", find, "Find a message by its id or sequence",
        "messages", query=FindQuery, answer=FindAnswer, errors=(errors.NotFound,),
        answer_example={"partition": 0, "offset": 17},
    ),
)  # fmt: skip
