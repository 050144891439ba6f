"""`/metrics`: the server's and the gateway's, in the formats of Prometheus."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse

from queueber.gateway.metrics import shown_family
from queueber.model import MetricFamily, Sample
from queueber.service.measures import metrics
from queueber.service.measures.metrics import METRICS
from queueber.testing import ServerProcess, running_server
from tests.support.callers import add_token
from tests.support.http import GatewayProcess, running_gateway

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def values_of(text: str) -> Values:
    return {
        (sample.name, frozenset((k, v) for k, v in sample.labels.items() if k != "process")): float(
            sample.value
        )
        for family in parse(text)
        for sample in family.samples
    }


def read(gateway: GatewayProcess) -> Values:
    answered = gateway.ask("GET", "/metrics")
    assert answered.status == 200
    assert answered.headers["content-type"].startswith("text/plain; version=")
    return values_of(answered.body.decode())


def labels(**values: str) -> frozenset[tuple[str, str]]:
    return frozenset(values.items())


def test_text_has_the_metrics_of_the_server(gateway: GatewayProcess, queue: str) -> None:
    gateway.ask("POST", f"{queue}/items", raw=b"contents")
    name = queue.rpartition("/")[2]

    found = read(gateway)

    assert found["queueber_queue_items", labels(queue=name, state="ready")] == 1
    assert found["queueber_queue_operations_total", labels(queue=name, operation="added")] == 1
    assert found["queueber_connections", labels()] == 1
    assert found["queueber_gateway_server_up", labels()] == 1


def test_histograms_are_cumulative(gateway: GatewayProcess, queue: str) -> None:
    gateway.ask("POST", f"{queue}/items", raw=b"contents")

    found = read(gateway)

    buckets = {
        float(dict(each)["le"]): value
        for (name, each), value in found.items()
        if name == "queueber_call_duration_seconds_bucket" and ("method", "Queue.add") in each
    }
    counts = [buckets[bound] for bound in sorted(buckets)]
    assert sorted(buckets) == [*METRICS["queueber_call_duration_seconds"].bounds, float("inf")]
    assert counts == sorted(counts)
    total = found["queueber_call_duration_seconds_count", labels(method="Queue.add")]
    assert counts[-1] == total > 0


def test_requests_are_counted_by_route_and_status(gateway: GatewayProcess) -> None:
    gateway.ask("GET", "/healthz")
    gateway.ask("GET", "/v1/queues/never-made-here")
    gateway.ask("PATCH", "/nothing/is/here")

    found = read(gateway)

    def count(method: str, route: str, status: str) -> float:
        at = labels(method=method, route=route, status=status)
        return found["queueber_gateway_requests_total", at]

    assert count("GET", "/healthz", "200") >= 1
    assert count("GET", "/v1/queues/{queue}", "404") >= 1
    assert count("none", "none", "404") >= 1
    at = labels(method="GET", route="/healthz")
    assert found["queueber_gateway_request_duration_seconds_count", at] >= 1
    assert found["queueber_gateway_requests_in_flight", labels()] == 1


def test_openmetrics_is_answered_to_those_who_accept_it(gateway: GatewayProcess) -> None:
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}

    answered = gateway.ask("GET", "/metrics", headers=accept)

    assert answered.headers["content-type"].startswith("application/openmetrics-text")
    families = parse_openmetrics(answered.body.decode())  # type: ignore[no-untyped-call]
    names = {family.name for family in families}
    assert "queueber_calls" in names


def test_every_name_of_a_metric_is_that_of_the_table(gateway: GatewayProcess) -> None:
    found = {name for name, _ in read(gateway) if not name.startswith("queueber_gateway_")}

    bare = {re.sub("_(bucket|sum|count)$", "", name) for name in found}
    assert bare <= set(METRICS)


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is missing: install the package prometheus"
)
def test_prometheus_finds_nothing_wrong_with_the_text(gateway: GatewayProcess, queue: str) -> None:
    gateway.ask("POST", f"{queue}/items", raw=b"contents")
    text = gateway.ask("GET", "/metrics").body

    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, check=False
    )

    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


@pytest.fixture
def lonely() -> Iterator[tuple[GatewayProcess, ServerProcess]]:
    """A gateway whose server can be killed."""
    with (
        running_server() as server,
        running_gateway(server.address, "--retry-timeout-ms=200") as running,
    ):
        yield running, server


def test_gateway_tells_of_itself_while_the_server_is_away(
    lonely: tuple[GatewayProcess, ServerProcess],
) -> None:
    gateway, server = lonely
    assert read(gateway)["queueber_gateway_server_up", labels()] == 1
    server.kill()

    found = read(gateway)

    assert found["queueber_gateway_server_up", labels()] == 0
    assert not [name for name, _ in found if not name.startswith("queueber_gateway_")]


def test_callers_of_a_protected_server_need_the_right_to_observe(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    reader, producer = add_token(file, "reader"), add_token(file, "producer")
    with (
        running_server("--tokens-file", str(file)) as server,
        running_gateway(server.address) as gateway,
    ):
        answers = {
            who: gateway.ask("GET", "/metrics", headers=headers)
            for who, headers in {
                "nobody": {},
                "wrong": {"authorization": "Bearer wrong"},
                "producer": {"authorization": f"Bearer {producer}"},
                "reader": {"authorization": f"Bearer {reader}"},
            }.items()
        }

    assert {who: answered.status for who, answered in answers.items()} == {
        "nobody": 401,
        "wrong": 401,
        "producer": 403,
        "reader": 200,
    }
    assert answers["nobody"].code == "UNAUTHENTICATED"
    assert answers["producer"].code == "PERMISSION_DENIED"
    refused = labels(method="Service.authenticate", code="UNAUTHENTICATED")
    assert values_of(answers["reader"].body.decode())["queueber_calls_total", refused] >= 1


def test_counter_keeps_its_suffix_and_labels() -> None:
    family = MetricFamily(metrics.CALLS, [Sample(("Queue.add", "OK"), (2,))])

    (sample,) = shown_family(family).samples

    assert (sample.name, sample.value) == ("queueber_calls_total", 2)
    assert sample.labels == {"method": "Queue.add", "code": "OK"}
