"""OpenAPI: it is served, it is whole, and schemathesis finds nothing against it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queueber.gateway.app import make_app
from queueber.gateway.openapi import document
from queueber.gateway.settings import GatewaySettings
from queueber.testing import running_server
from tests.support.http import GatewayProcess, running_gateway

ROOT = Path(__file__).parent.parent.parent

SERVER_FLAGS = (
    "--poll-items-max=10000",
    "--message-bytes-max=58720256",
    "--item-bytes-max=58716096",
)
"""The server's limits are the highest that there are, which is what the schemas say."""

TOPICS_CONFIG = """\
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "412", "413", "416", "429", "5xx"]
"""
"""A right request may be refused because of the state that it meets: the offset is not in the log,
the topic is closed; or because it is too large as a whole."""

EXAMPLES = int(os.environ.get("QUEUEBER_TEST_SCHEMATHESIS_EXAMPLES", "3"))
SECONDS = int(os.environ.get("QUEUEBER_TEST_SCHEMATHESIS_SECONDS", "240"))


@pytest.fixture(scope="module")
def roomy() -> Iterator[GatewayProcess]:
    with running_server(*SERVER_FLAGS) as server, running_gateway(server.address) as running:
        yield running


TOPICS = "^/v1/(topics|publish|together)"
STREAMS = "^/v1/stream/"
"""Their protocol is one of headers, which OpenAPI does not tell; see `make conformance`."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        (f"--exclude-path-regex={TOPICS}|{STREAMS}",),
        # A tail is a stream, which its own tests read.
        (f"--include-path-regex={TOPICS}", "--exclude-path-regex=/tail$"),
    ],
    ids=["queues", "topics"],
)
def test_schemathesis_finds_nothing(
    roomy: GatewayProcess, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run", f"http://{roomy.address}/openapi.json", "--checks=all", "--no-color", *flags,
        "--generation-deterministic", f"--max-examples={EXAMPLES}",
        "--phases=examples,coverage,fuzzing,stateful", "--request-timeout=30",
    ]  # fmt: skip
    if "include" in flags[0]:
        (tmp_path / "schemathesis.toml").write_text(TOPICS_CONFIG)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SCHEMATHESIS_HOOKS": "tests.gateway.schemathesis_hooks",
    }

    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        timeout=SECONDS,
    )  # fmt: skip

    told = "\n".join(line[:400] for line in ended.stdout.splitlines())  # bodies may be long
    assert ended.returncode == 0, told[-10_000:] + ended.stderr[-2000:]


def test_the_description_is_served_and_names_every_route(gateway: GatewayProcess) -> None:
    app = make_app(GatewaySettings())

    served = gateway.ask("GET", "/openapi.json")

    paths = served.json["paths"]
    assert served.json["openapi"] == "3.1.0"
    assert {(method.upper(), path) for path in paths for method in paths[path]} == {
        (route.method, route.path.replace("*", "")) for route in app.table.routes if route.is_shown
    }


def test_every_route_says_what_it_is_for_and_every_body_has_an_example() -> None:
    operations = _operations()

    assert all(operation["summary"] for operation in operations)
    bodies = [each["requestBody"]["content"] for each in operations if "requestBody" in each]
    assert all("example" in body["application/json"] for body in bodies if "*/*" not in body)
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)


def _operations() -> list[dict[str, Any]]:
    paths: Any = document(make_app(GatewaySettings()).table)["paths"]
    return [operation for methods in paths.values() for operation in methods.values()]


def test_the_page_has_nothing_from_elsewhere_and_no_script(gateway: GatewayProcess) -> None:
    page = gateway.ask("GET", "/docs")

    text = page.body.decode()
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "<script" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert "<tr id=NOT_FOUND>" in text
