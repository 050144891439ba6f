"""How a read of a topic is answered, whether it is a topic of its own or the results of a queue."""

from collections.abc import Awaitable, Callable
from typing import Any

from queueber.model import Bounds, Column, MessageSlice
from queueber.rpc.calls import Answer
from queueber.schema import wire
from queueber.service.session import Session
from queueber.wire.lists import read_columns
from queueber.wire.messages import write_slice
from queueber.wire.topics import read_position

_FIELDS = wire.TopicReadRequest.schema.fields
_PARTITION, _FROM, _GROUP = (_FIELDS[name] for name in ("partition", "from", "group"))
_MESSAGES_MAX, _BYTES_MAX = _FIELDS["messagesMax"], _FIELDS["bytesMax"]
_END_OFFSET, _END_MS = _FIELDS["endOffset"], _FIELDS["endMs"]
_TIMEOUT_MS, _WITHOUT = _FIELDS["timeoutMs"], _FIELDS["without"]
_TELLS_TOPIC, _GOES_ON = _FIELDS["tellsTopic"], _FIELDS["goesOn"]
_NONE: frozenset[Column] = frozenset()


def answer_read(
    context: Any, session: Session, topic: Any, read: Callable[..., Awaitable[MessageSlice]]
) -> Answer:
    """Read from the topic with the service's `read`, which may wait."""
    request = context.params.req
    memory = session.answers.new_answer()
    # A field takes a quarter of the time that its name takes, and this is most of what a read is
    # asked with.
    get = request._get_by_field
    without = read_columns(get(_WITHOUT)) if request._has_by_field(_WITHOUT) else _NONE
    found = read(
        topic,
        get(_PARTITION),
        read_position(get(_FROM)),
        Bounds(get(_MESSAGES_MAX), get(_BYTES_MAX), get(_END_OFFSET), get(_END_MS)),
        group=get(_GROUP),
        wait_ms=get(_TIMEOUT_MS),
        memory=memory,
        tells_topic=get(_TELLS_TOPIC),
        goes_on=get(_GOES_ON),
    )

    async def answer() -> None:
        with memory:
            write_slice(context.results.init("resp"), await found, without)

    return answer()
