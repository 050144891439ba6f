"""The table of metrics: names by the conventions of Prometheus."""

import pytest

from queueber.model import Metric, MetricKind
from queueber.service.measures.metrics import METRICS

UNITS = ("_seconds", "_bytes")
OTHER_UNITS = ("_ms", "_milliseconds", "_kib", "_mib", "_minutes")


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_metric_is_named_by_the_conventions(metric: Metric) -> None:
    name = metric.name

    assert name.startswith("queueber_")
    assert name.endswith("_total") == (metric.kind is MetricKind.COUNTER)
    assert not name.endswith(OTHER_UNITS)
    assert metric.help.endswith(".")
    assert len(set(metric.labels)) == len(metric.labels)


def test_no_two_names_differ_in_the_suffix_alone() -> None:
    """OpenMetrics has a counter without its suffix beside the others."""
    bare = [name.removesuffix("_total") for name in METRICS]

    assert len(set(bare)) == len(bare)


@pytest.mark.parametrize("metric", METRICS.values(), ids=list(METRICS))
def test_only_histograms_have_bounds_and_those_grow(metric: Metric) -> None:
    assert bool(metric.bounds) == (metric.kind is MetricKind.HISTOGRAM)
    assert list(metric.bounds) == sorted(set(metric.bounds))
    assert len(metric.bounds) <= 16
