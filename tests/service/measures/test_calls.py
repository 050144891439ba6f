"""Calls by method and by code."""

from queueber.clock import seconds
from queueber.model import MetricFamily, Sample
from queueber.service.measures.calls import CallMeasures
from queueber.service.measures.metrics import CALL_DURATION, CALL_SECONDS, CALLS


def one() -> None: ...


def two() -> None: ...


def test_functions_of_one_method_are_counted_together() -> None:
    calls = CallMeasures()
    calls.add(one, "Queue.add").answered(seconds())
    calls.add(two, "Queue.add").answered(seconds() - 100)
    calls.by_method[one].failed("NOT_FOUND")

    counted, durations = calls.families()

    assert counted == MetricFamily(
        CALLS, [Sample(("Queue.add", "OK"), (2,)), Sample(("Queue.add", "NOT_FOUND"), (1,))]
    )
    ((labels, (total, *buckets)),) = durations.samples
    assert (durations.metric, labels) == (CALL_DURATION, ("Queue.add",))
    assert total > 100
    assert buckets == [1, *[0] * (len(CALL_SECONDS) - 1), 1]


def test_method_without_a_call_has_no_count() -> None:
    calls = CallMeasures()
    calls.add(one, "Queue.add")

    counted, _ = calls.families()

    assert counted.samples == []
