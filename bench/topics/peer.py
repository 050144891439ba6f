"""The interface of a topic's peer: how to start its server, and its usual Python client.

Every client runs on one asyncio loop, which all its callers share.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from bench.peers.peer import Program


class Reader(Protocol):
    """Reads one topic from its start, and keeps its position itself."""

    async def read(self, count: int) -> Sequence[bytes]:
        """The next messages, at most `count`; waits a moment for the first, and may return none."""


class Subscription(Protocol):
    """A group's only consumer, to which the server sends a topic's messages from its start."""

    async def receive(self) -> Sequence[bytes]:
        """The messages that have come since the last call, at most the credits; waits a moment for
        the first, and may return none."""

    async def ack(self, count: int) -> None:
        """Acknowledge the oldest `count` of the received messages, which returns their credits."""


class Topics(Protocol):
    """A client, which any number of callers use at the same time."""

    async def create(self, names: Sequence[str]) -> None:
        """Create topics; the names of topics that belong together differ after the dot."""

    async def delete(self, names: Sequence[str]) -> None:
        """Delete topics with all their messages."""

    async def publish(self, topic: str, messages: Sequence[bytes]) -> None:
        """Publish messages; returns once they are as durable as this server makes them."""

    def reader(self, topic: str) -> AbstractAsyncContextManager[Reader]:
        """A new reader at the topic's start."""

    def subscription(
        self, topic: str, group: str, credits: int
    ) -> AbstractAsyncContextManager[Subscription]:
        """A new group at the topic's start; the server sends it at most `credits` messages that it
        has not acknowledged, if it knows such a limit."""


class TopicPeer(Program, Protocol):
    """A server with topics."""

    def connect(self, address: str, callers: int) -> AbstractAsyncContextManager[Topics]:
        """A client for up to so many calls at a time; it may share connections between them."""
