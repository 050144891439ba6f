"""What became of items: receipts of batches, the log of results and its readers."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import queueber
from queueber.testing import running_server


def complete(queue: queueber.Queue, results: list[bytes]) -> None:
    """Add and complete as many items; their results are in the log in this order."""
    queue.add([b"x"] * len(results))
    assert all(queue.poll(len(results)).complete(results))


def test_a_receipt_counts_what_became_of_a_batch(queue: queueber.Queue) -> None:
    queue.add([b"1", b"2"], batch="load")
    queue.add(b"3", batch="load")
    queue.add(b"4", batch="other")
    lease = queue.poll(2)

    lease.complete({lease.ids[0]: b"done"})
    lease.remove(lease.ids[1])

    receipt = queue.receipt("load")
    assert (receipt.batch, receipt.complete) == ("load", False)
    assert (receipt.added, receipt.done, receipt.dead, receipt.live) == (3, 2, 0, 1)
    queue.cancel(queue.poll().ids)
    receipt = queue.receipt("load")
    assert (receipt.added, receipt.done, receipt.dead, receipt.live) == (3, 2, 1, 0)
    assert receipt.complete


def test_waiting_for_a_batch_ends_when_it_is_complete(queue: queueber.Queue) -> None:
    queue.add([b"1", b"2"], batch="b")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.wait_for_batch, "b", 30)
        for _ in range(2):
            assert not waiting.done()
            queue.poll().complete(b"")

        assert waiting.result().complete


def test_waiting_for_a_batch_tells_how_it_stands_when_the_time_is_up(queue: queueber.Queue) -> None:
    queue.add(b"1", batch="b")
    started = time.monotonic()

    receipt = queue.wait_for_batch("b", timeout=0.2)

    assert time.monotonic() - started >= 0.19
    assert (receipt.complete, receipt.live) == (False, 1)
    assert not queue.wait_for_batch("b", 0).complete


@pytest.mark.recovery
def test_waiting_for_a_batch_goes_on_after_the_server_was_restarted() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("kept")
        queue.add(b"1", batch="b")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(queue.wait_for_batch, "b")
            threading.Event().wait(0.1)
            server.kill()
            server.start()
            queue.poll(wait=5).complete(b"r")

            assert waiting.result().complete


def test_results_are_read_from_an_offset(queue: queueber.Queue) -> None:
    [item_id] = queue.add(b"x", key="k", batch="b")
    queue.poll().complete(b"first")
    complete(queue, [b"second", b"third"])

    page = queue.read_results(limit=2)

    first, second = page.results
    assert (first.id, first.result, first.key, first.batch) == (item_id, b"first", "k", "b")
    assert (first.attempt, first.offset + 1) == (1, second.offset)
    assert (second.result, second.key, second.batch) == (b"second", "", "")
    assert page.missed == 0
    rest = queue.read_results(page.next_offset)
    assert [result.result for result in rest.results] == [b"third"]
    assert queue.read_results(rest.next_offset).results == []


def test_reading_waits_for_the_first_result(queue: queueber.Queue) -> None:
    queue.stats()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.read_results, wait=30)
        threading.Event().wait(0.05)
        assert not waiting.done()
        complete(queue, [b"r"])

        assert [result.result for result in waiting.result().results] == [b"r"]


def test_a_named_reader_goes_on_where_it_has_acknowledged(queue: queueber.Queue) -> None:
    complete(queue, [b"1", b"2", b"3"])
    page = queue.read_results(reader="billing", limit=2)
    assert [r.result for r in queue.read_results(reader="billing", limit=2).results] == [b"1", b"2"]

    queue.ack_results("billing", page.next_offset)

    assert [result.result for result in queue.read_results(reader="billing").results] == [b"3"]
    assert [result.result for result in queue.read_results().results] == [b"1", b"2", b"3"]
    log = queue.results_stats()
    assert log.readers == {"billing": page.next_offset}
    assert log.next_offset - log.first_offset == 3
    assert queue.drop_reader("billing") is True
    assert queue.drop_reader("billing") is False
    assert queue.results_stats().readers == {}


def test_every_result_is_iterated_page_by_page(queue: queueber.Queue) -> None:
    for at in range(3):
        complete(queue, [b"%d" % (at * 900 + n) for n in range(900)])

    results = list(queue.results())

    assert [result.result for result in results] == [b"%d" % n for n in range(2700)]
    later = queue.results(offset=results[2000].offset)
    assert next(iter(later)).result == b"2000"


def test_an_iterating_reader_acknowledges_the_pages_that_it_was_done_with(
    queue: queueber.Queue,
) -> None:
    for _ in range(2):
        complete(queue, [b"x"] * 900)
    reading = queue.results("me")
    seen = [next(reading).offset for _ in range(1500)]

    again = [result.offset for result in queue.results("me")]

    assert again[0] == seen[1000]
    assert len(again) == 800
    assert list(queue.results("me")) == []


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda q: q.receipt(""), "batch: it is empty"),
        (lambda q: q.receipt(5), "batch: 5"),
        (lambda q: q.wait_for_batch("b", -1), "timeout: -1"),
        (lambda q: q.read_results(-1), "offset: -1"),
        (lambda q: q.read_results(limit=0), "limit: 0"),
        (lambda q: q.read_results(limit=10_001), "limit: 10001 is too many; the limit is 10000"),
        (lambda q: q.read_results(5, reader="r"), "offset: a named reader"),
        (lambda q: q.read_results(reader="x" * 257), "reader: it has 257 bytes; the limit is 256"),
        (lambda q: q.ack_results("", 5), "reader: it is empty"),
        (lambda q: q.drop_reader(None), "reader: None"),
        (lambda q: next(q.results(wait=-1)), "wait: -1"),
    ],
)
def test_bad_arguments_name_the_field(
    queue: queueber.Queue, call: Callable[[queueber.Queue], object], told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        call(queue)

    assert told in str(caught.value)
