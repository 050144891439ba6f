"""Every field of a request at its limits and past them: what is past is refused, and why."""

from typing import Any

import pytest

from tests.support.http import GatewayProcess, to_base64

COUNT_MAX = (1 << 63) - 1
DAY_MS = 86_400_000
LEASE = "0" * 32
MESSAGE = {"payload": ""}
PLACE = {"partition": 0, "offset": 0}
PRODUCER = {"id": "p", "epoch": 0, "sequence": 1}


def attributes_of(size: int) -> dict[str, str]:
    """One attribute whose name and value have so many bytes."""
    return {"a": "x" * (size - 1)}


def published(**fields: object) -> dict[str, Any]:
    return {"messages": [MESSAGE | fields]}


SETTINGS = {
    "partitions": (1, 256),
    "retention_ms": (0, 3660 * DAY_MS),
    "retention_bytes": (0, COUNT_MAX),
    "retention_messages": (0, COUNT_MAX),
    "tombstone_ms": (0, 3660 * DAY_MS),
    "ttl_ms": (0, 3660 * DAY_MS),
    "expires_at_ms": (0, (1 << 48) - 1),
    "dedup_window_ms": (0, 30 * DAY_MS),
}
SHARED = {
    "in_flight_max": (0, COUNT_MAX),
    "lease_ms": (1, 7 * DAY_MS),
    "attempts_max": (0, 1000),
    "backoff_base_ms": (0, 366 * DAY_MS),
    "backoff_cap_ms": (0, 366 * DAY_MS),
    "backoff_factor": (1, 100),
    "backoff_jitter": (0, 1),
}

TAKEN = [
    *[
        ("PUT", "-{at}", {name: value})
        for name, ends in SETTINGS.items()
        for value in ends
        if name != "expires_at_ms" or value
    ],
    ("PUT", "-{at}", {"content_type": "x" * 255}),
    *[
        ("PUT", "/groups/{at}", {"settings": {"kind": "shared", name: value}})
        for name, ends in SHARED.items()
        for value in ends
    ],
    ("PUT", "/groups/{at}", {"settings": {"kind": "shared", "backoff_ms": [0] * 100}}),
    ("PUT", f"/groups/{'g' * 255}", {}),
    ("POST", "/messages", {"messages": [MESSAGE] * 10_000}),
    ("POST", "/messages", published(payload=to_base64(bytes(4 << 20)))),
    ("POST", "/messages", published(key="k" * 512)),
    ("POST", "/messages", published(key="é" * 256)),
    ("POST", "/messages", published(dedup_id="d" * 256)),
    ("POST", "/messages", published(attributes={str(each): "" for each in range(32)})),
    ("POST", "/messages", published(attributes=attributes_of(8192))),
    ("POST", "/messages", {**published(), "producer": PRODUCER | {"id": "p" * 256}}),
    ("GET", "/messages?messages_max=1&bytes_max=1&end_offset=1&end_time_ms=0&wait_ms=0", None),
    ("GET", f"/messages?messages_max=10000&bytes_max={COUNT_MAX}", None),
    ("GET", f"/messages?end_offset={COUNT_MAX}&end_time_ms={(1 << 48) - 1}", None),
    ("POST", "/groups/shared/poll", {"messages_max": 1, "lease_ms": 1, "wait_ms": 0}),
    ("POST", "/groups/shared/poll", {"messages_max": 1000, "lease_ms": 7 * DAY_MS, "wait_ms": 0}),
    ("POST", "/groups/shared/pause", {"pause_ms": 1}),
    ("POST", "/groups/shared/pause", {"pause_ms": 366 * DAY_MS}),
    ("POST", "/groups/shared/ack", {"lease": LEASE, "messages": [PLACE] * 10_000}),
    ("POST", "/groups/shared/extend", {"lease": LEASE, "lease_ms": 7 * DAY_MS}),
    ("GET", "/groups/shared/dead?limit=100", None),
]  # fmt: skip

REFUSED = [
    *[
        ("PUT", "-x", {name: value}, name)
        for name, (least, most) in SETTINGS.items()
        for value in (least - 1, most + 1, "1", None, 1.5, True)
    ],
    *[("PUT", "-x", {name: 1}, name) for name in ("deletes_acknowledged", "keeps_last_per_key")],
    ("PUT", "-x", {"content_type": "x" * 256}, "content_type"),
    ("PUT", "-x", {"alias": "a b"}, "alias"),
    ("PUT", "-x", {"alias": "a" * 256}, "alias"),
    ("PUT", "-x", {"no_such": 1}, "no_such"),
    ("PUT", "-x", {"ttl_ms": 1, "expires_at_ms": 1 << 47}, "expires_at"),
    ("PATCH", "", {"partitions": 257}, "partitions"),
    *[
        ("PUT", "/groups/x", {"settings": {"kind": "shared", name: value}}, name)
        for name, (least, most) in SHARED.items()
        for value in (least - 1, most + 1, "1", None)
    ],
    ("PUT", "/groups/x", {"settings": {"kind": "shared", "backoff_ms": [0] * 101}}, "backoff_ms"),
    ("PUT", "/groups/x", {"settings": {"kind": "other"}}, "settings.kind"),
    ("PUT", "/groups/x", {"settings": {"kind": "queue"}}, "queue"),
    ("PUT", "/groups/x", {"settings": {"kind": "queue", "queue": "a/b"}}, "settings.queue"),
    ("PUT", "/groups/x", {"settings": {"kind": "ordered", "lease_ms": 1}}, "lease_ms"),
    ("PUT", "/groups/x", {"from": "sometime"}, "from"),
    ("PUT", "/groups/x", {"from": -1}, "from"),
    ("PUT", f"/groups/{'g' * 256}", {}, "group"),
    ("PUT", f"/groups/{'%C3%A9' * 128}", {}, "group"),
    ("POST", "/messages", {}, "messages"),
    ("POST", "/messages", {"messages": []}, "messages"),
    ("POST", "/messages", {"messages": [MESSAGE] * 10_001}, "messages"),
    ("POST", "/messages", {"messages": [{}]}, "payload"),
    ("POST", "/messages", published(payload="?"), "messages[0].payload"),
    ("POST", "/messages", published(key=""), "messages[0].key"),
    ("POST", "/messages", published(key="k" * 513), "messages[0].key"),
    ("POST", "/messages", published(key="é" * 257), "key"),
    ("POST", "/messages", published(dedup_id="d" * 257), "messages[0].dedup_id"),
    ("POST", "/messages", published(attributes={str(each): "" for each in range(33)}),
     "messages[0].attributes"),
    ("POST", "/messages", published(attributes=attributes_of(8193)), "attributes"),
    ("POST", "/messages", published(attributes={"a": 1}), "messages[0].attributes"),
    ("POST", "/messages", {**published(), "partition": 256}, "partition"),
    ("POST", "/messages", {**published(), "partition": -1}, "partition"),
    ("POST", "/messages", {**published(), "expected_offset": -1}, "expected_offset"),
    ("POST", "/messages", {**published(), "close": 1}, "close"),
    ("POST", "/messages", {**published(), "producer": PRODUCER | {"id": ""}},
     "producer.id"),
    ("POST", "/messages", {**published(), "producer": PRODUCER | {"id": "p" * 257}},
     "producer.id"),
    ("POST", "/messages", {**published(), "producer": PRODUCER | {"epoch": -1}},
     "producer.epoch"),
    ("POST", "/messages", {**published(), "producer": PRODUCER | {"sequence": 0}},
     "producer.sequence"),
    *[
        ("GET", f"/messages?{name}={value}", None, name)
        for name, values in {
            "partition": (-1, 256, "x"),
            "from": (-1, "sometime", "time:", "last:x", "group:", "1" * 19, "group:" + "g" * 256),
            "messages_max": (0, 10_001),
            "bytes_max": (0, COUNT_MAX + 1),
            "end_offset": (0, COUNT_MAX + 1),
            "end_time_ms": (-1, 1 << 48),
            "wait_ms": (-1, 300_001),
            "moves": ("maybe",),
            "other": (1,),
        }.items()
        for value in values
    ],
    ("POST", "/groups/shared/poll", {"messages_max": 0}, "messages_max"),
    ("POST", "/groups/shared/poll", {"messages_max": 10_001}, "messages_max"),
    ("POST", "/groups/shared/poll", {"lease_ms": 0}, "lease_ms"),
    ("POST", "/groups/shared/poll", {"lease_ms": 7 * DAY_MS + 1}, "lease_ms"),
    ("POST", "/groups/shared/poll", {"wait_ms": 300_001}, "wait_ms"),
    ("POST", "/groups/shared/pause", {"pause_ms": 0}, "pause_ms"),
    ("POST", "/groups/shared/pause", {"pause_ms": 366 * DAY_MS + 1}, "pause_ms"),
    ("POST", "/groups/shared/ack", {"lease": LEASE, "messages": []}, "messages"),
    ("POST", "/groups/shared/ack", {"lease": LEASE, "messages": [PLACE] * 10_001}, "messages"),
    ("POST", "/groups/shared/ack", {"lease": "0", "messages": [PLACE]}, "lease"),
    ("POST", "/groups/shared/ack", {"offset": -1}, "offset"),
    ("POST", "/groups/shared/fail", {"lease": LEASE, "messages": [PLACE], "delay_ms": -1},
     "delay_ms"),
    ("POST", "/groups/shared/fail", {"lease": LEASE, "messages": [{"partition": 256, "offset": 0}]},
     "messages[0].partition"),
    ("POST", "/groups/shared/extend", {"lease": LEASE, "lease_ms": 0}, "lease_ms"),
    ("GET", "/groups/shared/dead?limit=101", None, "limit"),
    ("GET", "/groups/shared/dead?after=0", None, "after"),
    ("POST", "/trim", {}, "to"),
    ("POST", "/trim", {"to": "group:g"}, "to"),
    ("POST", "/groups/shared/reset", {"to": COUNT_MAX + 1}, "to"),
    ("POST", "/fork", {"name": "a b"}, "name"),
    ("POST", "/fork", {"name": "x", "before": {"partition": 0}}, "offset"),
]  # fmt: skip


@pytest.fixture(scope="module")
def prepared(gateway: GatewayProcess) -> str:
    topic = "/v1/topics/limits"
    gateway.ask("PUT", topic, {})
    gateway.ask("PUT", f"{topic}/groups/shared", {"settings": {"kind": "shared"}})
    return topic


def test_what_is_at_a_limit_is_taken(gateway: GatewayProcess, prepared: str) -> None:
    wrong = []
    for at, (method, path, body) in enumerate(TAKEN):
        answer = gateway.ask(method, prepared + path.replace("{at}", str(at)), body)
        if answer.status not in (200, 201, 204):
            wrong.append((method, path, str(body)[:200], answer.status, answer.body))
        if path == "/groups/{at}":
            gateway.ask("DELETE", f"{prepared}/groups/{at}")

    assert wrong == []


def test_what_is_past_a_limit_is_refused_with_its_name_and_changes_nothing(
    gateway: GatewayProcess, prepared: str
) -> None:
    def state() -> object:
        shown = gateway.ask("GET", prepared).json
        return shown, gateway.ask("GET", f"{prepared}/groups").json["groups"][-1]["name"]

    before, wrong = state(), []
    for method, path, body, field in REFUSED:
        answer = gateway.ask(method, prepared + path, body)
        if answer.status != 400 or field not in answer.json["detail"]:
            wrong.append((method, path, str(body)[:200], answer.status, answer.body))

    assert wrong == []
    assert state() == before
    assert gateway.ask("GET", f"{prepared}-x").status == 404


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"Queueber-Key": "%FF"}, "headers: key: "),
        ({"Queueber-Key": "k" * 513}, "key: "),
        ({"Queueber-Attributes": "a"}, "headers: attributes: "),
        ({"Queueber-Attributes": "a=%FF"}, "headers: attributes: "),
        ({"Queueber-Attributes": "a=1&a=2"}, "headers: attributes: a name is given twice"),
        ({"Queueber-Partition": "256"}, "headers: partition: "),
        ({"Queueber-Epoch": "1"}, "headers: producer: it is missing"),
        ({"Queueber-Producer": "p"}, "headers: sequence: it is missing"),
        ({"Queueber-Producer": "p", "Queueber-Sequence": "0"}, "headers: sequence: "),
        ({"Queueber-Expected-Offset": "-1"}, "headers: expected_offset: "),
        ({"Queueber-Close": "perhaps"}, "headers: close: "),
        ({"Queueber-Other": "1"}, "headers: "),
    ],
)
def test_a_wrong_header_of_raw_bytes_is_refused(
    gateway: GatewayProcess, topic: str, headers: dict[str, str], field: str
) -> None:
    refused = gateway.ask("POST", f"{topic}/messages", raw=b"x", headers=headers)

    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
    assert refused.json["detail"].startswith(field)
    assert gateway.ask("GET", topic).status == 404


@pytest.mark.parametrize(
    "body",
    [
        {"publications": []},
        {"publications": [{"topic": "x", "messages": [MESSAGE]}] * 1001},
        {"publications": [{"topic": "a b", "messages": [MESSAGE]}]},
        {"publications": [{"messages": [MESSAGE]}]},
        {"publications": [{"topic": "x", "messages": [MESSAGE] * 6000}] * 2},
    ],
)
def test_a_wrong_publication_to_many_is_refused(gateway: GatewayProcess, body: object) -> None:
    refused = gateway.ask("POST", "/v1/publish", body)

    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
    assert gateway.ask("GET", "/v1/topics/x").status == 404


def test_a_payload_past_the_servers_limit_is_too_large(gateway: GatewayProcess, topic: str) -> None:
    refused = gateway.ask("POST", f"{topic}/messages", raw=bytes((4 << 20) + 1))

    assert (refused.status, refused.code) == (413, "RESOURCE_EXHAUSTED")
    assert "4194304" in refused.json["detail"]
