"""The sources of topics over HTTP."""

import queueber
from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess


def test_sources_are_added_listed_and_dropped(
    gateway: GatewayProcess, server: ServerProcess, topic: str
) -> None:
    with queueber.connect(server.address) as client:
        client.queue("sourced").add([b"a"])
    gateway.ask("PUT", topic, {})
    source = {"queue": "sourced", "on": "insert", "where": "total >= 1", "payload": "full"}

    added = [gateway.ask("POST", f"{topic}/sources", source) for _ in range(2)]
    other = gateway.ask("POST", f"{topic}/sources", source | {"payload": "diff"})
    listed = gateway.ask("GET", f"{topic}/sources")
    closed = gateway.ask("POST", f"{topic}/close")
    dropped = [gateway.ask("DELETE", f"{topic}/sources/sourced") for _ in range(2)]

    assert [(each.status, each.json) for each in added] == [
        (201, {"added": True}),
        (200, {"added": False}),
    ]
    assert (other.status, other.code) == (409, "ALREADY_EXISTS")
    assert listed.json == {"sources": [source | {"partition_by": ""}]}
    assert (closed.status, closed.code) == (412, "FAILED_PRECONDITION")
    assert [each.json for each in dropped] == [{"dropped": 1}, {"dropped": 0}]


def test_what_a_source_cannot_be_is_refused(gateway: GatewayProcess, topic: str) -> None:
    gateway.ask("PUT", topic, {})
    source = {"queue": "default", "on": "insert"}

    bad = gateway.ask("POST", f"{topic}/sources", source | {"where": "a ="})
    kind = gateway.ask("POST", f"{topic}/sources", source | {"on": "add"})
    missing = gateway.ask("POST", f"{topic}/sources", source | {"queue": "nobody"})

    assert (bad.status, bad.code) == (400, "INVALID_ARGUMENT")
    assert "ends too early" in bad.json["detail"]
    assert (kind.status, missing.status) == (400, 404)
    assert gateway.ask("GET", f"{topic}/sources").json == {"sources": []}
