"""Jobs that are enqueued and worked on, by one worker for many kinds and queues."""

import asyncio
import pickle
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
import trio
import trio.lowlevel

import queueber
from queueber.testing import ServerProcess
from queueber.worker.pool import poller, unknown_kinds
from queueber.worker.worker_settings import resolve
from tests.jobs import samples
from tests.worker.conftest import WAIT_SECONDS, running


def work(app: queueber.App, **options: Any) -> queueber.WorkerStats:
    return app.worker(progress=False, **options).run(until="empty")


def test_functions_and_coroutines_of_several_queues_are_served_by_one_worker(
    app: queueber.App, name: str
) -> None:
    threads: list[str] = []

    @app.job("double", queue=name)
    def double(number: int) -> int:
        threads.append(threading.current_thread().name)
        return 2 * number

    @app.job("soon", queue=f"{name}-2")
    async def soon(number: int) -> int:
        await asyncio.sleep(0)
        threads.append(threading.current_thread().name)
        return 3 * number

    handles = [app.enqueue(double, 4), app.enqueue(soon, number=5)]

    assert work(app).done == 2
    assert [handle.result(WAIT_SECONDS) for handle in handles] == [8, 15]
    assert sum(each.startswith("queueber-handler-") for each in threads) == 1


def test_coroutines_of_trio(app: queueber.App, name: str) -> None:
    @app.job("soon", queue=name)
    async def soon() -> str:
        await trio.lowlevel.checkpoint()
        return "done"

    handle = app.enqueue(soon)

    assert work(app, loop="trio").done == 1
    assert handle.result(WAIT_SECONDS) == "done"


def test_a_job_gets_its_item_if_it_asks_for_it(app: queueber.App, name: str) -> None:
    @app.job("tell", queue=name)
    def tell(text: str, item: queueber.WorkItem) -> list[str]:
        return [text, item.id.hex(), item.job, item.source]

    handle = app.enqueue(tell, text="x")
    work(app)

    assert handle.result(WAIT_SECONDS) == ["x", handle.id.hex(), "tell", name]


def test_delays_and_keys_are_those_of_the_queue(app: queueber.App, name: str) -> None:
    @app.job("say", queue=name)
    def say(word: str) -> str:
        return word

    later = datetime.now(UTC) + timedelta(hours=1)
    first = app.enqueue(say, "a", key="k", priority=9, batch="b")
    again = app.enqueue(say, "b", key="k")
    app.enqueue(say, "c", at=later)
    app.enqueue(say, "d", delay=60)
    with pytest.raises(queueber.InvalidArgument, match="at: delay was given, too"):
        app.enqueue(say, "e", at=later, delay=1)

    assert first.id == again.id
    stats = app.client.queue(name).stats()
    assert (stats.ready, stats.delayed) == (1, 2)
    assert app.client.queue(name).receipt("b").added == 1
    soon, last = app.client.queue(name).peek("delayed").items
    assert soon.contents == b'{"job":"say","args":{"word":"d"}}'
    assert abs(last.at_ms - later.timestamp() * 1000) < 5000


def test_the_backoff_of_the_job_counts_and_not_that_of_the_queue(
    app: queueber.App, patient: str
) -> None:
    attempts = []

    @app.job("flaky", queue=patient, backoff=[0, 0, 3600])
    def flaky(item: queueber.WorkItem) -> None:
        attempts.append(item.attempt)
        raise ConnectionError("no")

    app.enqueue(flaky)
    stats = work(app)

    assert attempts == [1, 2, 3]
    assert stats.failed == 3
    (left,) = app.client.queue(patient).peek("delayed").items
    assert left.attempts == 3


def test_a_job_may_choose_its_own_delay(app: queueber.App, patient: str) -> None:
    @app.job("flaky", queue=patient, backoff=3600)
    def flaky(item: queueber.WorkItem) -> str:
        if item.attempt == 1:
            raise queueber.Retry("busy", delay=0)
        return "done"

    handle = app.enqueue(flaky)

    assert work(app).done == 1
    assert handle.result(WAIT_SECONDS) == "done"


@pytest.mark.parametrize("is_async", [False, True], ids=["function", "coroutine"])
def test_each_job_has_a_time_limit_of_its_own(
    app: queueber.App, name: str, *, is_async: bool
) -> None:
    release = threading.Event()

    def wait(short: bool) -> str:
        release.wait(WAIT_SECONDS if short else 0.6)
        return "done"

    async def wait_soon(short: bool) -> str:
        await asyncio.sleep(WAIT_SECONDS if short else 0.6)
        return "done"

    function: Any = wait_soon if is_async else wait
    brief = app.job("brief", queue=name, timeout=0.1)(function)
    patient = app.job("patient", queue=name)(function)
    unlimited = app.enqueue(patient, short=False)
    own = app.enqueue(patient, short=True, timeout=0.2)
    late = app.enqueue(brief, short=True)
    limits = [item.timeout_ms for item in app.client.queue(name).peek("ready").items]
    assert limits == [0, 200, 0]

    stats = work(app, concurrency=4)
    release.set()

    assert (stats.done, stats.timed_out) == (1, 2)
    assert unlimited.result(WAIT_SECONDS) == "done"
    for handle, limit in (own, "0.2"), (late, "0.1"):
        with pytest.raises(queueber.JobDied, match=f"ran longer than {limit} s"):
            handle.result(WAIT_SECONDS)


def test_unknown_kinds_are_kept_for_a_while_then_released_logged_and_counted(
    app: queueber.App, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next worker, which knows them, gets them at their first attempt."""
    monkeypatch.setattr(unknown_kinds, "UNKNOWN_KIND_MS", 500)
    queue = app.client.queue(name)

    @app.job("known", queue=name)
    def known() -> str:
        return "known"

    newer = queueber.App(app.address)

    @newer.job("new", queue=name)
    def new(item: queueber.WorkItem) -> int:
        return item.attempt

    unknown = newer.enqueue(new)
    handle = app.enqueue(known)
    with structlog.testing.capture_logs() as logs, running(app.worker(progress=False)) as ended:
        assert handle.result(WAIT_SECONDS) == "known"
        assert queue.stats().leased == 1
        give_up_at = time.monotonic() + WAIT_SECONDS
        while queue.stats().released_total < 2:
            assert time.monotonic() < give_up_at
            time.sleep(0.05)
    stats = ended.result()

    assert (stats.done, stats.failed, stats.released) == (1, 0, 0)
    assert stats.unknown_jobs >= 2
    told = [line for line in logs if line["event"] == "unknown_job"]
    assert told[0]["job"] == "new"
    assert told[0]["id"] == unknown.id.hex()
    assert (queue.stats().ready, queue.stats().leased) == (1, 0)
    assert work(newer).done == 1
    assert unknown.result(WAIT_SECONDS) == 1


def test_contents_that_no_codec_can_open_fail_and_the_worker_goes_on(
    app: queueber.App, name: str
) -> None:
    @app.job("known", queue=name)
    def known() -> None: ...

    app.client.queue(name).add(b'{"job":"known","args":' + b"[" * 50_000)
    app.enqueue(known)
    stats = work(app)

    assert (stats.done, stats.failed) == (1, 1)
    (dead,) = app.client.queue(name).peek("dead").items
    assert "are not those of a job: they are nested too deeply" in dead.last_error


@pytest.mark.parametrize("until", ["empty", "done"])
def test_a_run_ends_though_unknown_kinds_are_left(app: queueber.App, name: str, until: Any) -> None:
    @app.job("known", queue=name)
    def known() -> None: ...

    app.client.queue(name).add(b'{"job":"new"}')

    stats = app.worker(progress=False).run(until=until)

    assert (stats.done, stats.unknown_jobs) == (0, 1)
    assert app.client.queue(name).stats().ready == 1


@pytest.mark.parametrize("until", ["empty", "done"])
def test_a_run_ends_though_more_unknown_kinds_are_left_than_a_worker_keeps(
    app: queueber.App, name: str, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are released at its end: before, it would lease them again and again."""
    monkeypatch.setattr(unknown_kinds, "UNKNOWN_ITEMS_MAX", 10)
    monkeypatch.setattr(unknown_kinds, "UNKNOWN_KIND_MS", 100)

    @app.job("known", queue=name)
    def known() -> None: ...

    app.client.queue(name).add([b'{"job":"new","args":{"x":1}}'] * 50)
    app.enqueue(known)

    with running(app.worker(progress=False), until=until) as ended:
        stats = ended.result(WAIT_SECONDS)

    assert (stats.done, stats.unknown_jobs) == (1, 50)
    assert app.client.queue(name).stats().ready == 50


def test_a_run_that_can_keep_no_more_unknown_kinds_ends(
    app: queueber.App, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown_kinds, "UNKNOWN_ITEMS_MAX_UNTIL", 20)

    @app.job("known", queue=name)
    def known() -> None: ...

    app.client.queue(name).add([b'{"job":"new"}'] * 50)
    with (
        structlog.testing.capture_logs() as logs,
        running(app.worker(progress=False), until="done") as ended,
    ):
        stats = ended.result(WAIT_SECONDS)

    assert 20 <= stats.unknown_jobs <= 50
    assert app.client.queue(name).stats().ready == 50
    (told,) = [line for line in logs if line["event"] == "too_many_unknown_jobs"]
    assert told["log_level"] == "warning"


def test_runs_until_done_do_not_wait_for_what_each_other_keeps(
    app: queueber.App, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each lets the other have what it keeps, after a while, so that one of them can end."""
    monkeypatch.setattr(unknown_kinds, "UNKNOWN_KIND_MS", 50)
    monkeypatch.setattr(poller, "_POLL_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(poller, "_LET_GO_SECONDS", (0.2, 0.2))

    @app.job("known", queue=name)
    def known() -> None: ...

    queue = app.client.queue(name)
    queue.add([b'{"job":"new"}'] * 4)
    first = queue.poll()
    with running(app.worker(progress=False), until="done") as ended:
        give_up_at = time.monotonic() + WAIT_SECONDS
        while queue.stats().leased < 4:
            assert time.monotonic() < give_up_at
        kept = queue.poll(3, wait=WAIT_SECONDS)
        assert len(kept) == 3
        assert not ended.done()
        for lease in first, kept:
            lease.release(list(lease))
        assert ended.result(WAIT_SECONDS).unknown_jobs == 7


def test_a_run_until_empty_works_on_what_its_jobs_enqueue_in_other_queues(
    app: queueber.App, name: str
) -> None:
    @app.job("count", queue=f"{name}-a")
    def count(left: int) -> None:
        if left:
            app.enqueue(count_too, left - 1)

    @app.job("count_too", queue=f"{name}-b")
    def count_too(left: int) -> None:
        if left:
            app.enqueue(count, left - 1)

    app.enqueue(count, 9)

    assert work(app).done == 10


def test_failures_are_logged_once_a_second_for_each_job(app: queueber.App, name: str) -> None:
    def fail(number: int) -> None:
        raise ValueError(number)

    one = app.job("one", queue=name)(fail)
    two = app.job("two", queue=name)(fail)
    for number in range(20):
        app.enqueue(one if number % 2 else two, number)

    with structlog.testing.capture_logs() as logs:
        assert work(app).failed == 20

    told = [line for line in logs if line["event"] == "handler_failed"]
    assert {line["job"] for line in told} == {"one", "two"}
    assert all("raise ValueError(number)" in line["exception"] for line in told)


def test_middleware_learns_the_job_and_its_error(app: queueber.App, name: str) -> None:
    seen: list[tuple[str, str, str]] = []

    class Reports(queueber.Middleware):
        def on_error(self, item: queueber.WorkItem, error: BaseException) -> None:
            seen.append((item.job, item.source, repr(error)))

    @app.job("fail", queue=name)
    def fail() -> None:
        raise KeyError("x")

    app.enqueue(fail)
    work(app, middleware=[Reports()])

    assert seen == [("fail", name, "KeyError('x')")]


def test_processes_import_the_app(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client:
        worker = samples.app.worker(address=server.address, processes=2, progress=False)
        contents = [samples.pid.contents((number,), {}) for number in range(4)]
        queue = client.queue("samples")
        queue.add([*contents, samples.hang.contents((), {})])

        stats = worker.run(until="done")

        assert (stats.done, stats.timed_out) == (5, 1)
        results = [result.result for result in queue.results()]
        assert b'"at last"' in results


def test_processes_import_the_module_that_the_worker_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(samples.app, "reference", "")
    assert samples.app.__reduce__()[1] == ("tests.jobs.samples:app", "handler")

    assert resolve("tests.jobs.sets_up:app") is samples.app

    assert samples.app.__reduce__()[1] == ("tests.jobs.sets_up:app", "handler")
    assert pickle.loads(pickle.dumps(samples.app)) is samples.app


def test_a_job_is_no_handler_of_items(app: queueber.App) -> None:
    @app.job("resize")
    def resize(width: int) -> None: ...

    handlers: list[Any] = [(resize, "<Job 'resize'"), ("tests.jobs.samples:pid", "tests.jobs")]
    for handler, shown in handlers:
        with pytest.raises(queueber.InvalidArgument) as refused:
            queueber.Worker("127.0.0.1:1", handler=handler).run()
        assert str(refused.value).startswith(f"handler: {shown}")
        assert str(refused.value).endswith("is a job; give its app, which calls it")


def test_an_app_without_a_name_in_a_module_is_refused_by_processes(
    app: queueber.App, name: str
) -> None:
    @app.job("known", queue=name)
    def known() -> None: ...

    with pytest.raises(queueber.InvalidArgument, match="the app has no name in a module"):
        work(app, processes=1)


def test_a_job_follows_a_batch_of_others_with_its_receipt(app: queueber.App, name: str) -> None:
    @app.job("resize", queue=name)
    def resize(number: int) -> None:
        if number == 3:
            raise ValueError(number)

    @app.job("report", queue=f"{name}-reports")
    def report(title: str, item: queueber.WorkItem) -> list[str | int]:
        receipt = queueber.callback_receipt(item.attributes)
        return [title, receipt.batch, receipt.added, receipt.done, receipt.dead]

    for number in range(4):
        app.enqueue(resize, number, batch="photos")
    info = app.when_complete("photos", report, "done", of=resize, priority=9)
    assert (info.to, info.item_id) == (f"{name}-reports", b"")

    app.worker(progress=False).run(until="done")
    added = app.client.queue(name).callback("photos")
    assert app.handle(report, added.item_id).result(WAIT_SECONDS) == ["done", "photos", 4, 3, 1]
    with pytest.raises(queueber.InvalidArgument, match="delay: the item of a callback has none"):
        app.when_complete("photos", report, "done", of=resize, delay=5)
    with pytest.raises(
        queueber.InvalidArgument, match="of: 7 is neither a job nor the name of a queue"
    ):
        app.when_complete("photos", report, "done", of=7)
    with pytest.raises(queueber.InvalidArgument, match="of: it is an option of when_complete"):
        app.enqueue(report, "done", of=resize)


def test_attempts_go_with_the_item_and_those_of_the_call_before_those_of_the_job(
    app: queueber.App, name: str
) -> None:
    @app.job("stumble", queue=name, attempts=1, backoff=1000)
    def stumble(how: str) -> None:
        raise ValueError(how)

    app.enqueue(stumble, "as the job says")
    app.enqueue(stumble, "as the call says", attempts=2, backoff=[0])
    app.enqueue(stumble, "later", attempts=5)
    work(app)

    queue = app.client.queue(name)
    told = {item.contents[-40:]: item.reason for item in queue.peek("dead").items}
    assert sorted(told.values()) == ["failed 2 times (attempts_max)", "failed once (attempts_max)"]
    (left,) = queue.peek("delayed").items
    assert b"later" in left.contents
    assert left.at_ms - left.attempt_times_ms[-1] == 1_000_000


def test_a_job_that_no_worker_takes_in_time_is_dead(app: queueber.App, name: str) -> None:
    @app.job("say", queue=name)
    def say(word: str) -> str:
        return word

    handle = app.enqueue(say, "x", expires=0.05)
    with pytest.raises(queueber.JobDied, match="nobody leased it in time"):
        handle.result(WAIT_SECONDS)


def test_jobs_wait_for_handles_of_their_queue(app: queueber.App, name: str) -> None:
    order: list[str] = []

    @app.job("say", queue=name)
    def say(word: str) -> str:
        order.append(word)
        return word

    @app.job("elsewhere", queue=f"{name}-2")
    def elsewhere() -> None: ...

    first = app.enqueue(say, "first", batch="b")
    second = app.enqueue(say, "second", after=first, batch="b", priority=9)
    third = app.enqueue(say, "third", after=[first, second], priority=9)
    last = app.enqueue(say, "last", after_batch="b", after=third, priority=9)
    with pytest.raises(queueber.InvalidArgument, match="'say' is a job of queue"):
        app.enqueue(elsewhere, after=first)

    app.worker(progress=False, concurrency=1).run(until="done")
    assert last.result(WAIT_SECONDS) == "last"
    assert order == ["first", "second", "third", "last"]
