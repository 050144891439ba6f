"""The topic and the group that the path of a request names."""

from typing import Any

from queueber.client import AsyncQueue, AsyncTopic
from queueber.gateway.calls import Call


def new_topic(call: Call[Any, Any]) -> AsyncTopic:
    """The topic, which the server may create if it does not exist: for publishes."""
    return call.client.topic(call.names["topic"])


def present_topic(call: Call[Any, Any]) -> AsyncTopic:
    """The topic, which must exist."""
    return call.client.topic(call.names["topic"], must_exist=True)


def shared_group(call: Call[Any, Any]) -> AsyncQueue:
    """The shared group, as a queue; topic and group must exist."""
    return present_topic(call).group(call.names["group"])
