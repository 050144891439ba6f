"""Polls whose caller goes while their answer is on its way: what they bring is given back.

Each poll waits at the server when items are added and the server has answered, but the client's
loop stands still, and so has not read the answer, when the caller goes.
"""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import capnp
import pytest
import trio

import queueber
from queueber.client.calls import polls as poll_calls
from queueber.client.transport import connection
from queueber.client.transport.loops import ThreadConnection
from queueber.testing import ServerProcess, running_server

WAIT_SECONDS = 30.0


@pytest.fixture
def fragile(client: queueber.Client, request: pytest.FixtureRequest) -> queueber.Queue:
    """Where one charged attempt makes a dead letter."""
    name = "".join(each for each in request.node.name if each.isalnum())[:128]
    client.create_queue(name, attempts_max=1)
    return client.queue(name)


@contextlib.contextmanager
def stalled(client: queueber.Client | queueber.AsyncClient) -> Iterator[None]:
    """The thread of the client's connection stands still."""
    stands, go = threading.Event(), threading.Event()

    def stand() -> None:
        stands.set()
        go.wait(WAIT_SECONDS)

    client._connected().connection.post(stand)
    assert stands.wait(WAIT_SECONDS)
    try:
        yield
    finally:
        go.set()


def wait_until_one_waits(queue: queueber.Queue) -> None:
    while queue.stats().waiting_polls != 1:
        pass


def answer_the_poll(queue: queueber.Queue) -> None:
    """Returns when the poll that waits has its item, and the server has said so."""
    queue.add(b"x")
    while queue.stats().leased != 1:
        pass
    # What was to be durable before this is answered before this.
    queue.add(b"later", delay=3600)


def assert_given_back(queue: queueber.Queue) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS
    while (stats := queue.stats()).leased and time.monotonic() < give_up_at:
        pass
    assert (stats.ready, stats.leased, stats.dead) == (1, 0, 0)
    assert (stats.released_total, stats.expired_total, stats.failed_total) == (1, 0, 0)


def test_a_poll_that_is_cancelled_in_asyncio_gives_back_what_is_on_its_way(
    server: ServerProcess, fragile: queueber.Queue
) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            task = asyncio.ensure_future(client.queue(fragile.name).poll(lease=600, wait=30))
            await asyncio.to_thread(wait_until_one_waits, fragile)
            answer_the_poll(fragile)
            task.cancel()
            await asyncio.wait([task])

            assert task.cancelled()
            await asyncio.to_thread(assert_given_back, fragile)

    asyncio.run(main())


def test_a_poll_that_is_cancelled_in_trio_gives_back_what_is_on_its_way(
    server: ServerProcess, fragile: queueber.Queue
) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            with contextlib.ExitStack() as stack:
                async with trio.open_nursery() as nursery:
                    queue = client.queue(fragile.name)
                    nursery.start_soon(lambda: queue.poll(lease=600, wait=30))
                    await trio.to_thread.run_sync(wait_until_one_waits, fragile)
                    stack.enter_context(stalled(client))
                    answer_the_poll(fragile)
                    nursery.cancel_scope.cancel()

            await trio.to_thread.run_sync(assert_given_back, fragile)

    trio.run(main)


def test_a_poll_that_is_interrupted_gives_back_what_is_on_its_way(
    server: ServerProcess, fragile: queueber.Queue
) -> None:
    with contextlib.ExitStack() as stack:
        # A program that was started in the background may ignore the signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        stack.callback(signal.signal, signal.SIGINT, before)
        client = stack.enter_context(queueber.connect(server.address))
        stall = contextlib.ExitStack()

        def interrupt() -> None:
            wait_until_one_waits(fragile)
            stall.enter_context(stalled(client))
            answer_the_poll(fragile)
            os.kill(os.getpid(), signal.SIGINT)

        with ThreadPoolExecutor(1) as pool:
            interrupted = pool.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                client.queue(fragile.name).poll(lease=600, wait=30)
            interrupted.result()
        stall.close()

        assert_given_back(fragile)


@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "waiting"])
def test_closing_in_asyncio_gives_back_what_is_on_its_way(
    is_cancelled: bool, server: ServerProcess, fragile: queueber.Queue
) -> None:
    """Else the server would take the end of the connection for the death of the holder."""

    async def main() -> None:
        client = await queueber.connect_async(server.address)
        queue = client.queue(fragile.name)
        task = asyncio.ensure_future(queue.poll(lease=600, wait=30, release_on_disconnect=True))
        await asyncio.to_thread(wait_until_one_waits, fragile)
        answer_the_poll(fragile)
        if is_cancelled:
            task.cancel()
        await client.aclose()

        with pytest.raises(asyncio.CancelledError if is_cancelled else queueber.Unavailable):
            await task

    asyncio.run(main())
    assert_given_back(fragile)


def test_closing_in_trio_gives_back_what_is_on_its_way(
    server: ServerProcess, fragile: queueber.Queue
) -> None:
    async def main() -> None:
        with contextlib.ExitStack() as stack, trio.CancelScope() as scope:
            async with queueber.connect_async(server.address) as client:
                queue = client.queue(fragile.name)

                async def cancel() -> None:
                    await trio.to_thread.run_sync(wait_until_one_waits, fragile)
                    stack.enter_context(stalled(client))
                    answer_the_poll(fragile)
                    scope.cancel()
                    # Closing waits for the thread that stands still.
                    threading.Timer(0.1, stack.close).start()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(cancel)
                    await queue.poll(lease=600, wait=30, release_on_disconnect=True)

    trio.run(main)
    assert_given_back(fragile)


def test_closing_gives_back_what_is_on_its_way_to_another_thread(
    server: ServerProcess, fragile: queueber.Queue
) -> None:
    client = queueber.connect(server.address)
    with ThreadPoolExecutor(2) as pool:
        poll = pool.submit(
            client.queue(fragile.name).poll, lease=600, wait=30, release_on_disconnect=True
        )
        wait_until_one_waits(fragile)
        with stalled(client):
            answer_the_poll(fragile)
            closing = pool.submit(client.close)
            connected = client._connected().connection
            assert isinstance(connected, ThreadConnection)
            while not connected._is_closed:
                pass
            with connected._lock:
                """The connection has been told."""
        closing.result()

        with pytest.raises(queueber.Unavailable, match="closed"):
            poll.result()
    assert_given_back(fragile)


def test_a_release_that_is_under_way_is_done_before_the_client_closes(
    server: ServerProcess, fragile: queueber.Queue
) -> None:
    async def main() -> None:
        client = await queueber.connect_async(server.address)
        queue = client.queue(fragile.name)
        fragile.add(b"x")
        lease = await queue.poll(release_on_disconnect=True)
        releasing = asyncio.ensure_future(lease.release())
        await asyncio.sleep(0)
        await client.aclose()

        assert await releasing == [True]

    asyncio.run(main())
    assert_given_back(fragile)


def test_closing_waits_no_longer_than_it_says_for_a_server_that_stands_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_CLOSE_SECONDS_MAX", 0.05)
    with running_server() as server, ThreadPoolExecutor(1) as pool:
        client = queueber.connect(server.address)
        poll = pool.submit(client.queue().poll, wait=30)
        with queueber.connect(server.address) as other:
            wait_until_one_waits(other.queue())
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            began_at = time.monotonic()
            client.close()
            assert 0.05 <= time.monotonic() - began_at < 5
        finally:
            server.process.send_signal(signal.SIGCONT)
        with pytest.raises(queueber.Unavailable, match="closed"):
            poll.result()


def test_closing_that_is_cancelled_closes_all_the_same() -> None:
    async def main(server: ServerProcess, other: queueber.Queue) -> None:
        client = await queueber.connect_async(server.address)
        poll = asyncio.ensure_future(client.queue().poll(wait=30))
        await asyncio.to_thread(wait_until_one_waits, other)
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        try:
            closing = asyncio.ensure_future(client.aclose())
            await asyncio.sleep(0.01)
            closing.cancel()
            await asyncio.wait([closing, poll], timeout=0.5)

            assert closing.cancelled()
            assert poll.done()
        finally:
            server.process.send_signal(signal.SIGCONT)
        with pytest.raises(queueber.Unavailable, match="closed"):
            await poll

    with running_server() as server, queueber.connect(server.address) as other:
        asyncio.run(main(server, other.queue()))


def test_a_withdrawn_poll_is_not_sent_again_when_its_connection_breaks() -> None:
    async def main(server: ServerProcess, other: queueber.Queue) -> None:
        async with queueber.connect_async(server.address) as client:
            task = asyncio.ensure_future(client.queue().poll(wait=30))
            await asyncio.to_thread(wait_until_one_waits, other)
            assert server.process is not None
            server.process.send_signal(signal.SIGSTOP)
            task.cancel()
            await asyncio.wait([task])
            server.kill()
            server.start()
            polls = client.queue()._calls.polls
            await asyncio.wait([lone.task for lone in polls._lone] or [task])

            assert (await client.queue().stats()).waiting_polls == 0

    with running_server() as server, queueber.connect(server.address) as other:
        asyncio.run(main(server, other.queue()))


def test_a_server_that_cannot_withdraw_polls_is_hung_up_on() -> None:
    """As one of an older version."""

    async def refuse(_: int) -> None:
        raise capnp.KjException("method not implemented", type="UNIMPLEMENTED")

    async def main() -> None:
        lone: Any = SimpleNamespace(token=1, task=asyncio.ensure_future(asyncio.sleep(3600)))
        await poll_calls._tell_withdrawn(lone, SimpleNamespace(withdrawPoll=refuse))
        await asyncio.wait([lone.task])

        assert lone.task.cancelled()

    asyncio.run(main())


def test_a_polled_message_of_a_group_does_not_tell_when_it_came(topic: queueber.Topic) -> None:
    topic.publish(b"a")
    topic.create_group("g", kind="shared")

    (item,) = topic.group("g").poll().items

    assert item.added_at is None
