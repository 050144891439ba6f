"""Values for operators: what a server measures, and how that went over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class MetricKind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured, named as Prometheus has it."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram: the upper bounds of its buckets, but for the last, which has none."""


class Sample(NamedTuple):
    """One measured value, or one histogram."""

    label_values: tuple[str, ...]
    """One for each label of the metric."""
    values: tuple[float, ...]
    """The value alone; of a histogram the sum of what was observed, then how often each bucket
    was."""

    @property
    def value(self) -> float:
        return self.values[0]


@dataclass(slots=True)
class MetricFamily:
    """A metric with its samples at one moment."""

    metric: Metric
    samples: Sequence[Sample] = ()

    @property
    def name(self) -> str:
        return self.metric.name


class HistorySpan(Enum):
    """How far back a history goes, and so how fine it is."""

    HOUR = "hour"
    """A point every 10 seconds."""
    DAY = "day"
    """A point every 5 minutes."""


@dataclass(slots=True)
class History:
    """How some values of a queue or topic went. Empty if the server remembers nothing of it."""

    end_ms: int = 0
    """The time of the last point."""
    step_ms: int = 0
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """By name, oldest point first."""


@dataclass(slots=True)
class Histories:
    """Histories by the name of the queue or topic."""

    queues: dict[str, History]
    topics: dict[str, History]
