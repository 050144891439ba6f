"""How a read of a topic is answered, whether it is a topic of its own or the results of a queue."""

from collections.abc import Awaitable, Callable
from typing import Any

from queueber.model import Bounds, MessageSlice
from queueber.rpc.calls import Answer
from queueber.service.session import Session
from queueber.wire.lists import read_columns
from queueber.wire.messages import write_slice
from queueber.wire.topics import read_position


def answer_read(
    context: Any, session: Session, topic: Any, read: Callable[..., Awaitable[MessageSlice]]
) -> Answer:
    """Read from the topic with the service's `read`, which may wait."""
    request = context.params.req
    memory = session.answers.new_answer()
    without = read_columns(request.without)
    found = read(
        topic,
        request.partition,
        read_position(getattr(request, "from")),
        Bounds(request.messagesMax, request.bytesMax, request.endOffset, request.endMs),
        group=request.group,
        wait_ms=request.timeoutMs,
        memory=memory,
    )

    async def answer() -> None:
        with memory:
            write_slice(context.results.init("resp"), await found, without)

    return answer()
