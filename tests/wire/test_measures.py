"""Metrics and histories on the wire: written and read again they are the same."""

from queueber.model import History, HistorySpan, MetricFamily, Sample
from queueber.schema import wire
from queueber.service.measures import metrics
from queueber.wire.measures import (
    read_family,
    read_history,
    read_span,
    write_families,
    write_histories,
)


def test_families_are_read_as_they_were_written() -> None:
    buckets = (2.5, *[1] * (len(metrics.CALL_SECONDS) + 1))
    families = [
        MetricFamily(metrics.QUEUES, [Sample((), (3,))]),
        MetricFamily(metrics.CALLS, [Sample(("a", "OK"), (1,)), Sample(("b", "OK"), (2,))]),
        MetricFamily(metrics.CALL_DURATION, [Sample(("a",), buckets), Sample(("b",), buckets)]),
        MetricFamily(metrics.QUEUE_PAUSED, [Sample(("q",), (True,))]),
        MetricFamily(metrics.CALLS_WAITING, []),
    ]
    results = wire.MetricFamily.new_message()
    read = []
    for family in families:
        write_families([results], [family])
        read.append(read_family(results))

    assert read == families


def test_histories_are_read_as_they_were_written() -> None:
    full = History(1000, 10, {"ready": [1, 2, 3.5], "dead": [0, 0, 0]})
    for history in (full, History()):
        message = wire.History.new_message()
        write_histories([message], [history])

        assert read_history(message) == history


def test_spans_have_the_names_of_the_schema() -> None:
    names = wire.HistorySpan.schema.enumerants

    assert {read_span(name) for name in names} == set(HistorySpan)
