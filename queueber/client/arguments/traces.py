"""Traces: items and messages carry the span in which they were made, as W3C Trace Context has it.

The attribute `traceparent` names the span, and `tracestate` goes with it. They are added only while
a span is recorded: a program that does not use OpenTelemetry has no span, and pays one lookup.
"""

import sys
from collections.abc import Mapping, Sequence

from queueber.limits import ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX

TRACEPARENT = "traceparent"

_API = "opentelemetry.trace"


def is_used() -> bool:
    """Whether this program has imported OpenTelemetry."""
    return _API in sys.modules


def with_trace(attributes: Sequence[Mapping[str, str]], count: int) -> Sequence[Mapping[str, str]]:
    """The attributes of `count` items with the current span; one that names a span keeps it."""
    if not is_used():
        return attributes
    carried = _carried()
    if not carried:
        return attributes
    if not attributes:
        return [carried] * count
    return [_joined(each, carried) for each in attributes]


def _carried() -> dict[str, str]:
    """The span that is recorded now; empty if there is none."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carried: dict[str, str] = {}
    if get_current_span().is_recording():
        TraceContextTextMapPropagator().inject(carried)
    return carried


def _joined(own: Mapping[str, str], carried: Mapping[str, str]) -> Mapping[str, str]:
    """Without the span if it does not fit: the item matters more than its trace."""
    if TRACEPARENT in own:
        return own
    joined = {**own, **carried}
    size = sum(len(text.encode()) for pair in joined.items() for text in pair)
    return joined if len(joined) <= ATTRIBUTES_MAX and size <= ATTRIBUTES_BYTES_MAX else own
