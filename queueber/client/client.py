"""The client for plain code: every call blocks until it is answered."""

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Self, TypeVar

from queueber.client.admin import AdminCalls
from queueber.client.arguments import Contents, Delay, to_ids
from queueber.client.calls import CallsByQueue, QueueCalls
from queueber.client.hosts import ThreadCore
from queueber.client.leased import Leased
from queueber.config import DEFAULT_LISTEN
from queueber.model import ServerInfo, Stats

T = TypeVar("T")

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
    _wait(core.ready)
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
        """End the connection. Calls under way in other threads fail."""
        self._core.close()

    def queue(self, name: str = "default") -> "Queue":
        """A queue by name; the server creates it when it is first used."""
        return Queue(self._queues[name])

    def create_queue(
        self, name: str, *, items_max: int = 0, bytes_max: int = 0, item_bytes_max: int = 0
    ) -> bool:
        """Create a queue with settings (0: no limit); False when it exists with the same."""
        return _wait(
            self._admin.create(
                name, items_max=items_max, bytes_max=bytes_max, item_bytes_max=item_bytes_max
            )
        )

    def configure_queue(
        self, name: str, *, items_max: int = 0, bytes_max: int = 0, item_bytes_max: int = 0
    ) -> None:
        """Replace the settings of a queue."""
        _wait(
            self._admin.configure(
                name, items_max=items_max, bytes_max=bytes_max, item_bytes_max=item_bytes_max
            )
        )

    def delete_queue(self, name: str) -> bool:
        """Delete a queue with all its items; False when there is none."""
        return _wait(self._admin.delete(name))

    def queues(self) -> list[Stats]:
        """The statistics of every queue, in order of name."""
        return _wait(self._admin.list_queues())

    def server(self) -> ServerInfo:
        """The server's version and limits."""
        return _wait(self._admin.describe())


class Queue:
    def __init__(self, calls: QueueCalls) -> None:
        self._calls = calls

    @property
    def name(self) -> str:
        return self._calls.name

    def add(self, contents: Contents, *, delay: Delay = 0) -> list[bytes]:
        """Store items, all or none, and return their ids in order.

        `delay` is how many seconds they stay hidden: one for all, or one for each.
        """
        return _wait(self.add_soon(contents, delay=delay))

    def add_soon(self, contents: Contents, *, delay: Delay = 0) -> "Future[list[bytes]]":
        """As `add`, but returns at once: several calls may be under way, and stay in order."""
        return self._calls.add(contents, delay)

    def poll(self, count: int = 1, *, lease: float = 60, wait: float = 0) -> "Lease":
        """Lease up to `count` items for `lease` seconds.

        With none ready, wait up to `wait` seconds. A lease without items is false.
        """
        future = self._calls.poll(count, lease, wait)
        try:
            return Lease(self._calls, _wait(future))
        except BaseException:
            self._calls.give_back(future)
            raise

    def remove(self, ids: bytes | Iterable[bytes], lease: bytes) -> list[bool]:
        """For each id, whether the lease held it and it is now gone."""
        return _wait(self._calls.remove(ids, lease))

    def extend(self, lease: bytes, seconds: float) -> bool:
        """Let the lease end `seconds` from now; False when it has ended already."""
        return _wait(self._calls.extend(lease, seconds))

    def stats(self) -> Stats:
        return _wait(self._calls.stats())


class Lease(Leased):
    """Items that are yours for a while. True when there are any."""

    def extend(self, seconds: float) -> bool:
        """End `seconds` from now instead; False when the lease has ended already."""
        return _wait(self._calls.extend(self.id, seconds))

    def remove(self, ids: bytes | Iterable[bytes] | None = None) -> list[bool]:
        """Remove items that are done, all of them when none are named.

        For each, whether it is gone. False means that the lease had ended: somebody else may have
        the item.
        """
        chosen = self.ids if ids is None else to_ids("ids", ids)
        return _wait(self._calls.remove(chosen, self.id)) if chosen else []


def _wait(future: "Future[T]") -> T:
    try:
        return future.result()
    except BaseException:
        # Interrupted: a poll that nobody waits for must take nothing.
        future.cancel()
        raise
