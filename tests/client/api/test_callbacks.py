"""Callbacks through the client, on a real server."""

import asyncio
from typing import Any

import pytest

import queueber
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound
from queueber.testing import running_server


def test_a_fan_out_is_followed_by_one_report() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        orders, reports = client.queue("orders"), client.queue("reports")
        orders.add([b"a", b"b", b"c"], batch="orders-17")
        options: dict[str, Any] = {"to": "reports", "priority": 7, "attributes": {"for": "ops"}}
        options |= {"attempts": 1, "timeout": 30}
        waiting = orders.when_complete("orders-17", b"report", **options)
        assert (waiting.to, waiting.item_id, waiting.problem) == ("reports", b"", "")
        assert orders.stats().callbacks == 1

        orders.poll(3).remove()

        (item,) = lease = reports.poll(wait=10)
        assert item.timeout == 30
        assert (item.contents, item.attributes["for"]) == (b"report", "ops")
        assert item.attributes["queueber.queue"] == "orders"
        assert queueber.callback_receipt(item.attributes) == orders.receipt("orders-17")
        assert orders.when_complete("orders-17", b"report", **options).item_id == item.id
        assert orders.callback("orders-17").item_id == item.id
        assert orders.stats().callbacks == 0
        with pytest.raises(FailedPrecondition, match="has added item"):
            orders.when_complete("orders-17", b"another", to="reports")
        assert reports.poll().ids == []
        assert lease.fail("no") == [queueber.FailOutcome.DIED]


def test_a_batch_without_a_callback_and_one_that_is_unknown() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue()
        queue.add(b"x", batch="b")
        with pytest.raises(NotFound, match="'b' of queue 'default' has no callback"):
            queue.callback("b")
        with pytest.raises(NotFound, match="knows no batch 'c'"):
            queue.when_complete("c", b"x")
        with pytest.raises(InvalidArgument, match="contents: 'x' is not bytes"):
            queue.when_complete("b", "x")  # type: ignore[arg-type]


def test_awaited_and_after_a_crash() -> None:
    with running_server() as server:

        async def ask() -> None:
            async with queueber.connect_async(server.address) as client:
                queue = client.queue("q")
                await queue.add(b"x", batch="b")
                assert (await queue.when_complete("b", b"done")).to == "q"
                lease = await queue.poll()
                await lease.remove()

        asyncio.run(ask())
        server.kill()
        server.start()
        with queueber.connect(server.address) as client:
            (item,) = client.queue("q").poll(wait=10)
            assert item.contents == b"done"
            assert queueber.callback_receipt(item.attributes).done == 1
            assert client.queue("q").poll().ids == []
