"""Spans of handlers: a handler goes on with the trace of the program that made its item.

Nothing happens for items without a trace, or in a program that does not use OpenTelemetry.
"""

from contextlib import AbstractContextManager

from queueber.client.arguments.traces import TRACEPARENT, is_used
from queueber.version import VERSION
from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.work_item import WorkItem


class Tracing(Middleware):
    """Every worker has it: items that have a trace are handled in a span of it."""

    def around(self, item: WorkItem) -> AbstractContextManager[object] | None:
        if TRACEPARENT not in item.attributes or not is_used():
            return None
        return self._span(item)

    def _span(self, item: WorkItem) -> AbstractContextManager[object]:
        """A child of the span that the item carries, named as the conventions for messaging say."""
        from opentelemetry.trace import SpanKind, get_tracer
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        return get_tracer("queueber", VERSION).start_as_current_span(
            f"process {item.job or item.source}",
            context=TraceContextTextMapPropagator().extract(item.attributes),
            kind=SpanKind.CONSUMER,
            attributes={
                "messaging.system": "queueber",
                "messaging.operation.type": "process",
                "messaging.destination.name": item.source,
                "messaging.message.id": item.id.hex(),
                "messaging.message.body.size": len(item.contents),
                "queueber.attempt": item.attempt,
            },
        )
