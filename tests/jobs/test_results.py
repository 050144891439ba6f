"""Handles: the result of a job, blocking and awaited, found in the log without long scans."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
import trio

import queueber
from queueber.jobs import result_readers
from tests.worker.conftest import WAIT_SECONDS, running

Double = queueber.Job[..., "Size"]


class Size(msgspec.Struct):
    width: int


@pytest.fixture
def double(app: queueber.App, name: str) -> Double:
    @app.job("double", queue=name)
    def double(width: int) -> Size:
        return Size(2 * width)

    return double


def work(app: queueber.App) -> None:
    app.worker(progress=False).run(until="empty")


def test_a_result_has_the_type_that_the_job_returns(app: queueber.App, double: Double) -> None:
    handle = app.enqueue(double, 4)
    with running(app.worker(progress=False)):
        assert handle.result(WAIT_SECONDS) == Size(8)

    assert handle.result(0) == Size(8)  # it was kept


def test_a_handle_that_waits_in_vain_says_how_long(app: queueber.App, double: Double) -> None:
    handle = app.enqueue(double, 4)

    with pytest.raises(TimeoutError, match=r"double has no result after 0\.05 s"):
        handle.result(0.05)
    work(app)
    assert handle.result(WAIT_SECONDS) == Size(8)


def test_results_are_awaited_in_asyncio(
    app: queueber.App, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Timer", None)  # a thread for each that waits

    async def main() -> tuple[Size, Size]:
        handles = [await app.enqueue_async(double, width) for width in (1, 2)]
        with pytest.raises(TimeoutError, match="has no result after"):
            await handles[0].result_async(0.05)
        await asyncio.to_thread(work, app)
        return await handles[0], await handles[1].result_async(WAIT_SECONDS)

    assert asyncio.run(main()) == (Size(2), Size(4))


def test_results_are_awaited_in_trio(app: queueber.App, double: Double) -> None:
    async def main() -> Size:
        handle = await app.enqueue_async(double, 3)
        with trio.move_on_after(0.05):
            await handle
        with pytest.raises(TimeoutError, match=r"has no result after 0\.05 s"):
            await handle.result_async(0.05)
        await trio.to_thread.run_sync(work, app)
        return await handle

    assert trio.run(main) == Size(6)


def test_a_job_that_died_raises_its_last_error(app: queueber.App, name: str) -> None:
    @app.job("fail", queue=name)
    def fail() -> None:
        raise ValueError("no such file")

    handles = [app.enqueue(fail) for _ in range(3)]
    work(app)

    for handle in handles:
        with pytest.raises(queueber.JobDied) as caught:
            handle.result(WAIT_SECONDS)
        assert caught.value.error.startswith("ValueError: no such file\n")
        assert (caught.value.job, caught.value.attempts) == ("fail", 1)


def test_a_dead_job_that_was_redriven_has_a_result_after_all(app: queueber.App, name: str) -> None:
    is_ready = threading.Event()

    @app.job("flaky", queue=name)
    def flaky() -> str:
        if not is_ready.is_set():
            raise ConnectionError
        return "done"

    handle = app.enqueue(flaky)
    work(app)
    with pytest.raises(queueber.JobDied):
        handle.result(WAIT_SECONDS)

    is_ready.set()
    app.client.queue(name).redrive()
    work(app)

    assert handle.result(WAIT_SECONDS) == "done"


def test_many_handles_wait_at_once_and_each_result_is_read_once(
    app: queueber.App, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = queueber.Queue.read_columns

    def counted(self: queueber.Queue, offset: int = 0, **options: Any) -> queueber.ResultColumns:
        page = read(self, offset, **options)
        reads.append(len(page.ids) if options["limit"] > 1 else 0)
        return page

    monkeypatch.setattr(queueber.Queue, "read_columns", counted)
    handles = [app.enqueue(double, width) for width in range(40)]
    work(app)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda handle: handle.result(WAIT_SECONDS), handles))

    assert found == [Size(2 * width) for width in range(40)]
    assert sum(reads) == 40


def test_jobs_that_are_enqueued_while_others_wait_are_found(
    app: queueber.App, double: Double
) -> None:
    """The reader is somewhere in the log when they are added, and may pass their results."""
    with running(app.worker(progress=False)), ThreadPoolExecutor(4) as pool:

        def one(width: int) -> Size:
            return app.enqueue(double, width).result(WAIT_SECONDS)

        assert list(pool.map(one, range(100))) == [Size(2 * width) for width in range(100)]


def test_a_handle_of_another_process_is_made_from_the_id(app: queueber.App, double: Double) -> None:
    handle = app.enqueue(double, 4)
    for width in range(30):
        app.enqueue(double, width)
    work(app)

    with queueber.App(app.address) as other:
        same = other.job("double", queue=double.options.queue)(double.function)
        assert other.handle(same, handle.id.hex()).result(WAIT_SECONDS) == Size(8)
        with pytest.raises(queueber.InvalidArgument, match="item_id: 'x' is not the id"):
            other.handle(same, "x")


def test_a_key_that_was_used_before_has_the_result_of_the_first(
    app: queueber.App, double: Double
) -> None:
    first = app.enqueue(double, 4, key="k")
    work(app)
    assert first.result(WAIT_SECONDS) == Size(8)
    del first

    assert app.enqueue(double, 5, key="k").result(WAIT_SECONDS) == Size(8)


def test_a_result_that_is_far_back_is_not_looked_for(
    app: queueber.App, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_readers, "RESULTS_SCANNED_MAX", 5)
    handle = app.enqueue(double, 4)
    for width in range(10):
        app.enqueue(double, width)
    work(app)

    with pytest.raises(queueber.OutOfRange, match="more than 5 results came since this job was"):
        handle.result(WAIT_SECONDS)

    # Whoever waits beside it may still get a result; it itself is told so again.
    monkeypatch.setattr(result_readers, "_CLOCK_SLACK_MS", 0)
    late = app.enqueue(double, 4)
    results = handle._results
    results._read_behind(app.client.queue(double.options.queue), [late._expected, handle._expected])
    assert (late._expected.is_ahead, handle._expected.is_ahead) == (True, False)
    with pytest.raises(queueber.OutOfRange):
        handle.result(WAIT_SECONDS)
    work(app)
    assert late.result(WAIT_SECONDS) == Size(8)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handles look for their items all the time."""
    monkeypatch.setattr(result_readers, "_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(result_readers, "_CHECK_SECONDS", 0)


@pytest.mark.usefixtures("often")
def test_handles_that_are_more_than_one_check_looks_for_take_turns(
    app: queueber.App, double: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_readers, "_CHECKS_MAX", 1)
    waiting = [app.enqueue(double, width, delay=3600) for width in range(3)]
    dead = app.enqueue(double, 4, expires=0.001)

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.result_async(3600)) for each in waiting]
            await asyncio.sleep(0)
            with pytest.raises(queueber.JobDied):
                await dead.result_async(WAIT_SECONDS)
            for task in tasks:
                task.cancel()

    asyncio.run(main())


@pytest.mark.usefixtures("often")
def test_a_job_that_is_gone_says_so(app: queueber.App, double: Double) -> None:
    queue = app.client.queue(double.options.queue)
    cancelled, dropped = app.enqueue(double, 1), app.enqueue(double, 2)
    queue.cancel(cancelled.id)
    with pytest.raises(queueber.JobGone, match="double is not in its queue and has no result: it"):
        cancelled.result(WAIT_SECONDS)

    app.worker(progress=False, results=False).run(until="empty")
    with pytest.raises(queueber.JobGone):
        dropped.result(WAIT_SECONDS)
    with pytest.raises(queueber.JobGone):
        app.handle(double, bytes(16)).result(WAIT_SECONDS)


@pytest.mark.usefixtures("often")
def test_a_job_that_waits_for_whatever_it_may_is_not_gone(
    app: queueber.App, double: Double
) -> None:
    name = double.options.queue
    queue = app.client.queue(name)
    ready = app.enqueue(double, 1)
    app.client.configure_queue(name, cap_by="customer", cap_by_concurrency_max=1)
    capped = [queue.add(double.contents((1,), {}), attributes={"customer": "a"})[0] for _ in "ab"]
    after = app.enqueue(double, 2, after=ready)
    lease = queue.poll(10)
    assert queue.stats().parked + queue.stats().waiting == 2

    handles = [ready, after, *(app.handle(double, each) for each in capped)]
    for handle in handles:
        with pytest.raises(TimeoutError):
            handle.result(0.1)
    lease.release(list(lease))


def test_whoever_waits_when_the_app_is_closed_gets_an_error_or_goes_on(
    app: queueber.App, double: Double
) -> None:
    handle = app.enqueue(double, 4)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(handle.result, 0.5)
        app.close()
        with pytest.raises((queueber.QueueberError, TimeoutError, RuntimeError)):
            waiting.result(WAIT_SECONDS)
