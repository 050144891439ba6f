"""The interface of a peer: how to start its server, and its usual Python client."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

WAIT_SECONDS = 0.1
"""How long a take waits for its first item, if the client supports that."""
LEASE_SECONDS = 120
"""Longer than any caller holds an item."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    address: str
    """What its client needs to connect."""
    process_ids: Callable[[], list[int]]
    """Its present processes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Leased items, and what acknowledges them."""

    contents: Sequence[bytes]
    token: Any


class Unavailable(Exception):
    """A server that this machine has not and cannot get: the peer is left out, and why."""


class Client(Protocol):
    """The client of one caller, which makes one call at a time."""

    async def add(self, contents: Sequence[bytes]) -> None:
        """Add items; returns once they are as durable as this queue makes them."""

    async def take(self, count: int) -> Taken:
        """Lease up to `count` items; waits a moment for the first, and may return none."""

    async def ack(self, taken: Taken) -> None:
        """Acknowledge items, which deletes them."""


class Program(Protocol):
    """What every peer has, of queues and of topics."""

    name: str
    """The name in the tables."""
    durability: str
    """The column `synced` of the table: what an acknowledged item survives."""
    notes: str
    """The column `notes` of the table; may be empty."""
    library: str
    """The distribution of its Python client, whose version is shown; empty: the generator of the
    comparison calls it."""

    @property
    def packages(self) -> Sequence[str]:
        """The names of its Debian packages."""

    def version(self) -> str:
        """The server's version; installs missing packages if the user may, or ends the program.

        Raises `Unavailable` if the comparison goes on without this peer.
        """

    def running(self, folder: Path) -> AbstractContextManager[Server]:
        """Run a server on loopback with its data below `folder`; ends all its processes and deletes
        its data afterwards."""


class Peer(Program, Protocol):
    """A queue."""

    is_blocking: bool
    """Whether clients block their thread: then every caller has its own thread."""

    def connect(
        self, address: str, callers: int, queue: str
    ) -> AbstractAsyncContextManager[list[Client]]:
        """A client for each caller of a queue, which is created if it is missing; they may share
        connections. A blocking peer makes one client, on the thread of its caller."""

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """Add `count` items like this one, in the fastest way, synced or not."""
