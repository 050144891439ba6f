"""Leases: kept alive while handlers are at work, and what happens when one is lost all the same."""

import asyncio
import threading
import time
from random import Random
from typing import Any

import pytest
import structlog
import trio

import queueber
from queueber.testing import ServerProcess
from tests.worker.conftest import WAIT_SECONDS, left_in, results_of, running

LEASE_SECONDS = 0.3


def worker_of(server: ServerProcess, queue: queueber.Queue, **options: Any) -> queueber.Worker:
    return queueber.Worker(server.address, queue=queue.name, progress=False, **options)


async def hang(loop: str) -> None:
    if loop == "asyncio":
        await asyncio.Event().wait()
    else:
        # Whoever is cancelled in a nursery sees a group.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await trio.sleep_forever()


def test_a_handler_may_take_longer_than_its_lease(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"slow")

    def handle(_: queueber.WorkItem) -> None:
        # A beat is a third of a lease, or a little less.
        while queue.stats().extended_total < 8:
            pass

    stats = worker_of(server, queue, handler=handle, lease=LEASE_SECONDS).run(until="empty")

    assert (stats.done, stats.refused) == (1, 0)
    assert queue.stats().expired_total == 0


def test_items_that_wait_behind_a_slow_one_are_kept_too(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"slow", b"one", b"two"])

    def handle(item: queueber.WorkItem) -> None:
        while item.contents == b"slow" and queue.stats().extended_total < 8:
            pass

    worker = worker_of(
        server, queue, handler=handle, lease=LEASE_SECONDS, concurrency=1, prefetch=5
    )
    stats = worker.run(until="empty")

    assert (stats.done, stats.refused) == (3, 0)
    assert queue.stats().expired_total == 0


def test_a_result_that_comes_too_late_is_refused_and_the_handler_learns_of_it(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    (item_id,) = patient_queue.add(b"taken away")
    refused: list[queueber.WorkItem] = []
    handled: list[bytes] = []

    def handle(item: queueber.WorkItem) -> bytes:
        handled.append(item.lease.id)
        if len(handled) == 1:
            # As if the lease had run out.
            assert patient_queue.release(item.id, lease=item.lease.id) == [True]
            return b"too late"
        return b"in time"

    with structlog.testing.capture_logs() as logs:
        stats = worker_of(server, patient_queue, handler=handle, on_lease_lost=refused.append).run(
            until="empty"
        )

    assert (stats.done, stats.refused) == (1, 1)
    assert results_of(patient_queue) == {item_id: b"in time"}
    assert [(item.id, item.lease.id) for item in refused] == [(item_id, handled[0])]
    (warning,) = [log for log in logs if log["log_level"] == "warning"]
    assert warning["event"] == "results_refused"
    assert warning["ids"] == [item_id.hex()]


def test_a_failing_on_lease_lost_does_no_harm(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    patient_queue.add(b"taken away")
    handled: list[bytes] = []

    def handle(item: queueber.WorkItem) -> None:
        handled.append(item.id)
        if len(handled) == 1:
            patient_queue.release(item.id, lease=item.lease.id)

    def fail(_: queueber.WorkItem) -> None:
        raise RuntimeError

    with structlog.testing.capture_logs() as logs:
        stats = worker_of(server, patient_queue, handler=handle, on_lease_lost=fail).run(
            until="empty"
        )

    assert stats.done == 1
    assert "on_lease_lost_failed" in {log["event"] for log in logs}


def test_a_thread_can_see_that_its_lease_is_lost(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    patient_queue.add(b"taken away")
    handled: list[bytes] = []

    def handle(item: queueber.WorkItem) -> None:
        handled.append(item.id)
        if len(handled) == 1:
            patient_queue.release(item.id, lease=item.lease.id)
            while not item.is_lost:
                time.sleep(0.001)

    worker = worker_of(
        server, patient_queue, handler=handle, lease=LEASE_SECONDS, concurrency=1, prefetch=0
    )
    stats = worker.run(until="empty")

    assert (stats.done, stats.refused) == (1, 1)


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_a_coroutine_whose_lease_is_lost_is_cancelled(
    loop: str, server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    patient_queue.add(b"taken away")
    handled: list[bytes] = []
    tidied: list[bytes] = []
    refused: list[bytes] = []

    async def handle(item: queueber.WorkItem) -> None:
        handled.append(item.id)
        if len(handled) == 1:
            patient_queue.release(item.id, lease=item.lease.id)
            try:
                await hang(loop)
            finally:
                tidied.append(item.id)

    worker = worker_of(
        server,
        patient_queue,
        handler=handle,
        loop=loop,
        lease=LEASE_SECONDS,
        on_lease_lost=lambda item: refused.append(item.id),
    )
    stats = worker.run(until="empty")

    assert (stats.done, stats.refused) == (1, 1)
    assert tidied == refused == handled[:1]


def test_a_coroutine_that_cancels_itself_fails(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    """Else its item, which is not charged, would come back to it again and again."""
    queue.add([b"raises", b"cancels"])

    async def handle(item: queueber.WorkItem) -> None:
        if item.contents == b"raises":
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(3600)

    worker = worker_of(server, queue, handler=handle)
    with running(worker, until="empty") as outcome:
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.failed, stats.died, stats.released) == (2, 2, 0)


def test_items_of_a_lost_lease_that_no_handler_has_begun_are_dropped(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    patient_queue.add([b"first", b"second", b"third"])
    handled: list[bytes] = []
    refused: list[bytes] = []

    def handle(item: queueber.WorkItem) -> None:
        handled.append(item.contents)
        if len(handled) == 1:
            leased = patient_queue.peek(queueber.ItemState.LEASED).items
            patient_queue.release([each.id for each in leased], lease=item.lease.id)
            while not item.is_lost:
                time.sleep(0.001)

    worker = worker_of(
        server,
        patient_queue,
        handler=handle,
        lease=LEASE_SECONDS,
        concurrency=1,
        prefetch=2,
        on_lease_lost=lambda item: refused.append(item.contents),
    )
    stats = worker.run(until="empty")

    assert (stats.done, stats.refused) == (3, 1)
    assert refused == [b"first"]
    assert sorted(handled) == [b"first", b"first", b"second", b"third"]


def test_a_result_that_the_server_does_not_take_fails_the_item(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"large", b"small"])

    def handle(item: queueber.WorkItem) -> bytes:
        return b"x" * 100_000 if item.contents == b"large" else b"x"

    with structlog.testing.capture_logs() as logs:
        stats = worker_of(server, queue, handler=handle, concurrency=1).run(until="empty")

    assert (stats.done, stats.died) == (1, 1)
    (dead,) = queue.peek(queueber.ItemState.DEAD).items
    assert dead.last_error.startswith("the server refused the result: ")
    assert dead.last_error.endswith("(the result has 100000 bytes)")
    assert left_in(queue) == 0
    (warning,) = [log for log in logs if log["event"] == "result_refused"]
    assert (warning["id"], warning["error"]) == (dead.id.hex(), dead.last_error)


def test_stop_gives_back_what_no_handler_has_begun_and_waits_for_the_others(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 10)
    began, go = threading.Event(), threading.Event()

    def handle(_: queueber.WorkItem) -> None:
        began.set()
        go.wait(WAIT_SECONDS)

    worker = worker_of(server, queue, handler=handle, concurrency=1, prefetch=4)
    with running(worker) as outcome:
        assert began.wait(WAIT_SECONDS)
        worker.stop()
        while queue.stats().released_total < 4:
            pass
        assert not outcome.done()
        go.set()
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.done, stats.released, stats.abandoned) == (1, 4, 0)
    assert queue.stats().ready == 9


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_what_does_not_end_in_time_is_cancelled_and_given_back(
    loop: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    began = threading.Event()

    async def handle(_: queueber.WorkItem) -> None:
        began.set()
        await hang(loop)

    worker = worker_of(server, queue, handler=handle, loop=loop, shutdown_timeout=0.01)
    with running(worker) as outcome:
        assert began.wait(WAIT_SECONDS)
        worker.stop()
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.done, stats.released, stats.abandoned) == (0, 1, 0)
    assert queue.stats().ready == 1


def test_a_thread_that_does_not_end_in_time_is_left_behind(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    began, go = threading.Event(), threading.Event()

    def handle(_: queueber.WorkItem) -> None:
        began.set()
        go.wait(WAIT_SECONDS)

    worker = worker_of(server, queue, handler=handle)
    with running(worker) as outcome:
        assert began.wait(WAIT_SECONDS)
        worker.stop()
        worker.stop()
        stats = outcome.result(WAIT_SECONDS)
    go.set()

    assert (stats.done, stats.released, stats.abandoned) == (0, 1, 1)
    assert worker.was_hurried
    assert queue.stats().ready == 1


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 8])
def test_stopping_at_any_moment_charges_no_attempt_to_what_no_handler_saw(
    concurrency: int, server: ServerProcess, queue: queueber.Queue
) -> None:
    """An answer that is on its way when the worker stops is given back, not dropped."""
    random = Random(concurrency)
    for _ in range(25):
        queue.add([b"x"] * 100)
        worker = worker_of(
            server, queue, handler=lambda _: b"", concurrency=concurrency, prefetch=0
        )
        with running(worker):
            time.sleep(random.uniform(0.02, 0.08))

    stats = queue.stats()
    assert (stats.expired_total, stats.dead, stats.leased) == (0, 0, 0)
    assert stats.completed_total + stats.ready == 2500


def test_results_that_do_not_fit_into_one_call_are_sent_in_several(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    """The server of the tests takes 64 KiB in a message."""
    queue.add([b"x"] * 40)

    async def handle(_: queueber.WorkItem) -> bytes:
        return b"x" * 5000

    stats = worker_of(server, queue, handler=handle, concurrency=40).run(until="empty")

    assert (stats.done, stats.failed) == (40, 0)


def test_a_queue_that_is_deleted_under_the_handler_does_no_harm(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    queue.add(b"x")

    def handle(_: queueber.WorkItem) -> None:
        client.delete_queue(queue.name)

    stats = worker_of(server, queue, handler=handle).run(until="empty")

    assert (stats.done, stats.failed, stats.refused) == (0, 0, 1)


def test_a_queue_that_is_deleted_is_waited_for_and_not_created_again(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    queue.add(b"first")

    worker = worker_of(server, queue, handler=lambda item: item.contents)
    with structlog.testing.capture_logs() as logs, running(worker) as outcome:
        while queue.stats().completed_total < 1:
            pass
        client.delete_queue(queue.name)
        while "queue_not_found" not in {log["event"] for log in logs}:
            time.sleep(0.001)
        assert queue.name not in {stats.name for stats in client.queues()}

        client.create_queue(queue.name, items_max=7)
        queue.add(b"second")
        while queue.stats().completed_total < 1:
            pass
        worker.stop()
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.done, stats.refused) == (2, 0)
    assert queue.stats().settings.items_max == 7
    assert [log["event"] for log in logs] == ["queue_not_found", "queue_found"]


def test_leases_are_lost_with_their_queue(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    began = threading.Event()

    async def handle(_: queueber.WorkItem) -> None:
        began.set()
        await hang("asyncio")

    worker = worker_of(server, queue, handler=handle, lease=3600)
    with running(worker, until="empty") as outcome:
        assert began.wait(WAIT_SECONDS)
        client.delete_queue(queue.name)
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.done, stats.refused) == (0, 1)
    assert queue.name not in {each.name for each in client.queues()}
