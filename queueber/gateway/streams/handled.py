"""Handlers of streams, with the statuses of their protocol for what the server refuses."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

from queueber.errors import QueueberError
from queueber.gateway.calls import Call
from queueber.gateway.routes import Handler
from queueber.gateway.streams.answers import problem_of_stream
from queueber.gateway.topics.named_topic import trying_twice


def handled(handle: Callable[[Call[Any, Any]], Coroutine[Any, Any, Any]]) -> Handler:
    twice = trying_twice(handle)

    @wraps(handle)
    async def handle_stream(call: Call[Any, Any]) -> Any:
        try:
            return await twice(call)
        except QueueberError as error:
            raise problem_of_stream(error) from None

    return handle_stream
