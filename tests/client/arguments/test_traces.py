"""The span in which an item or message is made goes with it, if there is one."""

import subprocess
import sys

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, TraceFlags, use_span

from queueber.client.arguments.new_items import to_new_items
from queueber.client.arguments.new_messages import NewMessage, to_publication
from queueber.limits import ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX

TRACER = TracerProvider().get_tracer("tests")


@pytest.fixture
def span() -> Span:
    return TRACER.start_span("produce")


def traceparent(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def test_items_and_messages_carry_the_span(span: Span) -> None:
    with use_span(span):
        items = to_new_items([b"a", b"b"])
        publication = to_publication("t", [b"a", NewMessage(b"b", attributes={"x": "y"})])

    carried = {"traceparent": traceparent(span)}
    assert items.attributes == [carried, carried]
    assert publication.messages.attributes == [carried, {"x": "y", **carried}]


def test_own_attributes_stay(span: Span) -> None:
    named = {"traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"}
    with use_span(span):
        items = to_new_items([b"a", b"b"], attributes=[{"x": "y"}, named])

    assert items.attributes == [{"x": "y", "traceparent": traceparent(span)}, named]


def test_nothing_is_carried_without_a_span_that_is_recorded() -> None:
    context = SpanContext(1, 2, is_remote=True, trace_flags=TraceFlags(0))

    assert to_new_items([b"a"]).attributes == ()
    with use_span(NonRecordingSpan(context)):
        assert to_new_items([b"a"]).attributes == ()
        assert to_publication("t", b"a").messages.attributes == ()


@pytest.mark.parametrize(
    "full",
    [{str(n): "" for n in range(ATTRIBUTES_MAX)}, {"x": "y" * (ATTRIBUTES_BYTES_MAX - 1)}],
    ids=["number", "bytes"],
)
def test_item_whose_attributes_are_full_is_sent_without_its_span(
    full: dict[str, str], span: Span
) -> None:
    with use_span(span):
        items = to_new_items([b"a"], attributes=full)

    assert items.attributes == [full]


def test_client_does_not_import_opentelemetry() -> None:
    code = (
        "import queueber, sys;"
        "from queueber.client.arguments.new_items import to_new_items;"
        "print(to_new_items([b'a']).attributes,"
        " [name for name in sys.modules if name.startswith('opentelemetry')])"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "() []"
