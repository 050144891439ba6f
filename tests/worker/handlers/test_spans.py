"""A trace goes from the program that adds an item to the handler of a worker."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import queueber
from queueber.testing import ServerProcess
from tests.worker.conftest import left_in
from tests.worker.handlers.test_runners import KINDS, worker_of

PROVIDER = TracerProvider()
trace.set_tracer_provider(PROVIDER)
TRACER = trace.get_tracer("tests")


@contextmanager
def exported() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    processor = SimpleSpanProcessor(exporter)
    PROVIDER.add_span_processor(processor)
    yield exporter
    processor.shutdown()


def named(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


@pytest.mark.parametrize("kind", KINDS)
def test_span_of_the_handler_is_a_child_of_the_span_that_added_the_item(
    kind: str, server: ServerProcess, queue: queueber.Queue
) -> None:
    def handle(item: queueber.WorkItem) -> None:
        with TRACER.start_as_current_span("within"):
            pass

    with exported() as exporter:
        with TRACER.start_as_current_span("produce"):
            (item_id,) = queue.add([b"traced"])
        worker_of(kind, server, queue, handle).run(until="empty")

        spans = named(exporter)

    produced, handled = spans["produce"], spans[f"process {queue.name}"]
    assert handled.parent is not None
    assert handled.parent.span_id == produced.context.span_id
    assert handled.context.trace_id == produced.context.trace_id
    assert handled.kind is SpanKind.CONSUMER
    assert handled.attributes == {
        "messaging.system": "queueber",
        "messaging.operation.type": "process",
        "messaging.destination.name": queue.name,
        "messaging.message.id": item_id.hex(),
        "messaging.message.body.size": 6,
        "queueber.attempt": 1,
    }
    # What the handler does is within its span.
    within = spans["within"]
    assert within.parent is not None
    assert within.parent.span_id == handled.context.span_id
    assert left_in(queue) == 0


def test_span_of_a_handler_that_fails_says_so(server: ServerProcess, queue: queueber.Queue) -> None:
    def handle(item: queueber.WorkItem) -> None:
        raise ValueError("no such picture")

    with exported() as exporter:
        with TRACER.start_as_current_span("produce"):
            queue.add([b"traced"])
        worker_of("threads", server, queue, handle).run(until="empty")

        span = named(exporter)[f"process {queue.name}"]

    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "ValueError: no such picture"


def test_items_without_a_trace_have_no_span(server: ServerProcess, queue: queueber.Queue) -> None:
    queue.add([b"plain"])

    with exported() as exporter:
        worker_of("threads", server, queue, lambda _: None).run(until="empty")

        assert named(exporter) == {}


def test_trace_goes_through_a_topic_to_a_group_of_workers(server: ServerProcess) -> None:
    with queueber.connect(server.address) as client, exported() as exporter:
        topic = client.topic("traced")
        topic.create_group("workers", kind="shared")
        with TRACER.start_as_current_span("produce"):
            topic.publish(b"message")
        queueber.Worker(
            server.address,
            topic="traced",
            group="workers",
            handler=lambda _: None,
            progress=False,
        ).run(until="empty")

        spans = named(exporter)

    handled = spans["process traced/workers"]
    assert handled.parent is not None
    assert handled.parent.span_id == spans["produce"].context.span_id
