"""One live connection: the bootstrap object, the server's limits, and queue capabilities."""

import contextlib
import os
from typing import Any

import capnp

from queueber.config import split_address
from queueber.errors import Internal, InvalidArgument, QueueberError, Unavailable, from_wire
from queueber.limits import MESSAGE_BYTES_CEILING, QUEUES_MAX
from queueber.model import ServerInfo
from queueber.schema import wire
from queueber.wire.queues import read_server_info
from queueber.wire.stream import connect_stream

_TRAVERSAL_WORDS = 4 * MESSAGE_BYTES_CEILING // 8


class Link:
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._client = capnp.TwoPartyClient(stream, traversal_limit_in_words=_TRAVERSAL_WORDS)
        self.service = self._client.bootstrap().cast_as(wire.Service)
        self._queues: dict[tuple[str, bool], Any] = {}
        self.server = ServerInfo("", "", 0, 0, 0, 0)

    def queue(self, name: str, *, must_exist: bool = False) -> Any:
        """The queue's capability. Usable at once: calls travel behind the asking."""
        key = name, must_exist
        if key not in self._queues:
            if len(self._queues) >= QUEUES_MAX:
                self._queues.clear()
            self._queues[key] = self.service.queue(name, must_exist).queue
        return self._queues[key]

    def forget_queue(self, name: str) -> None:
        """Ask anew next time: the queue was deleted, or could not be had."""
        self._queues.pop((name, False), None)
        self._queues.pop((name, True), None)

    async def wait_lost(self) -> None:
        """Return once the connection is over."""
        with contextlib.suppress(capnp.KjException):
            await self._client.on_disconnect()

    def close(self) -> None:
        self._queues.clear()
        self._stream.close()


def _reason(error: OSError) -> str:
    """In the system's words: asyncio puts its own into the place for them."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


async def open_link(address: str) -> Link:
    """Connect and hear what the server says of itself; `Unavailable` when there is none."""
    host, port = split_address(address)
    try:
        stream = await connect_stream(host, port)
    except OSError as error:
        raise Unavailable(
            f"cannot reach a server at {address} ({_reason(error)}); "
            "start one with 'queueber serve', or check the address"
        ) from None
    except UnicodeError:
        raise InvalidArgument(f"address: {host!r} is not a host name") from None
    link = Link(stream)
    try:
        link.server = read_server_info((await link.service.describe()).server)
    except capnp.KjException as failure:
        link.close()
        raise _refusal(address, failure) from None
    except BaseException:
        link.close()
        raise
    return link


def _refusal(address: str, failure: Any) -> QueueberError:
    if failure.type == "DISCONNECTED":
        return Unavailable(f"the server at {address} closed the connection")
    error = from_wire(failure.description)
    if isinstance(error, Internal):
        return Internal(f"{address} does not speak Queueber: {failure.description}")
    return error
