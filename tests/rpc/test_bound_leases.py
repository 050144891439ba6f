"""Leases that are bound to a connection end with it, however it ends."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import capnp
import pytest

import queueber
from queueber.schema import wire
from queueber.testing import ServerProcess, running_server


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """For the tests that leave it running; each has a queue of its own."""
    with running_server() as started:
        yield started


def until(is_so: Callable[[], bool]) -> None:
    """Wait for a state of another process, which no event announces."""
    give_up_at = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def test_closing_the_client_gives_back_what_it_had_bound_and_nothing_else(
    server: ServerProcess,
) -> None:
    with queueber.connect(server.address) as client:
        queue = client.queue("work")
        queue.add([b"1", b"2", b"3"])
        kept = queue.poll(lease=600, release_on_disconnect=True)
        with queueber.connect(server.address) as other:
            bound = other.queue("work").poll(lease=600, release_on_disconnect=True)
            free = other.queue("work").poll(lease=600)
            assert queue.stats().leased == 3

        until(lambda: queue.stats().ready == 1)
        assert queue.poll().ids == bound.ids
        assert bound.ids != free.ids
        assert kept.remove() == [True]
        assert queue.remove(free.ids, lease=free.id) == [True]
        assert queue.remove(bound.ids, lease=bound.id) == [False]


def test_items_of_a_bound_lease_wake_a_poll_that_waits_when_its_connection_ends(
    server: ServerProcess,
) -> None:
    with queueber.connect(server.address) as client:
        queue = client.queue("waited-for")
        [item_id] = queue.add(b"x")
        other = queueber.connect(server.address)
        assert other.queue(queue.name).poll(lease=600, release_on_disconnect=True).ids == [item_id]

        async def main() -> None:
            async with queueber.connect_async(server.address) as waiting:
                again = waiting.queue(queue.name)
                poll = asyncio.ensure_future(again.poll(wait=30))
                while (await again.stats()).waiting_polls == 0:
                    pass
                await asyncio.to_thread(other.close)
                assert (await poll).ids == [item_id]

        asyncio.run(main())


WORKER = """
import sys, time
import queueber
client = queueber.connect(sys.argv[1])
lease = client.queue("killed").poll(10, lease=600, release_on_disconnect=True)
print(len(lease), flush=True)
time.sleep(600)
"""


@pytest.mark.recovery
def test_a_worker_that_is_killed_gives_its_bound_items_back(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        queue = client.queue("killed")
        queue.add([b"x"] * 3)
        with subprocess.Popen(
            [sys.executable, "-c", WORKER, server.address], stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "3\n"
            assert queue.stats().leased == 3
            worker.send_signal(signal.SIGKILL)

        until(lambda: queue.stats().ready == 3)
        assert queue.stats().leases == 0


def test_a_bound_lease_ends_when_it_expires_too(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        queue = client.queue("expires")
        queue.add(b"x")
        lease = queue.poll(lease=0.05, release_on_disconnect=True)

        assert queue.poll(wait=10).ids == lease.ids
        assert lease.remove() == [False]


def test_polls_that_are_joined_may_be_bound_or_not(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as watching:
            queue = watching.queue("joined")
            await queue.add([b"x"] * 40)
            async with queueber.connect_async(server.address) as client:
                polls = [
                    client.queue("joined").poll(release_on_disconnect=at % 2 == 0)
                    for at in range(40)
                ]
                leases = await asyncio.gather(*polls)
                assert all(len(lease) == 1 for lease in leases)
            while (await queue.stats()).leased != 20:
                pass
            kept = [await queue.remove(lease.ids, lease=lease.id) for lease in leases]
            assert kept == [[at % 2 == 1] for at in range(40)]

    asyncio.run(main())


@pytest.mark.recovery
@pytest.mark.parametrize("end", [ServerProcess.stop, ServerProcess.kill])
def test_bound_leases_outlive_a_restart_of_the_server(
    end: Callable[[ServerProcess], object],
) -> None:
    """Their holders are still at work, and come back to finish."""
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue()
        queue.add(b"x")
        lease = queue.poll(lease=600, release_on_disconnect=True)
        end(server)
        server.start()

        assert queue.stats().leased == 1
        assert lease.complete(b"done") == [True]


# --- what no client of ours sends -----------------------------------------------------------------


def refusals(server: ServerProcess, make: Callable[[Any], Any]) -> str:
    async def main() -> str:
        async with capnp.kj_loop():
            host, port = server.address.split(":")
            stream = await capnp.AsyncIoStream.create_connection(host, int(port))
            service = capnp.TwoPartyClient(stream).bootstrap().cast_as(wire.Service)
            before = (await service.stats()).stats.addedTotal
            with pytest.raises(capnp.KjException) as caught:
                await make(service)
            assert (await service.stats()).stats.addedTotal == before
            stream.close()
            text = str(caught.value.description)
            return text.removeprefix("remote exception: ").removeprefix("message = ")

    return asyncio.run(main())


def bad_text(method: str, message: Any, struct: Any) -> Callable[[Any], Any]:
    """A call whose `req` has, in place of `abcd`, bytes that are not UTF-8."""
    raw = message.to_bytes().replace(b"abcd", b"a\xff\xfed")

    def send(service: Any) -> Any:
        request = getattr(service, f"{method}_request")()
        with struct.from_bytes(raw) as body:
            request.req = body
        return request.send()

    return send


@pytest.mark.parametrize(
    ("method", "struct", "fields"),
    [
        ("add", wire.AddRequest, {"contents": [b"x"], "batch": "abcd"}),
        ("add", wire.AddRequest, {"contents": [b"x"], "keys": ["abcd"]}),
        ("add", wire.AddRequest, {"contents": [b"x"], "producer": {"id": "abcd"}}),
        ("add", wire.AddRequest, {"items": [{"key": "abcd"}]}),
        (
            "add",
            wire.AddRequest,
            {
                "contents": [b"x"],
                "attributes": {"counts": [1], "names": ["abcd"], "values": [""]},
            },
        ),
        (
            "fail",
            wire.FailRequest,
            {"ids": [bytes(16)], "leases": [bytes(16)], "errors": ["abcd"]},
        ),
        ("readResults", wire.ReadRequest, {"reader": "abcd"}),
    ],
)
def test_text_that_is_not_utf_8_is_refused(
    server: ServerProcess, method: str, struct: Any, fields: dict[str, object]
) -> None:
    message = struct.new_message(**fields)
    told = refusals(server, bad_text(method, message, struct))

    assert told.startswith("INVALID_ARGUMENT: the message could not be read")


def test_a_state_that_the_schema_does_not_know_is_refused(server: ServerProcess) -> None:
    raw = bytearray(wire.PeekRequest.new_message(state="dead").to_bytes())
    raw[16] = 77  # the first byte of data, after the header and the pointer

    def send(service: Any) -> Any:
        request = service.peek_request()
        with wire.PeekRequest.from_bytes(bytes(raw)) as body:
            request.req = body
        return request.send()

    told = refusals(server, send)

    assert told.startswith("INVALID_ARGUMENT: state: 77 is none of ready")


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("complete", "ids"),
        ("complete", "leases"),
        ("complete", "results"),
        ("fail", "errors"),
        ("fail", "delaysMs"),
        ("release", "ids"),
    ],
)
def test_lists_of_outcomes_are_counted_before_they_are_read(
    server: ServerProcess, method: str, field: str
) -> None:
    def send(service: Any) -> Any:
        request = getattr(service, f"{method}_request")()
        request.init("req").init(field, 1_000_000)
        return request.send()

    told = refusals(server, send)

    assert told.startswith(f"RESOURCE_EXHAUSTED: {field}: the call has 1000000; the limit is 10000")
