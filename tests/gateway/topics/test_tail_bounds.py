"""What a tail costs whose caller is slow, or gone: the application itself, without a socket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from queueber.client import AsyncClient, connect_async
from queueber.gateway.app import Gateway, make_app
from queueber.gateway.bounds import Bound
from queueber.gateway.settings import GatewaySettings
from queueber.limits import MIB
from queueber.testing import ServerProcess

Test = Callable[[Gateway, AsyncClient], Awaitable[None]]


class Caller:
    """Takes what the application sends: all of it, or nothing until `reads` is set."""

    def __init__(self, app: Gateway, path: str) -> None:
        self.reads = asyncio.Event()
        self.hangs_up = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self.blocked_bytes = 0
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
            "query_string": b"from=earliest", "headers": [(b"host", b"localhost")],
        }  # fmt: skip
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> dict[str, Any]:
        await self.hangs_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        if b"data: " in message.get("body", b""):
            self.blocked_bytes = len(message["body"])
            await self.reads.wait()
        await asyncio.sleep(0)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    async def wait_until_blocked(self) -> None:
        await wait_until(lambda: self.blocked_bytes > 0)


async def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


async def run(server: ServerProcess, test: Test, waits_max: int = 1000) -> None:
    app = make_app(GatewaySettings(server=server.address, waits_max=waits_max))
    async with connect_async(server.address) as client:
        try:
            await test(app, client)
        finally:
            await app.pool.aclose()


def unsent(app: Gateway) -> Bound:
    found = app.state["tails"]
    assert isinstance(found, Bound)
    return found


def test_a_slow_reader_is_sent_one_small_page_and_nothing_more(server: ServerProcess) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.topic("slow").publish([bytes(1000)] * 5000)
        caller = Caller(app, "/v1/topics/slow/tail")
        await caller.wait_until_blocked()
        await asyncio.sleep(0.3)

        bodies = [each for each in caller.sent if b"data: " in each.get("body", b"")]
        assert len(bodies) == 1
        assert caller.blocked_bytes < 256 * 1024
        assert unsent(app).used == caller.blocked_bytes
        assert (app.bounds.requests.used, app.bounds.waits.used) == (0, 1)

        caller.hangs_up.set()
        await caller.task
        assert unsent(app).used == 0
        assert (app.bounds.requests.used, app.bounds.waits.used) == (0, 0)

    asyncio.run(run(server, test))


def test_slow_readers_of_too_much_are_disconnected_and_others_go_on(server: ServerProcess) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.topic("large").publish([bytes(3 * MIB)])
        app.state["tails"] = Bound("bytes wait for slow tails", 10 * MIB)
        callers = [Caller(app, "/v1/topics/large/tail") for _ in range(4)]
        done, _ = await asyncio.wait([each.task for each in callers], timeout=5)

        assert len(done) == 2
        ended = [each for each in callers if each.task in done]
        assert all(each.sent[-1] == {"type": "http.response.body", "body": b""} for each in ended)
        for each in callers:
            each.hangs_up.set()
        await asyncio.gather(*(each.task for each in callers))
        assert unsent(app).used == 0

    asyncio.run(run(server, test))


def test_a_tail_beyond_the_bound_of_waits_is_refused_before_it_begins(
    server: ServerProcess,
) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.topic("busy").publish([b"x"])
        first = Caller(app, "/v1/topics/busy/tail")
        await first.wait_until_blocked()
        second = Caller(app, "/v1/topics/busy/tail")
        await second.task
        first.hangs_up.set()
        await first.task
        third = Caller(app, "/v1/topics/busy/tail")
        await third.wait_until_blocked()
        third.hangs_up.set()
        await third.task

        assert (first.status, second.status, third.status) == (200, 503, 200)

    asyncio.run(run(server, test, waits_max=1))


@pytest.mark.parametrize("partitions", [1, 8])
def test_callers_that_hang_up_leave_nothing(server: ServerProcess, partitions: int) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        name = f"left-{partitions}"
        await client.create_topic(name, partitions=partitions)
        before = len(asyncio.all_tasks())
        callers = [Caller(app, f"/v1/topics/{name}/tail") for _ in range(100)]
        await wait_until(lambda: app.bounds.waits.used == 100)

        for each in callers:
            each.hangs_up.set()
        await asyncio.gather(*(each.task for each in callers))

        assert app.bounds.waits.used == 0
        # The gateway's own client has a few.
        await wait_until(lambda: len(asyncio.all_tasks()) < before + 20)

    asyncio.run(run(server, test))
