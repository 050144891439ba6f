"""Pages of other origins: none may use streams unless the operator names theirs."""

from collections.abc import Iterator

import pytest

from queueber.testing import ServerProcess
from tests.gateway.streams.conftest import Stream
from tests.support.http import GatewayProcess, running_gateway

APP, OTHER = "https://app.example", "https://other.example"


@pytest.fixture(scope="module")
def named(server: ServerProcess) -> Iterator[GatewayProcess]:
    origins = f"{APP}, https://APP2.example:8443"
    with running_gateway(server.address, "--allowed-origins", origins) as running:
        yield running


@pytest.fixture(scope="module")
def any_origin(server: ServerProcess) -> Iterator[GatewayProcess]:
    with running_gateway(server.address, "--allowed-origins", "*") as running:
        yield running


def test_nobody_is_let_in_unless_named(stream: Stream) -> None:
    stream.put(b"a")

    refused = stream.get(origin=APP)
    own = stream.get(origin=f"http://{stream.gateway.address}")

    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    assert (own.status, own.body) == (200, b"a")
    for each in (refused, own):
        assert each.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in each.headers
    assert stream.post(b"b", origin=APP).status == 403
    assert stream.get().body == b"a"


def test_a_named_origin_reads_and_writes(named: GatewayProcess) -> None:
    stream = Stream(named, "pages/named")

    created = stream.put(b"a", origin=APP)
    read = stream.get(origin="https://app2.example:8443")
    missing = Stream(named, "pages/missing").get(origin=APP)
    refused = stream.get(origin=OTHER)

    assert (created.status, read.status, missing.status, refused.status) == (201, 200, 404, 403)
    assert created.headers["access-control-allow-origin"] == APP
    assert missing.headers["access-control-allow-origin"] == APP
    assert "stream-next-offset" in read.headers["access-control-expose-headers"]
    assert "access-control-allow-origin" not in refused.headers
    for each in (created, read, missing, refused):
        assert each.headers["vary"] == "origin"
        assert each.headers["cross-origin-resource-policy"] == "cross-origin"


def test_any_origin_may_be_named(any_origin: GatewayProcess) -> None:
    stream = Stream(any_origin, "pages/any")

    created = stream.put(b"a", origin=OTHER)

    assert created.status == 201
    assert created.headers["access-control-allow-origin"] == "*"
    assert "vary" not in created.headers


@pytest.mark.parametrize("path", ["/v1/queues", "/v1/topics", "/v1", "/"])
def test_a_named_origin_may_use_nothing_else(any_origin: GatewayProcess, path: str) -> None:
    refused = any_origin.ask("GET", path, headers={"origin": OTHER})

    assert (refused.status, refused.code) == (403, "PERMISSION_DENIED")
    assert "access-control-allow-origin" not in refused.headers


def test_everybody_may_ask_what_a_page_may_send(
    gateway: GatewayProcess, named: GatewayProcess
) -> None:
    asked = {"origin": APP, "access-control-request-method": "PUT"}

    nobody = gateway.ask("OPTIONS", "/v1/stream/a", headers=asked)
    allowed = named.ask("OPTIONS", "/v1/stream/a", headers=asked)

    assert (nobody.status, nobody.body) == (204, b"")
    assert "access-control-allow-origin" not in nobody.headers
    assert allowed.headers["access-control-allow-origin"] == APP
    for each in (nobody, allowed):
        taken = each.headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "if-none-match", "producer-id", "stream-seq"} <= set(taken)
        assert "PUT" in each.headers["access-control-allow-methods"]


def test_a_page_that_reaches_loopback_by_a_name_needs_a_credential(
    any_origin: GatewayProcess,
) -> None:
    stream = Stream(any_origin, "pages/any")

    assert stream.get(origin=OTHER, host="rebound.example").status == 401


@pytest.mark.parametrize("path", ["/v1/streams", "/v1/stream/a/_details"])
def test_a_page_with_a_credential_may_ask_first_everywhere(
    named: GatewayProcess, path: str
) -> None:
    asked = {"origin": APP, "access-control-request-headers": "authorization"}

    allowed = named.ask("OPTIONS", path, headers=asked)

    assert (allowed.status, allowed.headers["access-control-allow-origin"]) == (204, APP)
    assert "authorization" in allowed.headers["access-control-allow-headers"]
