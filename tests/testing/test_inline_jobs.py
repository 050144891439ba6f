"""Jobs in line: what a test sees is what a server and a worker would have done, at once."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

import queueber
from queueber.errors import InvalidArgument, NotFound
from queueber.testing import inline
from queueber.worker.handlers.work_item import WorkItem

NOWHERE = "127.0.0.1:1"
app = queueber.App(NOWHERE)


@dataclass
class Size:
    width: int
    height: int


class Refused(Exception):
    pass


@app.job("resize", queue="images")
def resize(path: str, width: int) -> Size:
    assert path
    return Size(width, width // 2)


@app.job("awaited")
async def awaited(path: str) -> tuple[str, int]:
    await asyncio.sleep(0)
    return path, threading.get_ident()


@app.job("thread")
def thread() -> int:
    return threading.get_ident()


@app.job("at third", backoff=[1, 60])
def at_third(item: queueber.WorkItem) -> int:
    if item.attempt < 3:
        raise Refused("not yet")
    return item.attempt


@app.job("busy")
def busy(item: queueber.WorkItem) -> None:
    if item.attempt == 1:
        raise queueber.Retry("busy", delay=300)


@app.job("broken")
def broken() -> None:
    raise Refused("never")


@app.job("wrong result")
def wrong_result() -> object:
    return object()


@app.job("both")
def both(width: int) -> list[int]:
    return [app.enqueue(resize, "a.jpg", width=each).result().height for each in (width, 2 * width)]


@app.job("about")
def about(item: queueber.WorkItem) -> list[str]:
    return [item.job, item.source, item.key, item.batch, *item.attributes]


def test_a_job_runs_when_it_is_enqueued_and_its_result_has_its_type() -> None:
    with inline(app) as jobs:
        handle = app.enqueue(resize, "cat.jpg", width=200)

        [ran] = jobs.ran
        assert (ran.id, ran.name, ran.queue, ran.attempts) == (handle.id, "resize", "images", 1)
        assert ran.contents == b'{"job":"resize","args":{"path":"cat.jpg","width":200}}'
        assert ran.result == b'{"width":200,"height":100}'
    assert handle.result(timeout=1) == Size(200, 100)


def test_wrong_arguments_and_options_are_refused_and_nothing_runs() -> None:
    with inline(app) as jobs:
        with pytest.raises(InvalidArgument, match=r"^resize: width: expected `int`, got `str`"):
            app.enqueue(resize, path="cat.jpg", width="wide")
        with pytest.raises(InvalidArgument, match=r"^priority: "):
            app.enqueue(resize, path="cat.jpg", width=1, priority=10)
        with pytest.raises(InvalidArgument, match=r"^at: "):
            app.enqueue(resize, path="cat.jpg", width=1, at="tomorrow")

        assert jobs.ran == []


def test_a_job_that_fails_is_tried_again_at_once_and_pauses_are_told() -> None:
    with inline(app) as jobs:
        assert app.enqueue(at_third).result() == 3
        app.enqueue(busy).result()

    tried, retried = jobs.ran
    assert (tried.attempts, tried.pauses) == (3, [1, 60])
    assert (retried.attempts, retried.pauses) == (2, [300])


def test_a_job_that_never_succeeds_dies_and_says_of_what() -> None:
    with inline(app, attempts_max=4) as jobs:
        handle = app.enqueue(broken)

    with pytest.raises(queueber.JobDied, match="broken failed for the last time") as died:
        handle.result()
    assert (died.value.job, died.value.attempts) == ("broken", 4)
    assert died.value.error.startswith("Refused: never\n")
    assert 'raise Refused("never")' in died.value.error
    assert isinstance(died.value.__cause__, Refused)
    assert (jobs.ran[0].result, jobs.ran[0].pauses) == (None, [None, None, None])


def test_without_a_number_a_job_has_the_attempts_of_a_queue() -> None:
    with inline(app) as jobs:
        app.enqueue(broken)

    assert jobs.ran[0].attempts == 20


def test_attempts_and_pauses_of_a_job_and_of_an_item_go_before_those_of_the_block() -> None:
    own = queueber.App(NOWHERE)

    @own.job("thrice", attempts=3, backoff=[1, 60])
    def thrice() -> None:
        raise Refused("never")

    with inline(own, attempts_max=2) as jobs:
        own.enqueue(thrice)
        own.enqueue(thrice, attempts=4, backoff=[7, 8], expires=60)

    assert [(job.attempts, job.pauses) for job in jobs.ran] == [(3, [1, 60]), (4, [7, 8, 8])]


def test_a_result_that_cannot_be_sent_fails_the_job() -> None:
    with inline(app, attempts_max=1):
        handle = app.enqueue(wrong_result)

    with pytest.raises(queueber.JobDied, match="objects of type object cannot be sent"):
        handle.result()


def test_a_function_runs_in_the_thread_that_enqueues_it() -> None:
    with inline(app):
        assert app.enqueue(thread).result() == threading.get_ident()


def test_a_coroutine_runs_without_a_loop_and_within_one() -> None:
    async def main() -> None:
        handle = await app.enqueue_async(awaited, "b")
        path, ident = await handle
        assert (path, ident) == ("b", threading.get_ident())
        # Without await the loop cannot turn meanwhile.
        assert app.enqueue(awaited, "c").result()[0] == "c"

    with inline(app):
        assert app.enqueue(awaited, "a").result() == ("a", threading.get_ident())
        asyncio.run(main())


def test_a_coroutine_runs_in_trio() -> None:
    own = queueber.App(NOWHERE)

    @own.job("trio")
    async def in_trio() -> float:
        await trio.lowlevel.checkpoint()
        return trio.current_time()

    async def main() -> float:
        return await (await own.enqueue_async(in_trio))

    with inline(own, loop="trio"):
        assert own.enqueue(in_trio).result() > 0
        assert trio.run(main) > 0


def test_a_job_may_enqueue_others_and_wait_for_them() -> None:
    with inline(app) as jobs:
        assert app.enqueue(both, 10).result() == [5, 10]

    assert [job.name for job in jobs.ran] == ["resize", "resize", "both"]


def test_options_of_an_item_reach_the_job() -> None:
    with inline(app):
        handle = app.enqueue(about, key="k", batch="b", delay=3600, priority=9)

        assert handle.result() == ["about", "default", "k", "b"]
        later = app.enqueue(thread, at=datetime.now(UTC) + timedelta(days=1))
        assert later.result() == threading.get_ident()


def test_a_second_job_with_a_key_does_not_run() -> None:
    with inline(app) as jobs:
        first, second = (app.enqueue(resize, "a", width=w, key="once") for w in (2, 4))

        assert (second.id, second.result()) == (first.id, Size(2, 1))
        assert len(jobs.ran) == 1
        assert asyncio.run(_enqueue_async("a", 6, "once")) == Size(2, 1)


async def _enqueue_async(path: str, width: int, key: str) -> Size:
    return await (await app.enqueue_async(resize, path, width, key=key))


def test_handles_are_found_by_id() -> None:
    with inline(app):
        handle = app.enqueue(resize, "a", width=2)

        assert app.handle(resize, handle.id.hex()).result() == Size(2, 1)
        with pytest.raises(NotFound, match="no job resize"):
            app.handle(resize, bytes(16))


class Calls(queueber.Middleware):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, item: WorkItem) -> None:
        self.seen.append(f"before {item.attempt}")

    def after(self, item: WorkItem, returned: object) -> None:
        self.seen.append(f"after {item.attempt}")

    def on_error(self, item: WorkItem, error: BaseException) -> None:
        self.seen.append(f"{error!r} {item.attempt}")


def test_middleware_is_around_every_attempt() -> None:
    calls = Calls()
    with inline(app, middleware=[calls]):
        app.enqueue(at_third)

    assert calls.seen == [
        "before 1", "Refused('not yet') 1", "before 2", "Refused('not yet') 2",
        "before 3", "after 3",
    ]  # fmt: skip


@pytest.fixture
def served() -> Iterator[queueber.App]:
    from queueber.testing import running_server

    with running_server() as server, queueber.App(server.address) as with_server:
        yield with_server


@pytest.mark.slow
def test_an_app_goes_to_its_server_again_afterwards(served: queueber.App) -> None:
    @served.job("double")
    def double(number: int) -> int:
        return 2 * number

    with inline(served):
        assert served.enqueue(double, 2).result() == 4
        served.close()
        assert served.enqueue(double, 3).result() == 6
    handle = served.enqueue(double, 4)

    assert served.client.queue().stats().ready == 1
    served.worker(progress=False).run(until="empty")
    assert handle.result(timeout=10) == 8


def test_what_needs_a_server_says_so() -> None:
    with inline(app), pytest.raises(AttributeError, match="run in line here, without a server"):
        app.client.pause_schedule("nightly")
    with inline(app), pytest.raises(AttributeError, match="has no 'purge'"):
        app.client.queue("default").purge("ready")


def test_what_is_wrong_is_refused() -> None:
    wrong: list[Any] = [0, True, "3"]
    for number in wrong:
        refused = pytest.raises(InvalidArgument, match=r"^attempts_max: ")
        with refused, inline(app, attempts_max=number):
            pass
    with pytest.raises(InvalidArgument, match="has no jobs"), inline(queueber.App(NOWHERE)):
        pass


def test_jobs_that_died_without_a_run_are_listed_as_dead() -> None:
    with inline(app, attempts_max=1) as jobs:
        first = app.enqueue(broken)
        second = app.enqueue(thread, after=first)
        app.enqueue(thread, after=[second, first])

    assert [job.name for job in jobs.ran] == ["broken"]
    assert [(job.name, job.attempts) for job in jobs.dead] == [
        ("broken", 1), ("thread", 1), ("thread", 1),
    ]  # fmt: skip


def test_batches_that_wait_for_each_other_end_no_handle_and_hang_nobody() -> None:
    @app.job("two", queue="two")
    def two(item: queueber.WorkItem) -> None:
        app.enqueue(rest, batch="a", after=item.id)
        handles.append(app.enqueue(rest, batch="b", after_batch="a"))
        handles.append(app.enqueue(rest, batch="a", after_batch="b"))

    @app.job("rest", queue="two")
    def rest() -> None: ...

    handles: list[queueber.Handle[None]] = []
    with inline(app) as jobs:
        app.enqueue(two)
        assert [job.name for job in jobs.ran] == ["two", "rest"]
        for handle in handles:
            with pytest.raises(TimeoutError, match="rest has no result and would get none"):
                handle.result()


def test_a_blocking_wait_for_what_the_same_loop_runs_raises() -> None:
    own = queueber.App(NOWHERE)

    @own.job("slow")
    async def slow() -> str:
        await asyncio.sleep(0.01)
        return "done"

    async def main() -> None:
        other = asyncio.create_task(own.enqueue_async(slow, key="k"))
        await asyncio.sleep(0)
        handle = own.enqueue(slow, key="k")
        with pytest.raises(TimeoutError, match="slow has no result and would get none"):
            handle.result()
        assert await handle == await (await other) == "done"

    with inline(own):
        asyncio.run(main())


def test_trio_cancels_a_job_that_overruns() -> None:
    own = queueber.App(NOWHERE)

    @own.job("hangs", timeout=0.05, attempts=1)
    async def hangs(*, catches: bool) -> None:
        with trio.CancelScope(shield=False):
            try:
                await trio.sleep(3600)
            except trio.Cancelled:
                if not catches:
                    raise
                raise Refused("cancelled") from None

    with inline(own, loop="trio") as jobs:
        own.enqueue(hangs, catches=False)
        own.enqueue(hangs, catches=True)

    late = "HandlerTimeout: the handler ran longer than 0.05 s (its timeout)"
    first, second = jobs.ran
    assert first.error.splitlines()[0] == late
    assert "await trio.sleep(3600)" in first.error
    assert second.error.splitlines()[0] == f"{late}; Refused: cancelled"
    assert isinstance(second.raised, queueber.HandlerTimeout)


def test_middleware_learns_that_a_function_overran() -> None:
    own = queueber.App(NOWHERE)
    calls = Calls()

    @own.job("slow", timeout=0.01, attempts=1)
    def slow() -> None:
        threading.Event().wait(0.05)

    with inline(own, middleware=[calls]) as jobs:
        own.enqueue(slow)

    assert calls.seen == [
        "before 1", "after 1",
        "HandlerTimeout('the handler ran longer than 0.01 s (its timeout)') 1",
    ]  # fmt: skip
    assert "(its timeout); it ended after 0.0" in jobs.ran[0].error


def test_an_interrupt_ends_the_test_and_not_the_job() -> None:
    own = queueber.App(NOWHERE)

    @own.job("interrupted")
    def interrupted() -> None:
        raise KeyboardInterrupt

    with inline(own), pytest.raises(KeyboardInterrupt):
        own.enqueue(interrupted)


def test_contents_of_a_job_that_the_app_does_not_have_are_refused() -> None:
    with inline(app) as jobs:
        with pytest.raises(InvalidArgument, match="the app has no job 'theirs'"):
            app.client.queue().add(b'{"job": "theirs"}')
        assert jobs.ran == []
