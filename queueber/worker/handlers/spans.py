"""Spans of handlers: a handler goes on with the trace of the program that made its item.

Nothing happens for items without a trace, or in a program that does not use OpenTelemetry.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from queueber.client.arguments.traces import TRACEPARENT, is_used
from queueber.version import VERSION
from queueber.worker.handlers.work_item import WorkItem


def traced(handler: Callable[[WorkItem], object], source: str) -> Callable[[WorkItem], object]:
    """The handler; items that have a trace are handled in a span of it."""

    @wraps(handler)
    def handle(item: WorkItem) -> object:
        if TRACEPARENT not in item.attributes or not is_used():
            return handler(item)
        with _span(item, source):
            return handler(item)

    return handle


def traced_async(
    handler: Callable[[WorkItem], Awaitable[object]], source: str
) -> Callable[[WorkItem], Awaitable[object]]:
    @wraps(handler)
    async def handle(item: WorkItem) -> object:
        if TRACEPARENT not in item.attributes or not is_used():
            return await handler(item)
        with _span(item, source):
            return await handler(item)

    return handle


def _span(item: WorkItem, source: str) -> AbstractContextManager[Any]:
    """A child of the span that the item carries, named as the conventions for messaging say."""
    from opentelemetry.trace import SpanKind, get_tracer
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return get_tracer("queueber", VERSION).start_as_current_span(
        f"process {source}",
        context=TraceContextTextMapPropagator().extract(item.attributes),
        kind=SpanKind.CONSUMER,
        attributes={
            "messaging.system": "queueber",
            "messaging.operation.type": "process",
            "messaging.destination.name": source,
            "messaging.message.id": item.id.hex(),
            "messaging.message.body.size": len(item.contents),
            "queueber.attempt": item.attempt,
        },
    )
