"""Handlers that take longer than their `timeout`: coroutines, threads, and processes."""

import asyncio
import contextlib
import math
import threading
import time
from typing import Any

import pytest
import structlog
import trio

import queueber
from queueber.testing import ServerProcess
from queueber.worker.handlers.shared_deadlines import SharedDeadlines
from queueber.worker.handlers.time_limit import TimeLimit
from queueber.worker.handlers.work_item import HeldLease, WorkItem
from queueber.worker.processes import supervisor
from queueber.worker.processes.process_slot import ProcessSlot
from tests.worker import samples
from tests.worker.conftest import WAIT_SECONDS, last_error_of, left_in, results_of, running

LIMIT = 0.1
OVERRUN = "HandlerTimeout: the handler ran longer than 0.1 s (its timeout)"


def worker_of(server: ServerProcess, queue: queueber.Queue, **options: Any) -> queueber.Worker:
    given = {"timeout": LIMIT, "concurrency": 2, "progress": False, **options}
    return queueber.Worker(server.address, queue=queue.name, **given)


@pytest.mark.parametrize("library", [asyncio, trio], ids=["asyncio", "trio"])
def test_a_coroutine_that_overruns_is_cancelled_and_its_item_fails_with_its_stack(
    library: Any, server: ServerProcess, queue: queueber.Queue
) -> None:
    _, good = queue.add([b"hang", b"good"])
    cancelled = []

    async def handle(item: queueber.WorkItem) -> bytes:
        if item.contents == b"hang":
            try:
                await library.sleep(3600)
            except BaseException as error:
                cancelled.append(type(error).__name__)
                raise
        return b"well"

    loop: Any = library.__name__
    stats = worker_of(server, queue, handler=handle, loop=loop).run(until="empty")

    assert results_of(queue) == {good: b"well"}
    assert cancelled in (["CancelledError"], ["Cancelled"])
    told = last_error_of(queue)
    assert told.splitlines()[0] == OVERRUN
    assert "await library.sleep(3600)" in told
    assert "queueber/worker" not in told
    assert (stats.done, stats.failed, stats.timed_out, stats.stuck) == (1, 1, 1, 0)


@pytest.mark.parametrize("library", [asyncio, trio], ids=["asyncio", "trio"])
def test_a_coroutine_that_refuses_to_end_takes_up_its_slot_until_it_does(
    library: Any, server: ServerProcess, queue: queueber.Queue
) -> None:
    """A slot is given up, the other one works, and the first comes back."""
    first, *others = queue.add([b"refuse", *[b"x"] * 10])
    go = threading.Event()

    async def handle(item: queueber.WorkItem) -> bytes:
        while item.contents == b"refuse" and not go.is_set():
            with contextlib.suppress(asyncio.CancelledError, trio.Cancelled):
                await library.sleep(0.01)
            if library is trio:
                # Every await of a cancelled scope raises at once.
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.01)
        return b"done"

    worker = worker_of(server, queue, handler=handle, loop=library.__name__)
    with running(worker) as outcome:
        while worker.stats().stuck == 0:
            time.sleep(0.01)
        while len(results_of(queue)) < 10:
            time.sleep(0.01)
        go.set()
        while worker.stats().stuck:
            time.sleep(0.01)
        worker.stop()
        stats = outcome.result(WAIT_SECONDS)

    assert results_of(queue) == dict.fromkeys(others, b"done")
    assert last_error_of(queue) == f"{OVERRUN}; it could not be ended, and still runs"
    assert queue.peek("dead").items[0].id == first
    assert (stats.done, stats.timed_out, stats.stuck) == (10, 1, 0)


def test_a_function_that_overruns_fails_its_item_with_its_stack_and_its_outcome_is_dropped(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"hang", *[b"x"] * 10])
    go = threading.Event()

    def wait_for_ever() -> None:
        go.wait(WAIT_SECONDS)

    def handle(item: queueber.WorkItem) -> bytes:
        if item.contents == b"hang":
            wait_for_ever()
        return item.contents

    with structlog.testing.capture_logs() as logs:
        worker = worker_of(server, queue, handler=handle)
        with running(worker) as outcome:
            while worker.stats().stuck == 0 or len(results_of(queue)) < 10:
                time.sleep(0.01)
            told, during = last_error_of(queue), worker.stats()
            go.set()
            while worker.stats().stuck:
                time.sleep(0.01)
            worker.stop()
            stats = outcome.result(WAIT_SECONDS)

    assert told.startswith(f"{OVERRUN}; it could not be ended, and still runs\n")
    assert "in handle\n    wait_for_ever()\n" in told
    assert "in wait_for_ever\n    go.wait(WAIT_SECONDS)\n" in told
    assert "_bootstrap" not in told
    assert (during.stuck, during.timed_out, during.in_flight) == (1, 1, 0)
    assert {"event": "handlers_stuck", "count": 1, "free": 1, "log_level": "warning"} in logs
    assert (stats.done, stats.failed, stats.refused, stats.stuck) == (10, 1, 0, 0)
    assert len(results_of(queue)) == 10


def test_a_worker_none_of_whose_threads_is_left_ends_and_gives_back_what_waits(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 6)
    go = threading.Event()

    worker = worker_of(server, queue, handler=lambda _: go.wait(WAIT_SECONDS), prefetch=2)
    try:
        with pytest.raises(queueber.HandlersStuck, match=r"all 2 handlers ran longer than 0\.1 s"):
            worker.run()
    finally:
        go.set()

    stats = queue.stats()
    assert (stats.ready, stats.leased, stats.dead) == (4, 0, 2)


def test_a_worker_whose_threads_come_back_in_time_goes_on(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    """While no handler is free it holds nothing: neither what waited, nor what comes now."""
    _, _, *good = queue.add([b"slow", b"slow", b"good", b"good"])
    go = threading.Event()

    def handle(item: queueber.WorkItem) -> bytes:
        if item.contents == b"slow":
            go.wait(WAIT_SECONDS)
        return b"well"

    worker = worker_of(server, queue, handler=handle, timeout=1, prefetch=3)
    with running(worker) as outcome:
        while worker.stats().stuck < 2:
            time.sleep(0.01)
        good += queue.add(b"good")
        time.sleep(0.3)
        during = queue.stats()
        go.set()
        while left_in(queue):
            time.sleep(0.01)
        worker.stop()
        stats = outcome.result(WAIT_SECONDS)

    assert (during.ready, during.leased) == (3, 0)
    assert results_of(queue) == dict.fromkeys(good, b"well")
    assert (stats.done, stats.timed_out, stats.stuck) == (3, 2, 0)


def test_a_process_whose_function_overruns_is_replaced_after_its_other_handlers_ended(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    """The second slow one has begun when the first item overruns, and ends in the same process."""
    hung, *slow = patient_queue.add([b"hang", b"slow", b"slow"])

    with structlog.testing.capture_logs() as logs:
        stats = worker_of(
            server,
            patient_queue,
            handler=samples.hang_at_first,
            processes=1,
            timeout=1,
            shutdown_timeout=0,
        ).run(until="empty")

    results = results_of(patient_queue)
    assert results.keys() == {hung, *slow}
    assert results[slow[0]] == results[slow[1]] != results[hung]
    assert (stats.done, stats.failed, stats.timed_out, stats.stuck) == (3, 1, 1, 0)
    assert stats.abandoned == 0
    events = [log["event"] for log in logs]
    assert events.count("worker_process_replaced") == 1
    assert "worker_process_died" not in events


def test_a_process_whose_loop_a_handler_blocks_is_killed_and_replaced(
    server: ServerProcess, patient_queue: queueber.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in the process can cancel such a handler, so the one that started it does."""
    monkeypatch.setattr(supervisor, "_SILENCE_SECONDS_MAX", 0.5)
    (hung,) = patient_queue.add(b"hang")

    with structlog.testing.capture_logs() as logs:
        worker = worker_of(
            server, patient_queue, handler=samples.block_at_first, processes=1, timeout=0.5
        )
        worker.run(until="empty")

    assert results_of(patient_queue).keys() == {hung}
    (killed,) = [log for log in logs if log["event"] == "worker_process_killed"]
    assert "a handler blocks the process" in killed["reason"]


def test_a_process_is_killed_by_the_limits_of_the_handlers_that_run_in_it(
    server: ServerProcess, patient_queue: queueber.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker has no limit. Whoever keeps the interpreter within its own is left alone."""
    monkeypatch.setattr(supervisor, "_SILENCE_SECONDS_MAX", 0.5)
    patient, hung, free = patient_queue.add([b"patient", b"hang", b"free"], timeout=[60, 0.2, None])

    with structlog.testing.capture_logs() as logs:
        worker_of(
            server,
            patient_queue,
            handler=samples.keep_the_interpreter,
            processes=1,
            concurrency=1,
            prefetch=0,
            timeout=None,
        ).run(until="empty")

    assert results_of(patient_queue) == {patient: b"1", hung: b"2", free: b"1"}
    assert [log["event"] for log in logs].count("worker_process_killed") == 1


@pytest.mark.parametrize(
    ("limits", "late"),
    [([], -math.inf), ([60.0], -60), ([60.0, -3.0, 5.0], 3.0), ([-3.0, -4.0], 4)],
)
def test_the_parent_of_a_process_knows_since_when_a_handler_is_late(
    limits: list[float], late: float
) -> None:
    """A handler that was given up counts until the end of its process."""
    slot = ProcessSlot(0, queueber.Worker(handler=samples.double, processes=1)._settings)
    shared = SharedDeadlines(slot._deadlines)
    limit = TimeLimit(None, own_limit=lambda item: limits[item.attempt], shared=shared)
    lease = HeldLease(b"", 1, 0.0)
    items = [WorkItem(queueber.Item(bytes(16), b"", at), lease) for at in range(len(limits))]
    for item in items:
        limit.begin(item)
    assert slot.late_seconds() == pytest.approx(late, abs=0.5)

    for item in items[1:]:
        assert limit.end(item)
    assert slot.late_seconds() == pytest.approx(-limits[0] if limits else late, abs=0.5)
    if items:
        assert limit.end(items[0], is_given_up=True)
        assert slot.late_seconds() == pytest.approx(-limits[0], abs=0.5)


def test_the_item_that_blocks_the_loop_of_its_process_fails_with_that_and_others_go_back(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    (hung,) = queue.add([b"hang"], timeout=0.5, attempts=1)
    others = queue.add([b"other"] * 3)

    with structlog.testing.capture_logs() as logs:
        stats = worker_of(
            server,
            queue,
            handler="tests.worker.processes.blocks_its_loop:handle",
            middleware=["tests.worker.processes.blocks_its_loop:Reports"],
            processes=1,
            concurrency=3,
            timeout=60,
        ).run(until="empty")

    assert results_of(queue) == dict.fromkeys(others, b"1")
    (letter,) = queue.peek("dead").items
    first, noted, *stack = letter.last_error.splitlines()
    assert (letter.id, first) == (
        hung, "HandlerTimeout: the handler ran longer than 0.5 s (its timeout)",
    )  # fmt: skip
    assert noted == "told of hang; it blocked the event loop, so its process was ended"
    assert "time.sleep(3600)" in "\n".join(stack)
    assert (stats.done, stats.failed, stats.died, stats.timed_out) == (3, 1, 1, 1)
    assert stats.released == 3
    events = [log["event"] for log in logs]
    assert "handler_failed" in events
    assert "worker_process_replaced" in events
    assert "worker_process_died" not in events


@pytest.mark.parametrize("kind", ["threads", "asyncio", "trio"])
def test_handlers_within_their_limit_are_left_alone(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    ids = queue.add([b"%d" % number for number in range(100)])

    worker = worker_of(
        server,
        queue,
        handler=samples.double if kind == "threads" else samples.double_soon,
        loop="trio" if kind == "trio" else "asyncio",
        timeout=30,
    )
    stats = worker.run(until="empty")

    assert results_of(queue).keys() == set(ids)
    assert stats == queueber.WorkerStats(done=100, processes=1)


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_the_limit_of_the_item_goes_before_that_of_its_worker(
    is_coroutine: bool, server: ServerProcess, queue: queueber.Queue
) -> None:
    brief, patient = queue.add([b"brief", b"patient"], timeout=[0.1, 60])
    told = {}

    async def wait(item: queueber.WorkItem) -> bytes:
        told[item.id] = item.timeout
        await asyncio.sleep(3600 if item.id == brief else 0.4)
        return b"well"

    def block(item: queueber.WorkItem) -> bytes:
        told[item.id] = item.timeout
        time.sleep(3 if item.id == brief else 0.4)
        return b"well"

    handler: Any = wait if is_coroutine else block
    stats = worker_of(server, queue, handler=handler, timeout=0.2).run(until="empty")

    assert results_of(queue) == {patient: b"well"}
    assert last_error_of(queue).splitlines()[0].startswith(OVERRUN)
    assert told == {brief: 0.1, patient: 60}
    assert (stats.done, stats.timed_out) == (1, 1)


def test_a_worker_without_a_limit_obeys_that_of_the_item(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x", timeout=0.1)

    async def wait(item: queueber.WorkItem) -> None:
        await asyncio.sleep(3600)

    stats = worker_of(server, queue, handler=wait, timeout=None).run(until="empty")

    assert (stats.failed, stats.timed_out) == (1, 1)
    assert last_error_of(queue).splitlines()[0] == OVERRUN
