"""The topic and the group that the path of a request names."""

from functools import wraps
from typing import Any

from queueber.client import AsyncQueue, AsyncTopic
from queueber.errors import NotFound
from queueber.gateway.calls import Call
from queueber.gateway.routes import Handler


def new_topic(call: Call[Any, Any]) -> AsyncTopic:
    """The topic, which the server may create if it does not exist: for publishes."""
    return call.client.topic(call.names["topic"])


def present_topic(call: Call[Any, Any]) -> AsyncTopic:
    """The topic, which must exist."""
    return call.client.topic(call.names["topic"], must_exist=True)


def shared_group(call: Call[Any, Any]) -> AsyncQueue:
    """The shared group, as a queue; topic and group must exist."""
    return present_topic(call).group(call.names["group"])


def trying_twice(handle: Handler) -> Handler:
    """A handler that tries a second time if a topic or group is not there.

    The client may know it from before somebody else deleted it and created it again. It is told so
    once, and nothing has happened; the second time it asks for it anew.
    """

    @wraps(handle)
    async def handle_twice(call: Call[Any, Any]) -> Any:
        try:
            return await handle(call)
        except NotFound:
            return await handle(call)

    return handle_twice
