"""The same small programs in line and with a server and a worker: what they see is the same."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import queueber
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound
from queueber.testing import ServerProcess, inline, running_server

pytestmark = pytest.mark.slow

WAIT_SECONDS = 20
NOWHERE = "127.0.0.1:1"
Working = Callable[[queueber.App], contextlib.AbstractContextManager[object]]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server("--durability", "os") as running:
        yield running


@pytest.fixture(params=["inline", "server"])
def working(request: pytest.FixtureRequest) -> Working:
    """For a block in which the jobs of an app run: where they are enqueued, or in a worker."""
    if request.param == "inline":
        return inline
    address = request.getfixturevalue("server").address

    @contextlib.contextmanager
    def served(app: queueber.App) -> Iterator[None]:
        app.address = address
        worker = app.worker(progress=False)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            with app:
                yield
        finally:
            worker.stop()
            thread.join()

    return served


@pytest.fixture
def app() -> queueber.App:
    return queueber.App(NOWHERE)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A queue of this test alone."""
    test: str = request.node.name
    return test.replace("[", "-").replace("]", "")[:100]


class Seen:
    """What jobs saw, in order. They run in a worker's threads, so `wait` waits for so many."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.told: list[Any] = []

    def tell(self, what: object) -> None:
        with self._changed:
            self.told.append(what)
            self._changed.notify_all()

    def wait(self, count: int) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.told) >= count, WAIT_SECONDS), self.told
            return list(self.told)


# --- callbacks ------------------------------------------------------------------------------------


def test_a_job_follows_a_batch_and_gets_its_receipt(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("resize", queue=name, attempts=1)
    def resize(number: int) -> int:
        if number == 3:
            raise ValueError(number)
        return number

    @app.job("gallery", queue=f"{name}-2")
    def gallery(title: str, item: queueber.WorkItem) -> None:
        receipt = queueber.callback_receipt(item.attributes)
        seen.tell((title, item.attributes["queueber.queue"], receipt))

    with working(app):
        handles = [app.enqueue(resize, number, batch="summer") for number in range(4)]
        assert [handle.result(WAIT_SECONDS) for handle in handles[:3]] == [0, 1, 2]
        info = app.when_complete("summer", gallery, "Summer", of=resize)
        [(title, queue, receipt)] = seen.wait(1)

        assert (info.batch, info.to, info.problem) == ("summer", f"{name}-2", "")
        assert (title, queue) == ("Summer", name)
        assert (receipt.batch, receipt.added, receipt.done, receipt.dead) == ("summer", 4, 3, 1)
        of = app.client.queue(name)
        assert of.receipt("summer") == of.wait_for_batch("summer", timeout=5) == receipt
        assert receipt.added_digest != receipt.done_digest != receipt.dead_digest
        added = of.callback("summer")
        assert app.handle(gallery, added.item_id).result(WAIT_SECONDS) is None


def test_a_callback_that_comes_from_within_its_batch_waits_for_the_rest_of_it(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("part", queue=name)
    def part(number: int) -> None:
        if number == 0:
            app.enqueue(part, 1, batch="b")
            assert not app.when_complete("b", last, of=name).item_id
        seen.tell(number)

    @app.job("last", queue=name)
    def last(item: queueber.WorkItem) -> None:
        seen.tell(queueber.callback_receipt(item.attributes).done)

    with working(app):
        app.enqueue(part, 0, batch="b").result(WAIT_SECONDS)
        told = seen.wait(3)
    assert sorted(told[:2]) == [0, 1]
    assert told[2] == 2


def test_a_chain_of_batches_runs_to_its_end(app: queueber.App, working: Working, name: str) -> None:
    seen = Seen()

    @app.job("resize", queue=name)
    def resize(path: str) -> str:
        return path

    @app.job("publish", queue=f"{name}-2")
    def publish() -> None:
        app.enqueue(resize, "cover", batch="covers")
        app.when_complete("covers", tell, "online", of=resize)

    @app.job("tell", queue=f"{name}-2")
    async def tell(what: str) -> None:
        seen.tell(what)

    with working(app):
        for number in range(3):
            app.enqueue(resize, f"{number}.jpg", batch="summer")
        app.when_complete("summer", publish, of=resize)
        assert seen.wait(1) == ["online"]


def test_the_callback_fails_as_often_as_its_job_says(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("step", queue=name)
    def step() -> None: ...

    @app.job("last", queue=name, attempts=1)
    def last(item: queueber.WorkItem) -> None:
        seen.tell(item.attempt)
        if not item.attributes["queueber.batch"].startswith("c"):
            raise ValueError

    with working(app):
        for batch in ("b", "c"):
            app.enqueue(step, batch=batch)
            app.when_complete(batch, last, of=step, backoff=[0])
        assert seen.wait(2) == [1, 1]


def test_a_callback_is_given_once_and_for_batches_with_items(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("step", queue=name)
    def step(what: str, item: queueber.WorkItem) -> None:
        seen.tell((what, item.attributes.get("queueber.batch")))

    with working(app):
        with pytest.raises(NotFound, match="knows no batch 'b'; it begins with its first add"):
            app.when_complete("b", step, "too early")
        app.enqueue(step, "first", key="k", batch="a").result(WAIT_SECONDS)
        again = app.enqueue(step, "first", key="k", batch="b")
        assert again.result(WAIT_SECONDS) is None
        with pytest.raises(FailedPrecondition, match="has no items; add them first"):
            app.when_complete("b", step, "nothing")

        stored = app.when_complete("a", step, "then")
        assert seen.wait(2) == [("first", None), ("then", "a")]
        repeated = app.when_complete("a", step, "then")
        assert repeated.item_id
        with pytest.raises(FailedPrecondition, match="use another batch, or forget this one"):
            app.when_complete("a", step, "else")
        app.enqueue(step, "more", batch="a").result(WAIT_SECONDS)
        assert stored.to == repeated.to == name
        assert len(seen.told) == 3


def test_what_dies_completes_a_batch_too(app: queueber.App, working: Working, name: str) -> None:
    seen = Seen()

    @app.job("fails", queue=name, attempts=1)
    def fails() -> None:
        raise ValueError

    @app.job("last", queue=name)
    def last(item: queueber.WorkItem) -> None:
        receipt = queueber.callback_receipt(item.attributes)
        seen.tell((receipt.added, receipt.done, receipt.dead))

    with working(app):
        first = app.enqueue(fails, batch="b")
        app.enqueue(fails, batch="b", after=first)
        app.when_complete("b", last, of=fails)
        assert seen.wait(1) == [(2, 0, 2)]


# --- jobs that wait for others --------------------------------------------------------------------


def test_a_job_runs_after_those_that_it_waits_for(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("say", queue=name)
    def say(word: str) -> str:
        seen.tell(word)
        return word

    with working(app):
        first = app.enqueue(say, "first", batch="b")
        second = app.enqueue(say, "second", after=first, batch="b", priority=9)
        third = app.enqueue(say, "third", after=[first, second], priority=9)
        last = app.enqueue(say, "last", after_batch="b", after=third.id.hex(), priority=9)
        assert last.result(WAIT_SECONDS) == "last"
    assert seen.told == ["first", "second", "third", "last"]


def test_a_job_that_waits_for_the_one_that_enqueues_it_runs_after_it(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("outer", queue=name)
    def outer(item: queueber.WorkItem) -> None:
        app.enqueue(say, "after me", after=item.id, batch="b")
        app.enqueue(say, "after the batch", after_batch="b")
        seen.tell("outer")

    @app.job("say", queue=name)
    def say(word: str) -> None:
        seen.tell(word)

    with working(app):
        app.enqueue(outer)
        assert seen.wait(3) == ["outer", "after me", "after the batch"]


def test_jobs_that_wait_for_a_dead_one_die_of_it(
    app: queueber.App, working: Working, name: str
) -> None:
    @app.job("fails", queue=name, attempts=1)
    def fails() -> None:
        raise ValueError("no")

    @app.job("next", queue=name)
    def following() -> None: ...

    with working(app):
        first = app.enqueue(fails)
        second = app.enqueue(following, after=first)
        third = app.enqueue(following, after=[second])
        for handle, awaited in ((second, first), (third, second)):
            with pytest.raises(queueber.JobDied) as died:
                handle.result(WAIT_SECONDS)
            assert (died.value.job, died.value.attempts) == ("next", 1)
            told = f"it was to come after item {awaited.id.hex()}, which died or was cancelled"
            assert died.value.error == told
        late = app.enqueue(following, after=first)
        with pytest.raises(queueber.JobDied, match=f"to come after item {first.id.hex()}"):
            late.result(WAIT_SECONDS)


def test_jobs_wait_for_what_there_is(app: queueber.App, working: Working, name: str) -> None:
    @app.job("step", queue=name)
    def step() -> None: ...

    @app.job("other", queue=f"{name}-2")
    def other() -> None: ...

    with working(app):
        elsewhere = app.enqueue(other)
        done = app.enqueue(step, batch="b")
        done.result(WAIT_SECONDS)
        with pytest.raises(NotFound, match="has never had an item ffffffffffffffffffffffffffffff"):
            app.enqueue(step, after="ff" * 16)
        with pytest.raises(NotFound, match="knows no batch 'none'"):
            app.enqueue(step, after_batch="none")
        with pytest.raises(InvalidArgument, match="'b' is the batch of the items themselves"):
            app.enqueue(step, batch="b", after_batch="b")
        with pytest.raises(InvalidArgument, match="'other' is a job of queue"):
            app.enqueue(step, after=elsewhere)
        forgotten = (int.from_bytes(done.id) - 1).to_bytes(16)
        assert app.enqueue(step, after=forgotten).result(WAIT_SECONDS) is None


# --- waiting for oneself --------------------------------------------------------------------------


def test_a_job_that_waits_for_a_job_with_its_own_key_gets_no_result(
    app: queueber.App, working: Working, name: str
) -> None:
    @app.job("itself", queue=name)
    def itself(item: queueber.WorkItem) -> str:
        handle = app.enqueue(itself, key="k")
        assert handle.id == item.id
        try:
            handle.result(timeout=0.3)
        except TimeoutError as error:
            return str(error)[:22]
        return "a result"

    @app.job("awaited", queue=name)
    async def awaited() -> str:
        try:
            await (await app.enqueue_async(awaited, key="a")).result_async(timeout=0.3)
        except TimeoutError as error:
            return str(error)[:22]
        return "a result"

    with working(app):
        assert app.enqueue(itself, key="k").result(WAIT_SECONDS) == "itself has no result a"
        assert app.enqueue(awaited, key="a").result(WAIT_SECONDS) == "awaited has no result "


def test_a_job_that_waits_for_one_that_waits_for_it_gets_no_result(
    app: queueber.App, working: Working, name: str
) -> None:
    @app.job("first", queue=name)
    def first(item: queueber.WorkItem) -> str:
        try:
            app.enqueue(second, after=item.id).result(timeout=0.3)
        except TimeoutError:
            return "none"
        return "a result"

    @app.job("second", queue=name)
    def second() -> None: ...

    with working(app):
        assert app.enqueue(first).result(WAIT_SECONDS) == "none"


def test_two_programs_that_enqueue_with_one_key_wait_for_one_job(
    app: queueber.App, working: Working, name: str
) -> None:
    begun, go = threading.Event(), threading.Event()

    @app.job("slow", queue=name)
    def slow() -> int:
        begun.set()
        assert go.wait(WAIT_SECONDS)
        return threading.get_ident()

    results: list[int] = []

    def enqueue() -> None:
        results.append(app.enqueue(slow, key="k").result(WAIT_SECONDS))

    with working(app):
        threads = [threading.Thread(target=enqueue) for _ in range(2)]
        threads[0].start()
        assert begun.wait(WAIT_SECONDS)
        threads[1].start()
        time.sleep(0.05)  # the second waits by now; without that the test would pass, too
        go.set()
        for thread in threads:
            thread.join()
    assert len(results) == 2
    assert len(set(results)) == 1


def test_two_coroutines_that_enqueue_with_one_key_wait_for_one_job(
    app: queueber.App, working: Working, name: str
) -> None:
    begun = 0

    @app.job("slow", queue=name)
    async def slow() -> str:
        nonlocal begun
        begun += 1
        await asyncio.sleep(0.05)
        return "done"

    async def enqueue() -> str:
        return await (await app.enqueue_async(slow, key="k"))

    async def main() -> list[str]:
        return list(await asyncio.gather(enqueue(), enqueue()))

    with working(app):
        assert asyncio.run(main()) == ["done", "done"]
    assert begun == 1


# --- time limits ----------------------------------------------------------------------------------


def test_a_coroutine_that_overruns_is_cancelled_and_fails(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("hangs", queue=name, timeout=0.2, attempts=2, backoff=0)
    async def hangs() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            seen.tell("cancelled")

    with working(app):
        with pytest.raises(queueber.JobDied) as died:
            app.enqueue(hangs).result(WAIT_SECONDS)
        assert died.value.attempts == 2
        first, *stack = died.value.error.splitlines()
        assert first == "HandlerTimeout: the handler ran longer than 0.2 s (its timeout)"
        assert any("await asyncio.sleep(3600)" in line for line in stack)
    assert seen.told == ["cancelled"] * 2


def test_a_coroutine_that_catches_its_cancellation_fails_all_the_same(
    app: queueber.App, working: Working, name: str
) -> None:
    @app.job("stubborn", queue=name, attempts=1)
    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        return "late"

    with working(app):
        with pytest.raises(queueber.JobDied) as died:
            app.enqueue(stubborn, timeout=0.2).result(WAIT_SECONDS)
        assert died.value.error == (
            "HandlerTimeout: the handler ran longer than 0.2 s (its timeout); "
            "it returned when cancelled"
        )


def test_a_function_that_overruns_fails(app: queueber.App, working: Working, name: str) -> None:
    @app.job("slow", queue=name, timeout=0.1, attempts=1)
    def slow(seconds: float) -> str:
        time.sleep(seconds)
        return "done"

    with working(app):
        with pytest.raises(queueber.JobDied) as died:
            app.enqueue(slow, 0.5).result(WAIT_SECONDS)
        told = "HandlerTimeout: the handler ran longer than 0.1 s (its timeout); it "
        assert died.value.error.startswith(told)
        assert app.enqueue(slow, 0.5, timeout=60).result(WAIT_SECONDS) == "done"


# --- items that the app did not make --------------------------------------------------------------


def test_items_that_are_added_beside_the_app_run_too(
    app: queueber.App, working: Working, name: str
) -> None:
    seen = Seen()

    @app.job("say", queue=name)
    def say(word: str, item: queueber.WorkItem) -> None:
        seen.tell((word, item.key))

    with working(app):
        contents = [b'{"job":"say","args":{"word":"%s"}}' % word for word in (b"a", b"b")]
        ids = app.client.queue(name).add(contents, key=["1", None])
        assert [app.handle(say, each).result(WAIT_SECONDS) for each in ids] == [None, None]
    assert sorted(seen.told) == [("a", "1"), ("b", "")]


def test_contents_that_are_no_job_fail(app: queueber.App, working: Working, name: str) -> None:
    @app.job("say", queue=name)
    def say(word: str) -> None: ...

    with working(app):
        (item_id,) = app.client.queue(name).add(b"no JSON", attempts=1)
        with pytest.raises(queueber.JobDied, match="ValueError: the contents are not those of a"):
            app.handle(say, item_id).result(WAIT_SECONDS)
