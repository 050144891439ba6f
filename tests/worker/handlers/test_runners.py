"""What holds for every kind of handler: plain functions, asyncio and trio."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

import queueber
from queueber.testing import ServerProcess
from queueber.worker.handlers.runners import BothRunners
from tests.worker.conftest import WAIT_SECONDS, last_error_of, left_in, results_of, running

KINDS = ["threads", "asyncio", "trio"]

Plain = Callable[[queueber.WorkItem], object]


def worker_of(
    kind: str, server: ServerProcess, queue: queueber.Queue, plain: Plain, **options: Any
) -> queueber.Worker:
    """A worker for the same handler in one of its kinds."""

    async def coroutine(item: queueber.WorkItem) -> object:
        return plain(item)

    return queueber.Worker(
        server.address,
        queue=queue.name,
        handler=plain if kind == "threads" else coroutine,
        loop="trio" if kind == "trio" else "asyncio",
        progress=False,
        **options,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_item_is_handled_and_has_its_result(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    ids = queue.add([b"%d" % number for number in range(100)])

    worker = worker_of(kind, server, queue, lambda item: item.contents * 2, concurrency=3)
    stats = worker.run(until="empty")

    expected = {item_id: b"%d" % number * 2 for number, item_id in enumerate(ids)}
    assert results_of(queue) == expected
    assert left_in(queue) == 0
    assert stats == queueber.WorkerStats(done=100, processes=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [ValueError("no such picture"), SystemExit("no such picture")])
def test_an_error_of_the_handler_fails_its_item_only(
    kind: str, error: BaseException, server: ServerProcess, queue: queueber.Queue
) -> None:
    _, second = queue.add([b"bad", b"good"])

    def handle(item: queueber.WorkItem) -> bytes:
        if item.contents == b"bad":
            raise error
        return b"well"

    stats = worker_of(kind, server, queue, handle).run(until="empty")

    assert results_of(queue) == {second: b"well"}
    told = last_error_of(queue).splitlines()
    assert told[0] == f"{type(error).__name__}: no such picture"
    assert told[-1].strip() == "raise error"
    assert "queueber/worker" not in last_error_of(queue)
    assert (stats.done, stats.failed, stats.died) == (1, 1, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_retry_comes_back_when_the_handler_says(
    kind: str, server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    patient_queue.add(b"busy")
    attempts: list[int] = []

    def handle(item: queueber.WorkItem) -> bytes:
        attempts.append(item.attempt)
        if item.attempt < 3:
            raise queueber.Retry("the other side is busy", delay=0)
        return b"at last"

    stats = worker_of(kind, server, patient_queue, handle).run(until="empty")

    assert attempts == [1, 2, 3]
    assert (stats.done, stats.failed, stats.died) == (1, 2, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_retry_with_a_delay_is_delayed(
    kind: str, server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    patient_queue.add(b"busy")

    def handle(_: queueber.WorkItem) -> bytes:
        raise queueber.Retry(delay=3600)

    worker_of(kind, server, patient_queue, handle).run(until="empty")

    (delayed,) = patient_queue.peek(queueber.ItemState.DELAYED).items
    assert delayed.last_error == "Retry"


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_that_is_not_bytes_needs_a_serializer(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")

    worker_of(kind, server, queue, lambda _: {"width": 3}).run(until="empty")

    assert last_error_of(queue).startswith(
        "TypeError: the handler returned dict; return bytes or None, or give the worker a "
        "serializer such as 'json'"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_serializers_read_contents_and_write_results(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    (item_id,) = queue.add(b'{"width": 3}')

    def handle(item: queueber.WorkItem) -> object:
        return {"wider": item.value["width"] + 1}

    worker = worker_of(kind, server, queue, handle, serializer="json", deserializer="json")
    worker.run(until="empty")

    assert results_of(queue) == {item_id: b'{"wider": 4}'}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("returned", [b"bytes", None, {"no": "bytes"}])
def test_without_results_items_are_removed_whatever_the_handler_returns(
    kind: str, returned: object, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 3, batch="b")

    stats = worker_of(kind, server, queue, lambda _: returned, results=False).run(until="empty")

    assert (stats.done, stats.failed, left_in(queue)) == (3, 0, 0)
    assert results_of(queue) == {}
    assert (queue.stats().removed_total, queue.receipt("b").done) == (3, 3)


class Gauge:
    """Counts how many are inside at once."""

    def __init__(self) -> None:
        self.inside = self.peak = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.peak = max(self.peak, self.inside)

    def __exit__(self, *exc_info: object) -> None:
        with self._lock:
            self.inside -= 1


class TrioBarrier:
    def __init__(self, parties: int) -> None:
        self._parties = parties
        self._waiting = 0
        self._event = trio.Event()

    async def wait(self) -> None:
        event = self._event
        self._waiting += 1
        if self._waiting == self._parties:
            self._waiting, self._event = 0, trio.Event()
            event.set()
        await event.wait()


CONCURRENCY = 3


def meeting_handler(kind: str, gauge: Gauge) -> Callable[[queueber.WorkItem], object]:
    """Each call waits until `CONCURRENCY` are under way: fewer would hang."""
    if kind == "threads":
        barrier = threading.Barrier(CONCURRENCY)

        def plain(_: queueber.WorkItem) -> None:
            with gauge:
                barrier.wait(WAIT_SECONDS)

        return plain
    wait: Callable[[], Awaitable[object]]
    wait = asyncio.Barrier(CONCURRENCY).wait if kind == "asyncio" else TrioBarrier(CONCURRENCY).wait

    async def coroutine(_: queueber.WorkItem) -> None:
        with gauge:
            await wait()

    return coroutine


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_handlers_run_as_were_asked_for_and_never_more(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 20 * CONCURRENCY)
    gauge = Gauge()

    stats = queueber.Worker(
        server.address,
        queue=queue.name,
        handler=meeting_handler(kind, gauge),
        loop="trio" if kind == "trio" else "asyncio",
        concurrency=CONCURRENCY,
        prefetch=10,
        progress=False,
    ).run(until="empty")

    assert stats.done == 20 * CONCURRENCY
    assert gauge.peak == CONCURRENCY


def test_no_more_is_held_than_handlers_and_prefetch_allow(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 50)
    began, go = threading.Semaphore(0), threading.Event()

    def handle(_: queueber.WorkItem) -> None:
        began.release()
        go.wait(WAIT_SECONDS)

    worker = queueber.Worker(
        server.address, queue=queue.name, handler=handle, concurrency=2, prefetch=5, progress=False
    )
    with running(worker, until="empty") as outcome:
        for _ in range(2):
            assert began.acquire(timeout=WAIT_SECONDS)
        stats, held = worker.stats(), queue.stats().leased
        go.set()
        outcome.result(WAIT_SECONDS)

    assert (stats.in_flight, stats.waiting) == (2, 5)
    assert held == 7


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_that_cannot_be_told_fails_its_item(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 3)

    class Exits(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    def handle(_: queueber.WorkItem) -> bytes:
        raise Exits

    worker = worker_of(kind, server, queue, handle, concurrency=2, prefetch=0)
    with running(worker, until="empty") as outcome:
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.died, stats.abandoned) == (3, 0)
    assert left_in(queue) == 0


def test_a_result_of_a_kind_of_bytes_completes_its_item(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    class Kind(bytes):
        pass

    (item_id,) = queue.add(b"x")

    worker = worker_of("threads", server, queue, lambda _: 3, serializer=lambda _: Kind(b"three"))
    with running(worker, until="empty") as outcome:
        stats = outcome.result(WAIT_SECONDS)

    assert (stats.done, stats.released) == (1, 0)
    assert results_of(queue) == {item_id: b"three"}


def test_stuck_handlers_of_threads_and_tasks_are_added_up() -> None:
    """A pool rests when either has no slot left."""
    threads: Any = SimpleNamespace(stuck=2, stuck_limit=0.5, time_left=3)
    tasks: Any = SimpleNamespace(stuck=3, stuck_limit=0.1, time_left=0)

    both = BothRunners(threads, tasks)

    assert (both.stuck, both.stuck_slots) == (5, 3)
    assert (both.stuck_limit, both.time_left) == (0.5, 3)
