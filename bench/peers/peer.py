"""What the comparison asks of a queue: a server that it starts, and its usual Python client."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

WAIT_SECONDS = 0.1
"""How long a call that takes waits for its first item, where a client can say that."""
LEASE_SECONDS = 120
"""Longer than any item is held."""


@dataclass(frozen=True, slots=True)
class Server:
    """One that runs."""

    address: str
    """Whatever its client needs to reach it."""
    process_ids: Callable[[], list[int]]
    """Its processes as they are now."""


@dataclass(frozen=True, slots=True)
class Taken:
    """Items under a lease, and what acknowledges them."""

    contents: Sequence[bytes]
    token: Any


class Client(Protocol):
    """What one caller calls, one call at a time."""

    async def add(self, contents: Sequence[bytes]) -> None:
        """Return once they are as durable as this queue makes them."""

    async def take(self, count: int) -> Taken:
        """Lease up to `count` items; waits a moment for the first, and may bring none."""

    async def ack(self, taken: Taken) -> None:
        """They are done, and gone."""


class Peer(Protocol):
    name: str
    """As in the table."""
    durability: str
    """What an acknowledged item survives, in a few words: the table's column `synced`."""
    notes: str
    """What else one must know to read its line; may be empty."""
    library: str
    """The distribution of its Python client, whose version is told."""
    is_blocking: bool
    """Whether clients block their thread: then every caller has a thread of its own."""

    @property
    def packages(self) -> Sequence[str]:
        """Of Debian."""

    def version(self) -> str:
        """Of the server; installs its packages if need and rights be, or ends the program."""

    def running(self, folder: Path) -> AbstractContextManager[Server]:
        """A server on loopback with its data below `folder`; stopped, with all its processes, and
        gone afterwards."""

    def connect(
        self, address: str, callers: int, queue: str
    ) -> AbstractAsyncContextManager[list[Client]]:
        """A client for each caller of a queue, which is made if it is not there; they may share
        connections. A blocking one is called for one caller, on that caller's thread."""

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """Have `count` more items like this one waiting, by the fastest way there is, synced or
        not."""
