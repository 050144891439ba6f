"""The queue that the path of a request names."""

from typing import Any

from queueber.client import AsyncQueue
from queueber.gateway.calls import Call


def new_queue(call: Call[Any, Any]) -> AsyncQueue:
    """The queue, which the server creates if it does not exist: for adds and polls."""
    return call.client.queue(call.names["queue"])


def present_queue(call: Call[Any, Any]) -> AsyncQueue:
    """The queue, which must exist."""
    return call.client.queue(call.names["queue"], must_exist=True)
