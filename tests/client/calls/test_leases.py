"""How the items of a lease end: complete, fail, release."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

import queueber
from queueber import FailOutcome
from queueber.testing import ServerProcess, running_server

CALLERS = 100


def counts(queue: queueber.Queue) -> tuple[int, int, int, int]:
    stats = queue.stats()
    return stats.ready, stats.delayed, stats.leased, stats.dead


def test_completed_items_are_gone_and_their_results_are_kept(queue: queueber.Queue) -> None:
    first, second, third = queue.add([b"1", b"2", b"3"])
    lease = queue.poll(3)

    assert lease.complete({third: b"c", first: b"a"}) == [True, True]
    assert queue.complete(second, b"b", lease=lease.id) == [True]

    assert [(r.id, r.result) for r in queue.results()] == [
        (third, b"c"),
        (first, b"a"),
        (second, b"b"),
    ]
    assert counts(queue) == (0, 0, 0, 0)
    assert queue.stats().completed_total == 3


def test_results_are_given_in_the_order_of_the_items_or_alone(queue: queueber.Queue) -> None:
    queue.add([b"1", b"2", b"3"])

    assert queue.poll(2).complete([b"a", b"b"]) == [True, True]
    assert queue.poll(1).complete(b"c") == [True]

    assert [result.result for result in queue.results()] == [b"a", b"b", b"c"]


def test_a_lease_that_lost_an_item_completes_the_others(queue: queueber.Queue) -> None:
    ids = queue.add([b"1", b"2", b"3"])
    lease = queue.poll(3)
    queue.cancel(ids[1])

    assert lease.complete([b"a", b"b", b"c"]) == [True, False, True]

    assert [(r.id, r.result) for r in queue.results()] == [(ids[0], b"a"), (ids[2], b"c")]


def test_an_older_server_gets_what_it_can_read(client: queueber.Client) -> None:
    """Such a server has no word for packed contents, nor for leases that end as a whole."""
    connected = client.queue("of-an-older-server")
    connection = connected._calls._queue.connection
    connection.server = replace(connection.server, reads_packed=False)

    ids = connected.add([b"%d" % n for n in range(100)])
    lease = connected.poll(100)

    assert (lease.ids, [item.contents for item in lease]) == (ids, [b"%d" % n for n in range(100)])
    assert lease.complete([b"%d" % n for n in range(100)]) == [True] * 100
    assert [(r.id, r.result) for r in connected.results()] == [
        (item_id, b"%d" % n) for n, item_id in enumerate(ids)
    ]


def test_an_ended_lease_completes_fails_and_releases_nothing(queue: queueber.Queue) -> None:
    queue.add(b"x")
    lease = queue.poll(lease=0.05)
    other = queue.poll(lease=60, wait=10)

    assert lease.complete(b"late") == [False]
    assert lease.fail("late") == [FailOutcome.REFUSED]
    assert lease.release() == [False]

    assert other.ids == lease.ids
    assert counts(queue) == (0, 0, 1, 0)
    assert list(queue.results()) == []


def test_a_failed_item_comes_back_after_its_delay_with_its_attempt(queue: queueber.Queue) -> None:
    [item_id] = queue.add(b"x")
    failed_at = time.monotonic()

    assert queue.poll().fail("no luck", delay=0.2) == [FailOutcome.RETRIED]

    assert counts(queue) == (0, 1, 0, 0)
    [item] = queue.poll(wait=10)
    assert time.monotonic() - failed_at >= 0.2
    assert (item.id, item.attempt) == (item_id, 2)


def test_a_failed_item_comes_back_after_the_queues_backoff(client: queueber.Client) -> None:
    client.create_queue("backoff", backoff=[0.01, 3600])
    queue = client.queue("backoff")
    queue.add(b"x")

    assert queue.poll().fail("first") == [FailOutcome.RETRIED]
    assert queue.poll(wait=10).fail("second") == [FailOutcome.RETRIED]

    assert not queue.poll(wait=0.1)
    assert counts(queue) == (0, 1, 0, 0)


def test_an_item_that_failed_too_often_is_a_dead_letter(client: queueber.Client) -> None:
    client.create_queue("fragile", attempts_max=2, backoff=[0])
    queue = client.queue("fragile")
    [item_id] = queue.add(b"x")
    assert queue.poll(wait=5).fail("once") == [FailOutcome.RETRIED]

    assert queue.poll(wait=5).fail("twice") == [FailOutcome.DIED]

    assert counts(queue) == (0, 0, 0, 1)
    [dead] = queue.peek("dead").items
    assert (dead.id, dead.last_error, dead.attempts) == (item_id, "twice", 2)
    assert len(dead.attempt_times_ms) == 2


def test_each_failed_item_may_have_an_error_of_its_own(queue: queueber.Queue) -> None:
    first, second, third = queue.add([b"1", b"2", b"3"])
    lease = queue.poll(3)

    assert lease.fail(["one", "two"], ids=[first, second], delay=60) == [FailOutcome.RETRIED] * 2
    assert queue.fail(third, "three", lease=lease.id, delay=60) == [FailOutcome.RETRIED]

    errors = {item.id: item.last_error for item in queue.peek("delayed").items}
    assert errors == {first: "one", second: "two", third: "three"}


def test_a_released_item_is_ready_at_once_and_was_not_tried(queue: queueber.Queue) -> None:
    first, second = queue.add([b"1", b"2"])
    lease = queue.poll(2)

    assert lease.release(first) == [True]
    assert queue.release([second, first], lease=lease.id) == [True, False]

    assert counts(queue) == (2, 0, 0, 0)
    assert [item.attempt for item in queue.poll(2)] == [1, 1]


def test_a_lease_without_items_has_nothing_to_end(queue: queueber.Queue) -> None:
    lease = queue.poll()

    assert (lease.complete({}), lease.fail("x"), lease.release()) == ([], [], [])


def test_the_lease_of_a_poll_is_the_queues_unless_it_names_one(client: queueber.Client) -> None:
    client.create_queue("short", lease=0.05)
    queue = client.queue("short")
    queue.add(b"x")
    queue.poll()

    assert queue.poll(lease=60, wait=10)
    assert not queue.poll(wait=0.2)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda lease: lease.complete(b"one"), "results: 1 results for 2 items"),
        (lambda lease: lease.complete([b"1", b"2", b"3"]), "results: 3 results for 2 items"),
        (lambda lease: lease.complete("text"), "results: str is text"),
        (lambda lease: lease.complete({b"short": b""}), "ids: b'short'"),
        (lambda lease: lease.complete([b"1", 2]), "results: item 1 is int"),
        (lambda lease: lease.fail(5), "error: 5"),
        (lambda lease: lease.fail(["only one"]), "error: 1 errors for 2 items"),
        (lambda lease: lease.fail("x", delay=-1), "delay: -1"),
        (lambda lease: lease.release(b"short"), "ids: b'short'"),
        (lambda lease: lease.extend(0), "seconds: 0"),
    ],
)
def test_bad_arguments_name_the_field_and_change_nothing(
    queue: queueber.Queue, call: Callable[[queueber.Lease], object], told: str
) -> None:
    queue.add([b"1", b"2"])
    lease = queue.poll(2)

    with pytest.raises(queueber.InvalidArgument) as caught:
        call(lease)

    assert told in str(caught.value)
    assert counts(queue) == (0, 0, 2, 0)


def test_results_that_are_too_large_for_a_call_are_refused(queue: queueber.Queue) -> None:
    queue.add([b"x"] * 9)
    lease = queue.poll(9)

    with pytest.raises(queueber.ResourceExhausted, match="send several calls"):
        lease.complete([bytes(4 * 1024 * 1024)] * 9)

    assert counts(queue) == (0, 0, 9, 0)


def test_concurrent_outcomes_travel_in_few_calls_and_each_gets_its_own_answer() -> None:
    async def main(server: ServerProcess) -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("joined")
            await queue.add([b"x"] * CALLERS * 3)
            leases = [await queue.poll() for _ in range(CALLERS * 3)]
            completing, failing, releasing = (leases[at::3] for at in range(3))
            completed = await asyncio.gather(
                *[lease.complete(b"%d" % at) for at, lease in enumerate(completing)]
            )
            failed = await asyncio.gather(
                *[lease.fail(f"{at}", delay=60) for at, lease in enumerate(failing)]
            )
            released = await asyncio.gather(*[lease.release() for lease in releasing])
            assert completed == [[True]] * CALLERS
            assert failed == [[FailOutcome.RETRIED]] * CALLERS
            assert released == [[True]] * CALLERS

            page = await queue.read_results()
            kept = {result.id: result.result for result in page.results}
            assert kept == {lease.ids[0]: b"%d" % at for at, lease in enumerate(completing)}
            errors = {item.id: item.last_error async for item in queue.peek_all("delayed")}
            assert errors == {lease.ids[0]: f"{at}" for at, lease in enumerate(failing)}

    with running_server("--log-level", "debug") as server:
        asyncio.run(main(server))
        events = Counter(
            json.loads(line)["event"] for line in server.log_file.read_text().splitlines()
        )

    for event in ("completed", "failed", "released"):
        assert 1 <= events[event] <= 5, events
