"""Open and close connections: blocking, and awaited in asyncio or trio."""

import sniffio

from queueber.client.transport.connection import Connection
from queueber.client.transport.on_loop import LoopConnection
from queueber.client.transport.on_thread import ThreadConnection
from queueber.client.transport.waiting import wait_for, wait_for_async


def open_connection(
    address: str, *, connect_seconds: float, retry_seconds: float, name: str
) -> Connection:
    """Connect; raise `Unavailable` after `connect_seconds`."""
    connection = ThreadConnection(
        address, connect_seconds=connect_seconds, retry_seconds=retry_seconds, name=name
    )
    wait_for(connection.ready)
    return connection


async def open_connection_async(
    address: str, *, connect_seconds: float, retry_seconds: float, name: str
) -> Connection:
    """Connect, on the running loop of asyncio, or on a thread if the program runs trio."""
    if sniffio.current_async_library() == "trio":
        on_thread = ThreadConnection(
            address, connect_seconds=connect_seconds, retry_seconds=retry_seconds, name=name
        )
        await wait_for_async(on_thread.ready)
        return on_thread
    on_loop = LoopConnection(address, retry_seconds=retry_seconds, name=name)
    await on_loop.open(connect_seconds)
    return on_loop


def close_connection(connection: Connection) -> None:
    assert isinstance(connection, ThreadConnection)
    connection.close()


async def close_connection_async(connection: Connection) -> None:
    if isinstance(connection, LoopConnection):
        await connection.aclose()
        return
    import trio  # a program that does not run trio need not load it

    # Shielded: a task that is cancelled closes its client all the same.
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(close_connection, connection)
