"""Who is told of an append: rooms of the gateway that follow streams, such as subscriptions."""

from collections.abc import Callable
from typing import Any, cast

from queueber.gateway.calls import Call

STATE = "stream_appended"
"""Where the list of those who are told is in the gateway's state."""

Told = Callable[[str, int], None]
"""Gets the path of the stream, and the offset at which it goes on."""


def tell_appended(call: Call[Any, Any], path: str, end_offset: int) -> None:
    """What was appended is on disk."""
    for tell in cast(list[Told], call.state.get(STATE, ())):
        tell(path, end_offset)
