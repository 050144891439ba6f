"""The async client, in asyncio and in trio: the same scenario in both."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

import pytest
import trio

import queueber
from queueber.testing import ServerProcess

Scenario = Callable[[str], Awaitable[None]]


async def every_verb(address: str) -> None:
    async with queueber.connect_async(address) as client:
        queue = client.queue("async-verbs")
        ids = await queue.add([b"one", b"two"])
        lease = await queue.poll(10, lease=60, wait=5)
        assert lease
        assert lease.ids == ids
        assert [item.contents for item in lease] == [b"one", b"two"]
        assert await lease.extend(60) is True
        assert await lease.remove(ids[:1]) == [True]
        assert await queue.remove(ids[1], lease=lease.id) == [True]
        assert await queue.extend(5, lease=lease.id) is False
        assert not await queue.poll()
        assert (await queue.stats()).removed_total == 2
        assert (await client.server()).durability == "sync"
        assert await client.create_queue("async-made", items_max=1)
        await client.configure_queue("async-made", items_max=2)
        assert "async-made" in {stats.name for stats in await client.queues()}
        assert await client.delete_queue("async-made")
        assert await client.delete_queue("async-verbs")
        with pytest.raises(queueber.InvalidArgument, match="contents"):
            await queue.add("text")  # type: ignore[arg-type]


async def every_later_verb(address: str) -> None:
    async with queueber.connect_async(address) as client:
        await client.create_queue("async-later", attempts_max=1, lease=60)
        queue = client.queue("async-later")
        ids = await queue.add(
            [b"1", b"2", b"3", b"4"],
            priority=9,
            key=["a", "b", None, None],
            attributes={"x": "y"},
            batch="b",
        )
        assert (await queue.add(b"again", key="a")).duplicates == (True,)
        lease = await queue.poll(4, release_on_disconnect=True)
        assert [item.batch for item in lease] == ["b"] * 4
        assert await lease.complete({ids[0]: b"result"}) == [True]
        assert await queue.complete(ids[0], b"late", lease=lease.id) == [False]
        assert await lease.fail("broken", ids=ids[1]) == [queueber.FailOutcome.DIED]
        assert await queue.fail(ids[1], "late", lease=lease.id) == [queueber.FailOutcome.REFUSED]
        assert await lease.release(ids[2]) == [True]
        assert await queue.release(ids[3], lease=lease.id) == [True]
        assert (await queue.receipt("b")).live == 2
        assert [item.id async for item in queue.peek_all("dead")] == [ids[1]]
        assert len((await queue.peek(limit=1)).items) == 1
        assert await queue.redrive() == 1
        assert await queue.cancel(ids[1]) == [True]
        assert await queue.purge("ready") == 2
        assert (await queue.wait_for_batch("b", 10)).complete
        assert [result.result async for result in queue.results("me")] == [b"result"]
        assert (await queue.results_stats()).readers == {"me": 1}
        await queue.ack_results("me", 1)
        assert await queue.drop_reader("me") is True
        assert (await queue.read_results(1)).results == []
        await queue.pause(60)
        await queue.add(b"paused")
        assert not await queue.poll()
        await queue.resume()
        assert await queue.poll()
        producer = queue.producer("p", 1)
        first = await producer.add(b"x")
        assert await producer.add(b"x", sequence=1) == first
        await client.delete_queue("async-later")


async def unreachable(_: str) -> None:
    with pytest.raises(queueber.Unavailable, match="queueber serve"):
        async with queueber.connect_async("127.0.0.1:1", connect_timeout=0.1):
            raise AssertionError("connected to nothing")


async def awaited(address: str) -> None:
    client = await queueber.connect_async(address)
    assert len(await client.queue("awaited").add(b"x")) == 1
    await client.aclose()
    with pytest.raises(queueber.Unavailable, match="closed"):
        await client.queue("awaited").add(b"x")


@pytest.mark.parametrize("scenario", [every_verb, every_later_verb, awaited, unreachable])
def test_in_asyncio(server: ServerProcess, scenario: Scenario) -> None:
    async def main() -> None:
        await scenario(server.address)

    asyncio.run(main())


@pytest.mark.parametrize("scenario", [every_verb, every_later_verb, awaited, unreachable])
def test_in_trio(server: ServerProcess, scenario: Scenario) -> None:
    trio.run(scenario, server.address)


async def wait_for_waiting_polls(queue: queueber.AsyncQueue, count: int) -> None:
    while (await queue.stats()).waiting_polls != count:
        pass


def test_a_cancelled_poll_takes_nothing_in_asyncio(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("cancelled-asyncio")
            waiting = asyncio.create_task(queue.poll(wait=30))
            await wait_for_waiting_polls(queue, 1)
            waiting.cancel()
            await wait_for_waiting_polls(queue, 0)
            await queue.add(b"for others")

            assert (await queue.stats()).ready == 1

    asyncio.run(main())


def test_a_cancelled_poll_takes_nothing_in_trio(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("cancelled-trio")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: queue.poll(wait=30))
                await wait_for_waiting_polls(queue, 1)
                nursery.cancel_scope.cancel()
            await wait_for_waiting_polls(queue, 0)
            await queue.add(b"for others")

            assert (await queue.stats()).ready == 1

    trio.run(main)


def test_many_tasks_share_one_connection(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("many-tasks")
            added = await asyncio.gather(*[queue.add(b"%d" % n) for n in range(500)])
            leases = await asyncio.gather(*[queue.poll(wait=5) for _ in range(500)])

            assert len({ids[0] for ids in added}) == 500
            assert all(len(lease) == 1 for lease in leases)
            assert len({lease.id for lease in leases}) == 500
            removed = await asyncio.gather(*[lease.remove() for lease in leases])
            assert removed == [[True]] * 500

    asyncio.run(main())


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("verb", ["add", "poll", "stats"])
def test_closing_in_any_turn_leaves_nobody_hanging(
    server: ServerProcess, verb: str, turns: int
) -> None:
    async def main() -> None:
        client = queueber.connect_async(server.address)
        await client.__aenter__()
        queue = client.queue("closed-early")
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "add": lambda: queue.add(b"x"),
            "poll": queue.poll,
            "stats": queue.stats,
        }
        call = asyncio.ensure_future(calls[verb]())
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.aclose()

        await asyncio.wait([call], timeout=10)
        assert call.done()
        if not call.cancelled():
            call.exception()

    asyncio.run(main())


async def cancel_as_the_answer_arrives(
    client: queueber.AsyncClient, queue: queueber.AsyncQueue
) -> None:
    made = client._connected().connection.new_future

    def cancelling() -> "Future[object]":
        future = made()
        future.add_done_callback(lambda _: task.cancel())
        return future

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client._connected().connection, "new_future", cancelling)
        task = asyncio.ensure_future(queue.poll())
        await asyncio.wait([task])
    assert task.cancelled()


def test_a_poll_that_is_cancelled_as_its_answer_arrives_gives_the_items_back(
    server: ServerProcess,
) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("crossing")
            ids = await queue.add([b"x"] * 5)
            for _ in ids:
                await cancel_as_the_answer_arrives(client, queue)
            while (await queue.stats()).leased:
                pass

            assert (await queue.stats()).ready == 5

    asyncio.run(main())
