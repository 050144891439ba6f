"""Codecs of metrics and histories: messages to plain values and back."""

from collections.abc import Sequence
from typing import Any

from queueber.model import History, HistorySpan, Metric, MetricFamily, MetricKind, Sample

_SPANS = {str(each.value): each for each in HistorySpan}
_KINDS = {str(each.value): each for each in MetricKind}


def write_families(target: Any, families: Sequence[MetricFamily]) -> None:
    """Into a list that is as long."""
    for at, family in enumerate(families):
        _write_family(target[at], family)


def _write_family(target: Any, family: MetricFamily) -> None:
    metric = family.metric
    target.name = metric.name
    target.help = metric.help
    target.kind = metric.kind.value
    target.labels = list(metric.labels)
    target.labelValues = [each for sample in family.samples for each in sample.label_values]
    target.values = [float(each) for sample in family.samples for each in sample.values]
    target.bounds = list(metric.bounds)


def read_family(source: Any) -> MetricFamily:
    metric = Metric(
        source.name,
        _KINDS[str(source.kind)],
        source.help,
        tuple(source.labels),
        tuple(source.bounds),
    )
    labels, values = list(source.labelValues), list(source.values)
    # The values of a histogram are a sum, and a count for each bound and for what is above them.
    width = 1 if metric.kind is not MetricKind.HISTOGRAM else len(metric.bounds) + 2
    columns = len(metric.labels)
    samples = [
        Sample(
            tuple(labels[at * columns : (at + 1) * columns]),
            tuple(values[at * width : (at + 1) * width]),
        )
        for at in range(len(values) // width)
    ]
    return MetricFamily(metric, samples)


def read_span(span: Any) -> HistorySpan:
    return _SPANS[str(span)]


def write_histories(target: Any, histories: Sequence[History]) -> None:
    """Into a list that is as long."""
    for at, history in enumerate(histories):
        written = target[at]
        written.endMs = history.end_ms
        written.stepMs = history.step_ms
        series = written.init("series", len(history.series))
        for each, (name, values) in zip(series, history.series.items(), strict=True):
            each.name = name
            each.values = list(values)


def read_history(source: Any) -> History:
    return History(
        source.endMs, source.stepMs, {each.name: list(each.values) for each in source.series}
    )
