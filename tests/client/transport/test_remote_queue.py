"""Small concurrent calls of one process travel together: counted in the server's own log."""

import asyncio
import json
from collections import Counter

import queueber
from queueber.testing import ServerProcess, running_server

CALLERS = 300


def test_concurrent_adds_polls_and_removes_travel_in_few_calls() -> None:
    async def main(server: ServerProcess) -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("joined")
            await asyncio.gather(*[queue.add(b"x") for _ in range(CALLERS)])
            leases = await asyncio.gather(*[queue.poll() for _ in range(CALLERS)])
            await asyncio.gather(*[lease.remove() for lease in leases])
            stats = await queue.stats()
            assert (stats.added_total, stats.removed_total, stats.leases) == (CALLERS, CALLERS, 0)

    with running_server("--log-level", "debug") as server:
        asyncio.run(main(server))
        events = Counter(
            json.loads(line)["event"] for line in server.log_file.read_text().splitlines()
        )

    for event in ("added", "polled", "removed"):
        assert 1 <= events[event] <= 5, events


def test_calls_one_after_the_other_travel_alone() -> None:
    with running_server("--log-level", "debug") as server:
        with queueber.connect(server.address) as client:
            for _ in range(10):
                client.queue("alone").add(b"x")
        events = [json.loads(line) for line in server.log_file.read_text().splitlines()]

    assert [len(each["ids"]) for each in events if each["event"] == "added"] == [1] * 10
