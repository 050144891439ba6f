import pytest

from queueber.gateway.dashboard.health import Health, HealthWatch, quantile
from queueber.model import Metric, MetricFamily, MetricKind, Sample


def family(name: str, *samples: tuple[tuple[str, ...], tuple[float, ...]]) -> MetricFamily:
    metric = Metric(name, MetricKind.GAUGE, "", bounds=(0.001, 0.01, 0.1))
    return MetricFamily(metric, [Sample(*each) for each in samples])


def measured(calls: float, refused: float, cpu: float, *sync: float) -> list[MetricFamily]:
    return [
        family(
            "queueber_calls_total", (("add", "OK"), (calls,)), (("add", "NOT_FOUND"), (refused,))
        ),
        family("queueber_process_cpu_seconds_total", ((), (cpu,))),
        family("queueber_sync_duration_seconds", ((), (0.0, *sync))),
        family("queueber_connections", ((), (7.0,))),
        family("queueber_store_files_bytes", ((), (100.0,))),
        family("queueber_store_log_bytes", ((), (20.0,))),
    ]


def test_rates_are_those_since_the_last_look() -> None:
    watch = HealthWatch()
    watch.look(measured(100, 10, 5, 0, 0, 0, 0), 10.0)

    found = watch.look(measured(300, 20, 6, 98, 1, 1, 0), 12.0)

    assert found == Health(
        calls_per_s=105.0,
        refused_per_s=5.0,
        sync_p99_s=0.01,
        connections=7,
        calls_in_flight=0,
        calls_waiting=0,
        cpu=0.5,
        memory_bytes=0,
        store_bytes=120,
        disk_free_bytes=0,
        compaction_bytes=0,
    )


def test_a_server_that_was_restarted_has_no_negative_rates() -> None:
    watch = HealthWatch()
    watch.look(measured(100, 10, 5, 9, 9, 9, 9), 10.0)

    found = watch.look(measured(1, 0, 0, 1, 0, 0, 0), 11.0)

    assert (found.calls_per_s, found.refused_per_s, found.cpu) == (0.0, 0.0, 0.0)
    assert found.sync_p99_s == 0.001


@pytest.mark.parametrize(
    ("buckets", "bound"),
    [((0, 0, 0, 0), 0.0), ((99, 1, 0, 0), 1.0), ((90, 10, 0, 0), 2.0), ((0, 0, 0, 5), 3.0)],
)
def test_the_99th_of_100_is_below_the_bound_of_its_bucket(
    buckets: tuple[float, ...], bound: float
) -> None:
    assert quantile((1.0, 2.0, 3.0), buckets) == bound
