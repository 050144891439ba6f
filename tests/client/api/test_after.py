"""Items that wait for others, through the client on a real server."""

import pytest

import queueber
from queueber.errors import InvalidArgument, NotFound
from queueber.limits import AFTER_MAX
from queueber.testing import running_server


def test_a_chain_comes_in_order_also_after_a_crash() -> None:
    with running_server() as server:
        with queueber.connect(server.address) as client:
            queue = client.queue("q")
            (first,) = queue.add(b"first", batch="chain")
            (second,) = queue.add(b"second", after=first, batch="chain")
            queue.add(b"third", after=[second.hex()], batch="chain", delay=0.01)
            assert queue.stats().waiting == 2
            assert [item.after for item in queue.peek("delayed").items] == [(first,), (second,)]
            queue.poll().remove()
        server.kill()
        server.start()
        with queueber.connect(server.address) as client:
            queue = client.queue("q")
            for contents in (b"second", b"third"):
                lease = queue.poll(2, wait=10)
                assert [item.contents for item in lease] == [contents]
                lease.complete(b"done")
            receipt = queue.receipt("chain")
            assert (receipt.added, receipt.done, receipt.complete) == (3, 3, True)
            assert queue.stats().waiting == 0


def test_what_comes_after_a_dead_letter_is_dead_and_can_be_redriven() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_queue("q", attempts_max=1)
        queue = client.queue("q")
        (first,) = queue.add(b"first", batch="b")
        (second,) = queue.add(b"second", after=first, batch="b")
        queue.poll().fail("no")
        receipt = queue.wait_for_batch("b", timeout=10)
        assert (receipt.added, receipt.dead, receipt.complete) == (2, 2, True)
        (letter,) = [item for item in queue.peek("dead").items if item.id == second]
        assert letter.last_error == (
            f"it was to come after item {first.hex()}, which died or was cancelled"
        )
        assert queue.redrive(second) == 1
        assert [item.id for item in queue.poll(2)] == [second]
        assert not queue.receipt("b").complete


def test_items_wait_for_a_batch() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("q")
        queue.add([b"a", b"b"], batch="b")
        queue.add([b"after"], after_batch="b")
        (item,) = queue.peek("delayed").items
        assert (item.after, item.after_batch) == ((), "b")
        queue.poll(2).remove()
        assert [item.contents for item in queue.poll(wait=10)] == [b"after"]


def test_bad_arguments_are_refused() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("q")
        with pytest.raises(InvalidArgument, match="after: 101 items are too many to wait for"):
            queue.add(b"x", after=[bytes(16)] * (AFTER_MAX + 1))
        with pytest.raises(InvalidArgument, match="after"):
            queue.add(b"x", after=[b"short"])
        with pytest.raises(NotFound, match="after: queue 'q' has never had an item"):
            queue.add(b"x", after=b"\xff" * 16)
        with pytest.raises(NotFound, match="knows no batch 'b'"):
            queue.add(b"x", after_batch="b")
        with pytest.raises(InvalidArgument, match="after_batch: it is empty"):
            queue.add(b"x", after_batch="")
        assert queue.stats().added_total == 0
