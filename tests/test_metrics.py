"""Metrics as operators meet them: the page, the alerts and the dashboard name those that exist."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import Metric as ShownMetric

from queueber.gateway.bounds import Bounds
from queueber.gateway.clients import ClientPool
from queueber.gateway.grpc.measures import GrpcMeasures
from queueber.gateway.metrics import GatewayMeasures
from queueber.gateway.settings import GatewaySettings
from queueber.service.measures import queues, topics
from queueber.service.measures.metrics import METRICS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "metrics.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "queueber.json").read_text())

promtool = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    promtool is None, reason="promtool is missing: install the package prometheus"
)


def gateway_families() -> list[ShownMetric]:
    bounds = Bounds(requests_max=1, waits_max=1, bodies_bytes_max=1, answers_bytes_max=1)
    measures = GatewayMeasures(bounds, ClientPool(GatewaySettings()))
    GrpcMeasures(measures.registry, bounds.waits)
    return list(measures.registry.collect())


def known_names() -> set[str]:
    """What a query may name: also the three parts of a histogram."""
    own = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in gateway_families()
    }
    histograms = {name for name, metric in METRICS.items() if metric.bounds}
    histograms |= {family.name for family in gateway_families() if family.type == "histogram"}
    parts = {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}
    return own | set(METRICS) | parts


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\bqueueber_\w+", text))


def expressions() -> list[str]:
    """Every query of the dashboard."""
    targets = [each["expr"] for panel in DASHBOARD["panels"] for each in panel.get("targets", ())]
    annotations = [each["expr"] for each in DASHBOARD["annotations"]["list"]]
    variables = [
        each["query"]["query"]
        for each in DASHBOARD["templating"]["list"]
        if each["type"] == "query"
    ]
    return [*targets, *annotations, *variables]


def run(*arguments: object, text: str | None = None) -> "subprocess.CompletedProcess[str]":
    assert promtool is not None
    command = [promtool, *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


# --- names ----------------------------------------------------------------------------------------


def test_the_metrics_of_the_server_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| `(queueber_\w+)` \| (\w+) \| (.*?) ?\| (.*) \|$", PAGE, re.MULTILINE)
    told = {name: row for name, *row in rows if not name.startswith("queueber_gateway_")}

    assert told == {
        name: [metric.kind.value, ", ".join(f"`{label}`" for label in metric.labels), metric.help]
        for name, metric in METRICS.items()
    }


def test_the_metrics_of_the_gateway_are_those_of_the_page() -> None:
    rows = re.findall(r"^\| `(queueber_gateway_\w+)` \| (\w+) \|", PAGE, re.MULTILINE)

    found = {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in gateway_families()
    }
    assert dict(rows) == found


def test_the_series_of_histories_are_those_of_the_page() -> None:
    histories = PAGE.partition("## Histories")[2].rpartition("\nA point of")[0]
    rows = re.findall(r"^\| (`.*?) \|", histories, re.MULTILINE)

    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert told == [*queues.SERIES, *topics.SERIES]


@pytest.mark.parametrize(
    "text",
    [
        (PROMETHEUS / "alerts.yml").read_text(),
        (PROMETHEUS / "alerts_test.yml").read_text(),
        json.dumps(expressions()),
        OPERATIONS,
        PAGE,
    ],
    ids=["alerts", "tests of alerts", "dashboard", "operations", "page"],
)
def test_metric_that_is_named_exists(text: str) -> None:
    assert names_in(text) - known_names() == set()


def test_labels_that_alerts_and_dashboard_use_exist() -> None:
    labels = {label for metric in METRICS.values() for label in metric.labels}
    labels |= {"process", "route", "status", "method", "instance", "le"}
    text = (PROMETHEUS / "alerts.yml").read_text() + "\n".join(expressions())

    used = set(re.findall(r"[{,] ?(\w+)(?:=~|!~|!=|=)\"", text))
    used |= {
        each for by in re.findall(r"\b(?:by|on) \(([\w, ]+)\)", text) for each in by.split(", ")
    }

    assert used <= labels


# --- alerts ---------------------------------------------------------------------------------------


def alerts() -> list[str]:
    return re.findall(r"^      - alert: (\w+)$", (PROMETHEUS / "alerts.yml").read_text(), re.M)


def test_every_alert_is_explained() -> None:
    assert re.findall(r"^\| `(Queueber\w+)` \|", OPERATIONS, re.MULTILINE) == alerts()


def test_every_alert_is_tested_to_fire() -> None:
    text = (PROMETHEUS / "alerts_test.yml").read_text()

    fired = set(re.findall(r"alertname: (\w+)\n        exp_alerts:", text))
    assert fired == set(alerts())


@needs_promtool
def test_rules_and_configuration_are_valid() -> None:
    for kind, file in (("rules", "alerts.yml"), ("config", "prometheus.yml")):
        checked = run("check", kind, PROMETHEUS / file)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_promtool
def test_alerts_fire_when_they_should() -> None:
    tested = run("test", "rules", PROMETHEUS / "alerts_test.yml")

    assert tested.returncode == 0, tested.stdout + tested.stderr


# --- the dashboard --------------------------------------------------------------------------------


def test_panels_have_places_of_their_own_and_say_what_they_show() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or panel["description"].endswith(".")
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)


@needs_promtool
def test_queries_of_the_dashboard_can_be_parsed(tmp_path: Path) -> None:
    queries = [each for each in expressions() if not each.startswith("label_values(")]
    rules = [
        {"record": f"query:{number}", "expr": re.sub(r"\$__rate_interval", "5m", query)}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yml"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))

    checked = run("check", "rules", file)

    assert checked.returncode == 0, checked.stdout + checked.stderr
