"""The client for plain code: every call blocks until it is answered."""

from typing import Self, Unpack

from queueber.client.admin import AdminCalls
from queueber.client.calls import CallsByQueue
from queueber.client.hosts import ThreadCore
from queueber.client.queue import Queue
from queueber.client.settings import SettingsArguments
from queueber.client.waiting import wait_for
from queueber.config import DEFAULT_LISTEN
from queueber.model import ServerInfo, Stats

CONNECT_TIMEOUT_SECONDS = 5.0
RETRY_TIMEOUT_SECONDS = 30.0


def connect(
    address: str = DEFAULT_LISTEN,
    *,
    connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
    retry_timeout: float = RETRY_TIMEOUT_SECONDS,
) -> "Client":
    """Connect to a server; `Unavailable` when it cannot be reached in time.

    A connection that is lost later is made anew when it is next needed. A call that the server
    refused for now, or that certainly had no effect, is sent again for `retry_timeout` seconds.
    May be shared between threads: their calls travel together.
    """
    core = ThreadCore(address, connect_seconds=connect_timeout, retry_seconds=retry_timeout)
    wait_for(core.ready)
    return Client(core)


class Client:
    def __init__(self, core: ThreadCore) -> None:
        self._core = core
        self._admin = AdminCalls(core)
        self._queues = CallsByQueue(core)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. Calls under way in other threads fail.

        Items that polls had on their way are given back first, which may take up to a second.
        """
        self._core.close()

    def queue(self, name: str = "default", *, must_exist: bool = False) -> Queue:
        """A queue by name; the server creates it when it is first used.

        One that `must_exist` is not created: without it, calls raise `NotFound`.
        """
        return Queue(self._queues.of(name, must_exist=must_exist))

    def create_queue(self, name: str, **settings: Unpack[SettingsArguments]) -> bool:
        """Create a queue with settings; False when it exists with the same."""
        return wait_for(self._admin.create(name, **settings))

    def configure_queue(self, name: str, **settings: Unpack[SettingsArguments]) -> None:
        """Change the settings that are named; the others stay as they are.

        It asks for the present ones first, so of two who do this at once, one may undo the other's.
        """
        wait_for(self._admin.configure(name, **settings))

    def delete_queue(self, name: str) -> bool:
        """Delete a queue with all its items; False when there is none."""
        return wait_for(self._admin.delete(name))

    def queues(self) -> list[Stats]:
        """The statistics of every queue, in order of name."""
        return wait_for(self._admin.list_queues())

    def server(self) -> ServerInfo:
        """The server's version and limits."""
        return wait_for(self._admin.describe())
