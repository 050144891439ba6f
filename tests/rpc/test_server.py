"""The server as a process: limits, hang-ups, wake-up times, pipelining, shutdown."""

import asyncio
import contextlib
import json
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import capnp
import pytest

import queueber
from queueber.schema import wire
from queueber.testing import ServerProcess, running_server

Scenario = Callable[[Any], Awaitable[None]]


async def open_service(address: str) -> tuple[Any, Any]:
    host, port = address.split(":")
    stream = await capnp.AsyncIoStream.create_connection(host, int(port))
    client = capnp.TwoPartyClient(stream)
    return stream, client.bootstrap().cast_as(wire.Service)


def with_service(server: ServerProcess, scenario: Scenario) -> None:
    """Run a scenario against the bootstrap object, with nothing of our client between."""

    async def main() -> None:
        async with capnp.kj_loop():
            stream, service = await open_service(server.address)
            await scenario(service)
            stream.close()

    asyncio.run(main())


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for a state of another process, which no event announces."""
    while not is_so():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def until_waiting(service: Any, count: int) -> None:
    """Wait until the server has parked as many polls."""
    while (await service.stats()).stats.waitingPolls != count:
        pass


async def refusal(call: Any) -> str:
    with pytest.raises(capnp.KjException) as caught:
        await call
    text = str(caught.value.description)
    assert "Traceback" not in text
    return text.removeprefix("remote exception: ").removeprefix("message = ")


def test_the_bootstrap_object_is_the_queue_default_and_hands_out_others() -> None:
    async def scenario(service: Any) -> None:
        await service.add(req={"items": [{"contents": b"in default"}]})
        # The queue is used in the same round trip in which it is asked for.
        await service.queue("other").queue.add(req={"items": [{"contents": b"in other"}]})

        in_default = (await service.queue("default").queue.poll(req=poll_request())).resp
        in_other = (await service.queue("other").queue.poll(req=poll_request())).resp
        assert [item.contents for item in in_default.items] == [b"in default"]
        assert [item.contents for item in in_other.items] == [b"in other"]
        missing = service.queue("missing", True).queue.stats()
        assert (await refusal(missing)).startswith("NOT_FOUND: there is no queue 'missing'")
        names = [each.name for each in (await service.listQueues("", 0)).queues]
        assert names == ["default", "other"]

    with running_server() as server:
        with_service(server, scenario)


def poll_request(**more: object) -> dict[str, object]:
    return {"leaseValiditySecs": 30, "numItems": 10, "noWait": True, **more}


def test_milliseconds_are_added_to_seconds_and_columns_carry_the_same_as_items() -> None:
    async def scenario(service: Any) -> None:
        item = {"contents": b"a", "visibilityTimeoutSecs": 0, "visibilityTimeoutMs": 1}
        request = {"items": [item], "contents": [b"b", b"c"], "delaysMs": [0, 900_000]}
        ids = list((await service.add(req=request)).resp.ids)

        got = (await service.poll(req=poll_request(numItems=1, columns=True))).resp
        assert (list(got.ids), list(got.contents)) == ([ids[1]], [b"b"])
        assert len(got.items) == 0
        late = (await service.poll(req=poll_request(noWait=False, timeoutMs=5000))).resp
        assert [(i.id, i.contents) for i in late.items] == [(ids[0], b"a")]
        stats = (await service.stats()).stats
        assert (stats.ready, stats.delayed, stats.inProgress) == (0, 1, 2)

    with running_server() as server:
        with_service(server, scenario)


def test_many_polls_removes_and_extends_in_one_call() -> None:
    async def scenario(service: Any) -> None:
        ids = list((await service.add(req={"contents": [b"%d" % n for n in range(5)]})).resp.ids)

        request = {"leaseValidityMs": 60_000, "counts": [2, 2, 2, 2]}
        polled = (await service.pollMany(req=request)).resp
        assert list(polled.counts) == [2, 2, 1, 0]
        assert list(polled.ids) == ids
        leases = list(polled.leases)
        assert [len(lease) for lease in leases] == [16, 16, 16, 0]

        extend = {"leases": [leases[0], bytes(16)], "leaseValiditiesMs": [120_000]}
        assert list((await service.extendMany(req=extend)).resp.extended) == [True, False]
        pairs = {"ids": [ids[0], ids[2], ids[1]], "leases": [leases[0], leases[0], leases[0]]}
        removed = (await service.removeMany(req=pairs)).resp.removed
        assert list(removed) == [True, False, True]
        whole = {"leases": [leases[1], leases[2]], "counts": [2, 2]}
        assert list((await service.removeMany(req=whole)).resp.removed) == [True, False]
        both = service.removeMany(req={"ids": ids[:1], "leases": leases[:1], "counts": [1]})
        assert (await refusal(both)).startswith("INVALID_ARGUMENT: counts: ids were given, too")
        wrong = service.removeMany(req={"ids": ids[:3], "leases": leases[:2]})
        assert (await refusal(wrong)).startswith("INVALID_ARGUMENT: leases: 2 for 3")
        assert (await service.stats()).stats.inProgress == 1

    with running_server() as server:
        with_service(server, scenario)


def test_a_waiting_poll_wakes_within_50_ms_of_an_add_a_delay_and_an_expiry() -> None:
    """Medians over several rounds: one late turn of a busy machine is no broken promise."""
    lateness: dict[str, list[float]] = {"add": [], "delay": [], "expiry": []}
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_queue("wake", backoff=[0])

        async def scenario(service: Any) -> None:
            queue = service.queue("wake").queue
            for _ in range(5):
                waiting = asyncio.ensure_future(_wait_for_item(queue, lease_ms=60_000))
                await asyncio.sleep(0.02)
                started = time.monotonic()
                await queue.add(req={"contents": [b"x"]})
                await waiting
                lateness["add"].append(time.monotonic() - started)

                started = time.monotonic()
                await queue.add(req={"contents": [b"x"], "delaysMs": [100]})
                await _wait_for_item(queue, lease_ms=100)
                lateness["delay"].append(time.monotonic() - started - 0.1)

                started = time.monotonic()
                await _wait_for_item(queue, lease_ms=60_000)
                lateness["expiry"].append(time.monotonic() - started - 0.1)

        with_service(server, scenario)

    for what, seconds in lateness.items():
        assert sorted(seconds)[2] < 0.05, (what, seconds)


async def _wait_for_item(queue: Any, *, lease_ms: int) -> None:
    request = {"leaseValidityMs": lease_ms, "timeoutMs": 10_000}
    assert len((await queue.poll(req=request)).resp.items) == 1


def test_a_caller_that_hangs_up_while_it_waits_takes_nothing() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue()

        async def main() -> None:
            async with capnp.kj_loop():
                stream, service = await open_service(server.address)
                waiting = asyncio.ensure_future(_wait_for_item(service, lease_ms=60_000))
                await until(lambda: queue.stats().waiting_polls == 1)
                stream.close()
                with pytest.raises(capnp.KjException):
                    await waiting

        asyncio.run(main())
        while queue.stats().waiting_polls:
            time.sleep(0.01)
        queue.add(b"x")

        assert (queue.stats().ready, queue.stats().polled_total) == (1, 0)


def test_waiting_polls_are_served_in_order_and_only_as_many_as_there_are_items() -> None:
    async def scenario(service: Any) -> None:
        served: list[int] = []

        async def wait(number: int) -> None:
            await _wait_for_item(service, lease_ms=60_000)
            served.append(number)

        waiting = [asyncio.ensure_future(wait(number)) for number in range(6)]
        await until_waiting(service, 6)
        await service.add(req={"contents": [b"x"] * 2})
        await until(lambda: len(served) == 2)

        assert served == [0, 1]
        assert (await service.stats()).stats.waitingPolls == 4
        await service.add(req={"contents": [b"x"] * 4})
        await asyncio.gather(*waiting)
        assert served == [0, 1, 2, 3, 4, 5]

    with running_server() as server:
        with_service(server, scenario)


def test_limits_on_waiting_polls_and_connections_refuse_with_a_code() -> None:
    with running_server("--waiting-polls-max", "1", "--connections-max", "2") as server:

        async def main() -> None:
            async with capnp.kj_loop():
                _, first = await open_service(server.address)
                _, second = await open_service(server.address)
                waiting = asyncio.ensure_future(_wait_for_item(first, lease_ms=1000))
                await until_waiting(second, 1)
                another = second.poll(req={"leaseValiditySecs": 1})
                assert (await refusal(another)).startswith(
                    "RESOURCE_EXHAUSTED: 1 calls are waiting"
                )
                _, third = await open_service(server.address)
                assert (await refusal(third.stats())).startswith("UNAVAILABLE: the server has as")
                await second.add(req={"contents": [b"x"]})
                await waiting

        asyncio.run(main())


def test_calls_above_the_limit_of_the_server_are_held_back_and_answered() -> None:
    with running_server("--calls-in-flight-max", "3") as server:

        async def add_many() -> None:
            stream, service = await open_service(server.address)
            await asyncio.gather(*[service.add(req={"contents": [b"x"]}) for _ in range(50)])
            stream.close()

        async def main() -> None:
            async with capnp.kj_loop():
                await asyncio.gather(*[add_many() for _ in range(4)])

        asyncio.run(main())
        with queueber.connect(server.address) as client:
            assert client.queue().stats().ready == 200


def test_log_says_who_called_from_where_and_under_which_name() -> None:
    with running_server("--connections-max", "1") as server:

        async def scenario(service: Any) -> None:
            await service.createQueue("unnamed", {})
            await service.hello("nightly job")
            await service.deleteQueue("unnamed")
            told = await refusal(service.hello(""))
            assert told.startswith("INVALID_ARGUMENT: name: it is empty")
            _, second = await open_service(server.address)
            assert (await refusal(second.stats())).startswith("UNAVAILABLE: the server has as")

        with_service(server, scenario)
        events = [json.loads(line) for line in server.log_file.read_text().splitlines()]

    named = {each["event"]: each for each in events}
    created, deleted = named["queue_created"], named["queue_deleted"]
    assert created["caller"].startswith("127.0.0.1:")
    assert "client" not in created
    assert (deleted["caller"], deleted["client"]) == (created["caller"], "nightly job")
    refused = named["connection_refused"]["caller"]
    assert refused.startswith("127.0.0.1:")
    assert refused != created["caller"]


def test_shutdown_answers_waiting_polls_and_exits_with_0() -> None:
    with running_server() as server:

        async def scenario(service: Any) -> None:
            waiting = asyncio.ensure_future(_empty_poll(service))
            await until_waiting(service, 1)
            assert server.process is not None
            server.process.send_signal(signal.SIGINT)
            assert await waiting == (0, b"")

        with_service(server, scenario)
        assert server.process is not None
        assert server.process.wait(20) == 0
        events = [json.loads(line) for line in server.log_file.read_text().splitlines()]

    assert [event["event"] for event in events] == ["starting", "listening", "stopping", "stopped"]
    assert events[0]["durability"] == "sync"


async def _empty_poll(queue: Any) -> tuple[int, bytes]:
    response = (await queue.poll(req={"leaseValiditySecs": 1})).resp
    return len(response.items), response.lease


def test_a_message_that_is_no_cap_n_proto_ends_its_connection_only() -> None:
    """Bytes of another protocol: the server drops that connection and serves the others."""
    with running_server() as server, queueber.connect(server.address) as client:
        program = (
            "import socket, sys; host, port = sys.argv[1].split(':');"
            "s = socket.create_connection((host, int(port)));"
            "s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' * 100); s.settimeout(10);"
            "data = b'x'\n"
            "try:\n"
            "    while data: data = s.recv(65536)\n"
            "except ConnectionResetError: pass\n"
        )
        ended = subprocess.run([sys.executable, "-c", program, server.address], check=False)

        assert ended.returncode == 0
        assert len(client.queue().add(b"still here")) == 1


def test_a_sweep_of_100_000_due_items_lets_calls_be_answered() -> None:
    """While that many items come back, no call takes as long as the sweep would in one piece."""
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("swept")
        for _ in range(100):
            queue.add([b"x"] * 1000)
        leases = [queue.poll(1000, lease=60) for _ in range(100)]
        with ThreadPoolExecutor(100) as pool:
            assert all(pool.map(lambda lease: lease.extend(2.0), leases))
        assert queue.stats().leased == 100_000

        slowest = 0.0
        while queue.stats().leased:
            started = time.monotonic()
            client.queue("other").add(b"y")
            slowest = max(slowest, time.monotonic() - started)

        assert queue.stats().ready == 100_000
        assert slowest < 0.5


def test_a_list_of_millions_of_empty_elements_is_refused_unread() -> None:
    """They take no room in the message, and would take seconds to read one by one."""

    async def scenario(service: Any) -> None:
        request = service.add_request()
        request.init("req").init("items", 500_000)
        started = time.monotonic()
        told = await refusal(request.send())

        assert told.startswith("RESOURCE_EXHAUSTED: items: the call has 500000; the limit is 10000")
        assert time.monotonic() - started < 1
        many = service.removeMany_request()
        many.init("req").init("ids", 1_000_000)
        assert (await refusal(many.send())).startswith("RESOURCE_EXHAUSTED: ids: the call has")

    with running_server() as server:
        with_service(server, scenario)


def test_more_connections_than_the_soft_limit_on_files_are_served() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("the hard limit on open files is too low")
    with contextlib.ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            server = stack.enter_context(running_server("--connections-max", "1000"))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        host, port = server.address.split(":")
        for _ in range(400):
            stack.enter_context(socket.create_connection((host, int(port))))

        with queueber.connect(server.address) as client:
            assert len(client.queue().add(b"x")) == 1
