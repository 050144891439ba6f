"""Topics themselves over HTTP."""

import queueber
from queueber.testing import ServerProcess
from tests.support.http import GatewayProcess, to_base64

DEFAULTS = {
    "partitions": 1,
    "retention_ms": 0,
    "retention_bytes": 0,
    "retention_messages": 0,
    "deletes_acknowledged": False,
    "refuses_when_full": False,
    "keeps_last_per_key": False,
    "tombstone_ms": 86_400_000,
    "ttl_ms": 0,
    "expires_at_ms": 0,
    "dedup_window_ms": 120_000,
    "content_type": "",
    "alias": "",
}


def test_a_topic_is_created_once_shown_changed_and_deleted(
    gateway: GatewayProcess, topic: str
) -> None:
    name = topic.rpartition("/")[2].replace("%2F", "/")
    settings = DEFAULTS | {"partitions": 2, "retention_ms": 60_000, "content_type": "text/plain"}

    answers = [gateway.ask("PUT", topic, settings) for _ in range(2)]
    other = gateway.ask("PUT", topic, {"partitions": 3})
    changed = gateway.ask("PATCH", topic, {"partitions": 3, "retention_ms": 0})
    shown = gateway.ask("GET", topic)
    deleted = [gateway.ask("DELETE", topic) for _ in range(2)]

    assert [(each.status, each.json) for each in answers] == [
        (201, {"created": True}),
        (200, {"created": False}),
    ]
    assert (other.status, other.code) == (409, "ALREADY_EXISTS")
    assert changed.json == shown.json
    created_at_ms = shown.json["created_at_ms"]
    assert created_at_ms > 0
    empty = {"first_offset": 0, "next_offset": 0, "bytes": 0, "oldest_ms": 0, "last_ms": 0}
    assert shown.json == {
        "name": name,
        "settings": settings | {"partitions": 3, "retention_ms": 0},
        "created_at_ms": created_at_ms,
        "partitions": [empty, empty, empty],
        "is_closed": False,
        "is_deleted": False,
        "forks": 0,
        "parent": None,
        "groups": [],
        "expires_at_ms": 0,
    }
    assert [each.status for each in deleted] == [204, 404]
    assert gateway.ask("GET", topic).code == "NOT_FOUND"


def test_names_are_listed_page_by_page(gateway: GatewayProcess) -> None:
    for name in ("list%2Fa", "list%2Fb", "list%2Fc"):
        gateway.ask("PUT", f"/v1/topics/{name}", {})

    first = gateway.ask("GET", "/v1/topics?prefix=list/&limit=2")
    second = gateway.ask("GET", "/v1/topics?prefix=list/&limit=2&after=list/b")

    assert first.json == {"topics": ["list/a", "list/b"], "more": True}
    assert second.json == {"topics": ["list/c"], "more": False}


def test_a_topic_is_trimmed_closed_and_forked(gateway: GatewayProcess, topic: str) -> None:
    messages = [{"payload": to_base64(b"%d" % number)} for number in range(5)]
    gateway.ask("POST", f"{topic}/messages", {"messages": messages})
    fork = {"name": f"{topic.rpartition('/')[2]}-fork".replace("%2F", "/"), "before": {"offset": 2}}

    trimmed = gateway.ask("POST", f"{topic}/trim", {"to": 1})
    forked = gateway.ask("POST", f"{topic}/fork", fork | {"retention_messages": 9})
    refused = gateway.ask("POST", f"{topic}/trim", {"to": "last:1"})
    closed = [gateway.ask("POST", f"{topic}/close") for _ in range(2)]
    late = gateway.ask("POST", f"{topic}/messages", {"messages": messages})

    assert trimmed.json == {"deleted": 1}
    assert (forked.status, forked.json) == (201, {"name": fork["name"]})
    shown = gateway.ask("GET", forked.headers["location"]).json
    assert shown["parent"] == topic.rpartition("/")[2].replace("%2F", "/")
    assert shown["partitions"][0]["next_offset"] == 2
    assert shown["settings"]["retention_messages"] == 9
    assert (refused.status, refused.json["forks"]) == (412, 1)
    assert [each.status for each in closed] == [204, 204]
    assert (late.status, late.code, late.json["tail"]) == (412, "FAILED_PRECONDITION", 5)


def test_a_topic_that_somebody_else_created_again_is_found(
    server: ServerProcess, gateway: GatewayProcess, topic: str
) -> None:
    name = topic.rpartition("/")[2].replace("%2F", "/")
    with queueber.connect(server.address) as client:
        for _ in range(3):
            client.create_topic(name)
            client.topic(name).create_group("g", kind="shared")
            client.topic(name).publish(b"x")

            read = gateway.ask("GET", f"{topic}/messages")
            polled = gateway.ask("POST", f"{topic}/groups/g/poll", {"wait_ms": 0})

            assert len(read.json["messages"]) == len(polled.json["messages"]) == 1
            client.delete_topic(name)


def test_nothing_but_a_publish_creates_a_topic(gateway: GatewayProcess, topic: str) -> None:
    asked = [
        ("GET", "", None),
        ("PATCH", "", {}),
        ("GET", "/messages", None),
        ("GET", "/messages?wait_ms=1", None),
        ("GET", "/tail", None),
        ("GET", "/find?sequence=0", None),
        ("POST", "/trim", {"to": 0}),
        ("POST", "/close", None),
        ("POST", "/fork", {"name": "never"}),
        ("GET", "/groups", None),
        ("PUT", "/groups/g", {}),
        ("GET", "/groups/g", None),
        ("DELETE", "/groups/g", None),
        ("POST", "/groups/g/reset", {"to": 0}),
        ("POST", "/groups/g/pause", {}),
        ("POST", "/groups/g/resume", None),
        ("POST", "/groups/g/poll", {"wait_ms": 0}),
        ("POST", "/groups/g/ack", {"offset": 0}),
        ("GET", "/groups/g/dead", None),
        ("POST", "/groups/g/redrive", {}),
    ]

    answers = [gateway.ask(method, topic + path, body) for method, path, body in asked]

    assert [(each.status, each.code) for each in answers] == [(404, "NOT_FOUND")] * len(asked)
    assert gateway.ask("GET", "/v1/topics?prefix=never").json["topics"] == []
