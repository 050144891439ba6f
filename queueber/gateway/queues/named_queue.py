"""The queue that the path of a request names."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from queueber.client import AsyncQueue
from queueber.errors import NotFound
from queueber.gateway.calls import Call

T = TypeVar("T")


async def in_new_queue(call: Call[Any, Any], use: Callable[[AsyncQueue], Awaitable[T]]) -> T:
    """Use the queue, which the server creates if it does not exist: for adds and polls.

    The client may know it from before it was deleted by somebody else. It is told so once, and
    nothing has happened; the second time it asks for it anew.
    """
    name = call.names["queue"]
    try:
        return await use(call.client.queue(name))
    except NotFound:
        return await use(call.client.queue(name))


def present_queue(call: Call[Any, Any]) -> AsyncQueue:
    """The queue, which must exist."""
    return call.client.queue(call.names["queue"], must_exist=True)
