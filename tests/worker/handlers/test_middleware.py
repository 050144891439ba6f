"""Middleware around handlers of every kind, and what ships as such."""

import io
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import pytest
import structlog
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import queueber
from queueber.testing import ServerProcess
from queueber.worker.handlers.work_item import HeldLease, WorkItem
from tests.worker import samples
from tests.worker.conftest import last_error_of, results_of
from tests.worker.handlers.test_runners import KINDS, worker_of

READER = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([READER]))


class Told(queueber.Middleware):
    """Writes down what happens, in a list that several may share."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name = name
        self.told = told

    def start(self, source: str) -> None:
        self.told.append(f"{self.name} starts")

    def before(self, item: queueber.WorkItem) -> None:
        self.told.append(f"{self.name} before {item.attempt}")

    def after(self, item: queueber.WorkItem, returned: object) -> None:
        self.told.append(f"{self.name} after {returned!r}")

    @contextmanager
    def around(self, item: queueber.WorkItem) -> Iterator[None]:
        self.told.append(f"{self.name} enters")
        try:
            yield
        finally:
            self.told.append(f"{self.name} leaves")

    def on_error(self, item: queueber.WorkItem, error: BaseException) -> None:
        self.told.append(f"{self.name} on {error!r}")


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_one_is_outermost(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    told: list[str] = []

    worker_of(
        kind, server, queue, lambda _: b"well", middleware=[Told("a", told), Told("b", told)]
    ).run(until="empty")

    assert told == [
        "a starts", "b starts",
        "a enters", "a before 1", "b enters", "b before 1",
        "b after b'well'", "b leaves", "a after b'well'", "a leaves",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_on_error_gets_the_exception_of_the_handler_and_what_it_raises_is_noted(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    error = ValueError("no such picture")
    got: list[BaseException] = []

    class Reports(queueber.Middleware):
        def on_error(self, item: queueber.WorkItem, error: BaseException) -> None:
            got.append(error)
            raise ConnectionError("nobody listens")

    def handle(_: queueber.WorkItem) -> None:
        raise error

    worker_of(kind, server, queue, handle, middleware=[Reports()]).run(until="empty")

    assert got == [error]
    assert last_error_of(queue).splitlines()[:2] == [
        "ValueError: no such picture",
        "on_error of a middleware raised ConnectionError",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_before_raises_fails_the_item_without_a_call_of_the_handler(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    called: list[queueber.WorkItem] = []

    class Refuses(queueber.Middleware):
        def before(self, item: queueber.WorkItem) -> None:
            raise PermissionError("not this one")

    worker_of(kind, server, queue, called.append, middleware=[Refuses()]).run(until="empty")

    assert called == []
    assert last_error_of(queue).startswith("PermissionError: not this one\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_context_that_suppresses_an_error_does_not_complete_the_item(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")

    class Suppresses(queueber.Middleware):
        def around(self, item: queueber.WorkItem) -> AbstractContextManager[None]:
            return suppress(ValueError)

    def handle(_: queueber.WorkItem) -> None:
        raise ValueError

    worker_of(kind, server, queue, handle, middleware=[Suppresses()]).run(until="empty")

    assert "suppressed the error of the handler" in last_error_of(queue)


def test_on_error_learns_of_a_handler_that_took_too_long(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    told: list[str] = []

    async def hang(_: queueber.WorkItem) -> None:
        import asyncio

        await asyncio.sleep(3600)

    queueber.Worker(
        server.address, queue=queue.name, handler=hang, timeout=0.1, progress=False,
        middleware=[Told("a", told)],
    ).run(until="empty")  # fmt: skip

    expected = "the handler ran longer than 0.1 s (its timeout)"
    assert told[-1] == f"a on HandlerTimeout({expected!r})"


def test_middleware_by_name_runs_in_worker_processes(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    (item_id,) = queue.add(b"x")

    queueber.Worker(
        server.address, queue=queue.name, handler=samples.seen, processes=1, progress=False,
        middleware=["tests.worker.samples:Marks"],
    ).run(until="empty")  # fmt: skip

    assert results_of(queue) == {item_id: b"marked"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere:Nothing", "middleware: there is no module 'nowhere'"),
        ("tests.worker.samples:double", "is not a queueber.Middleware"),
    ],
)
def test_a_name_of_no_middleware_is_refused_at_the_start(name: str, told: str) -> None:
    with pytest.raises(queueber.InvalidArgument, match=told):
        queueber.Worker(handler=samples.double, middleware=[name]).run()


# --- what ships -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_logs_of_a_handler_have_the_id_and_the_attempt(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    (item_id,) = queue.add(b"x")
    lines: list[dict[str, Any]] = []
    written = io.StringIO()
    output = logging.StreamHandler(written)
    output.addFilter(queueber.JobLogFilter())
    output.setFormatter(logging.Formatter("%(job_id)s %(attempt)d %(queue)s %(message)s"))
    standard = logging.Logger("tests")
    standard.addHandler(output)

    def drop(_: object, __: str, event: structlog.typing.EventDict) -> str:
        lines.append(dict(event))
        raise structlog.DropEvent

    log = structlog.wrap_logger(None, [structlog.contextvars.merge_contextvars, drop])

    def handle(_: queueber.WorkItem) -> None:
        log.info("resized")
        standard.warning("resized, too")

    worker_of(kind, server, queue, handle, middleware=[queueber.LogContext()]).run(until="empty")
    standard.warning("afterwards")

    expected = {"job_id": item_id.hex(), "attempt": 1, "queue": queue.name, "event": "resized"}
    assert lines == [expected]
    assert written.getvalue().splitlines() == [
        f"{item_id.hex()} 1 {queue.name} resized, too",
        "- 0 - afterwards",
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_have_a_duration_for_each_call_and_the_type_of_the_error(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"good", b"good", b"bad"])

    def handle(item: queueber.WorkItem) -> None:
        if item.contents == b"bad":
            raise ValueError

    worker = worker_of(kind, server, queue, handle, middleware=[queueber.HandlerMetrics()])
    worker.run(until="empty")

    found: Any = READER.get_metrics_data()
    (metric,) = found.resource_metrics[0].scope_metrics[0].metrics
    points = {
        point.attributes.get("error.type"): point.count
        for point in metric.data.data_points
        if point.attributes["messaging.destination.name"] == queue.name
    }
    assert (metric.name, metric.unit) == ("messaging.process.duration", "s")
    assert points == {None: 2, "ValueError": 1}


def test_metrics_forget_a_call_that_was_cancelled_with_its_lease() -> None:
    metrics = queueber.HandlerMetrics()
    metrics.start("sums")
    item = WorkItem(queueber.Item(bytes(16), b""), HeldLease(b"", 1, 0.0))
    metrics.before(item)
    assert len(metrics._began) == 1
    del item
    assert not metrics._began


def test_failures_are_logged_with_their_traceback(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"no such picture")

    with structlog.testing.capture_logs() as logs:
        worker_of("threads", server, queue, samples.fail).run(until="empty")

    (failed,) = [log for log in logs if log["event"] == "handler_failed"]
    assert failed["error"] == "ValueError: no such picture"
    assert "in fail\n    raise ValueError(item.contents.decode())" in failed["exception"]
