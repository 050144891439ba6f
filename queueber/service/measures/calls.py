"""Calls by method: how long they took, and which were refused."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from queueber.clock import seconds
from queueber.model import MetricFamily, Sample
from queueber.service.measures.histogram import Histogram
from queueber.service.measures.metrics import CALL_DURATION, CALL_SECONDS, CALLS

OK = "OK"
CANCELLED = "CANCELLED"
"""Its caller hung up before the answer."""


class MethodMeasure:
    """One method of the schema."""

    __slots__ = ("durations", "label", "refused")

    def __init__(self, label: str) -> None:
        self.label = label
        self.durations = Histogram(CALL_SECONDS)
        """Of calls that were answered."""
        self.refused: dict[str, int] = {}
        """Others, by code. There are few codes."""

    def answered(self, began: float) -> None:
        # As `Histogram.observe`: every call comes here.
        took, durations = seconds() - began, self.durations
        durations.sum += took
        durations.buckets[bisect_left(CALL_SECONDS, took)] += 1

    def failed(self, code: str) -> None:
        self.refused[code] = self.refused.get(code, 0) + 1


class CallMeasures:
    def __init__(self) -> None:
        self.by_method: dict[Callable[..., Any], MethodMeasure] = {}
        """By the function that serves it."""
        self._by_label: dict[str, MethodMeasure] = {}

    def add(self, method: Callable[..., Any], label: str) -> MethodMeasure:
        """Measure a method from now on. Several functions may share a label."""
        found = self._by_label.get(label)
        if found is None:
            found = self._by_label[label] = MethodMeasure(label)
        self.by_method[method] = found
        return found

    def families(self) -> list[MetricFamily]:
        measures = sorted(self._by_label.values(), key=lambda each: each.label)
        answered = [
            Sample((each.label, OK), (each.durations.count,))
            for each in measures
            if each.durations.count
        ]
        refused = [
            Sample((each.label, code), (count,))
            for each in measures
            for code, count in sorted(each.refused.items())
        ]
        durations = [Sample((each.label,), each.durations.values) for each in measures]
        return [
            MetricFamily(CALLS, [*answered, *refused]),
            MetricFamily(CALL_DURATION, durations),
        ]
