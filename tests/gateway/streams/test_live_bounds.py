"""What a live reader costs that is slow, or gone: the application itself, without a socket."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from queueber.client import AsyncClient, connect_async
from queueber.gateway.app import Gateway, make_app
from queueber.gateway.sending import CONNECTION
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.streams.found import EVENT_BYTES
from queueber.gateway.streams.live.hub import Hub
from queueber.gateway.unread import PATIENCE_SECONDS
from queueber.limits import MIB
from queueber.testing import ServerProcess

Test = Callable[[Gateway, AsyncClient], Awaitable[None]]


class Caller:
    """Takes what the application sends; with data it stops until `reads` is set."""

    def __init__(self, app: Gateway, path: str, query: str) -> None:
        self._unread = app.bounds.unread
        self.reads = asyncio.Event()
        self.hangs_up = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "headers": [(b"host", b"localhost")],
            CONNECTION: self,
        }  # fmt: skip
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    # --- as a connection --------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return not self.reads.is_set()

    @property
    def is_gone(self) -> bool:
        return self.hangs_up.is_set()

    def hold(self, size: int) -> None:
        self._unread.change(self, size)

    def hang_up(self) -> None:
        self.hangs_up.set()

    async def _receive(self) -> dict[str, Any]:
        await self.hangs_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        if b"event: data" in bytes(message.get("body", b"")):
            await self.reads.wait()
        await asyncio.sleep(0)

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.sent)


async def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


def run(server: ServerProcess, test: Test, **settings: Any) -> None:
    async def run_test() -> None:
        app = make_app(GatewaySettings(server=server.address, **settings))
        async with connect_async(server.address) as client:
            try:
                await test(app, client)
            finally:
                await app.pool.aclose()

    asyncio.run(run_test())


def test_a_slow_reader_holds_one_turn_and_the_others_go_on(server: ServerProcess) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.create_topic("slow", content_type="text/plain")
        await client.topic("slow").publish([bytes(1000)] * 5000)
        slow = Caller(app, "/v1/stream/slow", "offset=-1&live=sse")
        fast = Caller(app, "/v1/stream/slow", "offset=-1&live=sse")
        fast.reads.set()
        await wait_until(lambda: len(fast.body) >= 5_000_000 and len(slow.sent) > 1)
        await asyncio.sleep(0.2)

        assert EVENT_BYTES // 2 < app.bounds.unread.used < 2 * EVENT_BYTES
        assert len(slow.body) < 2 * EVENT_BYTES
        for each in (slow, fast):
            each.hangs_up.set()
        await asyncio.gather(slow.task, fast.task)
        assert app.bounds.unread.used == 0

    run(server, test)


def test_readers_that_do_not_read_make_room_for_others(server: ServerProcess) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.create_topic("bounded", content_type="text/plain")
        await client.topic("bounded").publish([bytes(1000)] * 100)
        query = "offset=-1&live=sse"
        silent = [Caller(app, "/v1/stream/bounded", query) for _ in range(6)]
        await wait_until(lambda: all(len(each.sent) > 1 for each in silent))
        refused = Caller(app, "/v1/stream/bounded", query)
        await refused.task
        await asyncio.sleep(PATIENCE_SECONDS + 0.1)
        served = Caller(app, "/v1/stream/bounded", query)
        await wait_until(lambda: len(served.sent) > 1)

        assert refused.sent[0]["status"] == 503
        assert (b"retry-after", b"1") in refused.sent[0]["headers"]
        assert served.sent[0]["status"] == 200
        assert 1 <= sum(each.hangs_up.is_set() for each in silent) <= 2
        for each in (*silent, served):
            each.hangs_up.set()
        await asyncio.gather(*(each.task for each in (*silent, served)))
        assert app.bounds.unread.used == 0

    run(server, test, answers_bytes_max=MIB)


def test_readers_at_the_tail_are_one_wait_and_leave_nothing_behind(server: ServerProcess) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.create_topic("tail", content_type="text/plain")
        readers = [Caller(app, "/v1/stream/tail", "offset=now&live=sse") for _ in range(200)]
        polls = [Caller(app, "/v1/stream/tail", "offset=now&live=long-poll") for _ in range(100)]
        await wait_until(lambda: app.bounds.requests.used == 0 and len(readers[-1].sent) > 1)
        hub = app.state["stream_hub"]
        assert isinstance(hub, Hub)
        await wait_until(lambda: hub.calls == 1)
        assert app.bounds.waits.used == 1

        await client.topic("tail").publish(b"news")
        await wait_until(lambda: all(each.task.done() for each in polls))
        assert {each.sent[-1]["body"] for each in polls} == {b"news"}
        for each in readers:
            each.reads.set()
        await wait_until(lambda: all(b"data:news" in each.body for each in readers))
        # The same object was sent to all.
        events = [next(m["body"] for m in r.sent if b"news" in m.get("body", b"")) for r in readers]
        assert len({id(each) for each in events}) <= 2  # a new cursor may come in between

        for each in readers:
            each.hangs_up.set()
        await asyncio.gather(*(each.task for each in readers))
        assert (hub.calls, app.bounds.waits.used, app.bounds.requests.used) == (0, 0, 0)

    run(server, test, waits_max=1)


def test_a_gateway_that_stops_lets_its_readers_go(server: ServerProcess) -> None:
    async def test(app: Gateway, client: AsyncClient) -> None:
        await client.create_topic("stopping", content_type="text/plain")
        reader = Caller(app, "/v1/stream/stopping", "offset=now&live=sse")
        poll = Caller(app, "/v1/stream/stopping", "offset=now&live=long-poll")
        await wait_until(lambda: len(reader.sent) > 1 and app.bounds.requests.used == 0)

        app.bounds.stop_waiting()
        await asyncio.gather(reader.task, poll.task)

        assert reader.sent[-1] == {"type": "http.response.body", "body": b""}
        assert poll.sent[0]["status"] == 503

    run(server, test)
