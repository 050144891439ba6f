"""Groups over HTTP: ordered, shared, and into a queue."""

import contextlib
import socket
import threading
import time

import pytest

from tests.support.http import GatewayProcess, to_base64

SHARED = {
    "kind": "shared",
    "in_flight_max": 10,
    "lease_ms": 30_000,
    "attempts_max": 2,
    "isolation": True,
    "backoff_ms": [0],
    "backoff_base_ms": 1000,
    "backoff_factor": 2.0,
    "backoff_cap_ms": 3_600_000,
    "backoff_jitter": 0.1,
}


def publish(gateway: GatewayProcess, topic: str, *payloads: bytes) -> None:
    messages = [{"payload": to_base64(each), "key": "k"} for each in payloads]
    assert gateway.ask("POST", f"{topic}/messages", {"messages": messages}).status == 201


def at(*offsets: int) -> list[dict[str, int]]:
    return [{"partition": 0, "offset": each} for each in offsets]


def test_an_ordered_group_goes_on_behind_what_it_acknowledged(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"a", b"b", b"c")
    group = f"{topic}/groups/b%20%C3%A9"

    created = [gateway.ask("PUT", group, {"from": 1}) for _ in range(2)]
    began = gateway.ask("GET", group).json
    acknowledged = gateway.ask("POST", f"{group}/ack", {"offset": 2, "partition": 0})
    back = gateway.ask("POST", f"{group}/ack", {"offset": 1})
    shown = gateway.ask("GET", group).json
    reset = gateway.ask("POST", f"{group}/reset", {"to": "last:3"})

    assert [each.status for each in created] == [201, 200]
    assert (began["cursors"], began["lag"]) == ([1], 2)
    assert acknowledged.json == back.json == {"offset": 2, "done": None}
    assert 0 <= shown.pop("lag_ms") < 60_000
    assert shown.pop("created_at_ms") > 0
    assert shown == {
        "name": "b é",
        "settings": {"kind": "ordered"},
        "paused_until_ms": 0,
        "cursors": [2],
        "lag": 1,
        "leased": 0,
        "dead": 0,
        "consumers": [],
    }
    assert reset.status == 204
    assert [each["cursors"] for each in gateway.ask("GET", f"{topic}/groups").json["groups"]] == [
        [0]
    ]
    assert [gateway.ask("DELETE", group).status for _ in range(2)] == [204, 404]


def test_messages_of_a_shared_group_are_leased_and_settled(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"a", b"b", b"c", b"d")
    group = f"{topic}/groups/g"
    gateway.ask("PUT", group, {"settings": SHARED})

    polled = gateway.ask("POST", f"{group}/poll", {"messages_max": 4, "wait_ms": 0}).json
    held = {"lease": polled["lease"]}
    acknowledged = gateway.ask("POST", f"{group}/ack", held | {"messages": at(0, 9)})
    failed = gateway.ask("POST", f"{group}/fail", held | {"messages": at(1), "error": "no"})
    released = gateway.ask("POST", f"{group}/release", held | {"messages": at(2, 1)})
    extended = gateway.ask("POST", f"{group}/extend", held | {"lease_ms": 60_000})
    lost = gateway.ask("POST", f"{group}/extend", {"lease": "0" * 32, "lease_ms": 1000})

    assert polled["messages"][1] == {
        "partition": 0,
        "offset": 1,
        "payload": to_base64(b"b"),
        "attempt": 1,
        "key": "k",
        "attributes": {},
    }
    assert acknowledged.json == {"offset": None, "done": [True, False]}
    assert failed.json == {"outcomes": ["retried"]}
    assert released.json == {"done": [True, False]}
    assert (extended.json, lost.json) == ({"extended": True}, {"extended": False})
    shown = gateway.ask("GET", group).json
    assert shown["settings"] == SHARED
    assert (shown["lag"], shown["leased"], shown["dead"]) == (3, 1, 0)


def test_dead_letters_are_listed_and_tried_again(gateway: GatewayProcess, topic: str) -> None:
    publish(gateway, topic, b"a", b"b")
    group = f"{topic}/groups/g"
    gateway.ask("PUT", group, {"settings": SHARED | {"attempts_max": 1}})
    lease = gateway.ask("POST", f"{group}/poll", {"messages_max": 2, "wait_ms": 0}).json["lease"]
    fail = {"lease": lease, "messages": at(0, 1), "error": "cannot be read"}
    assert gateway.ask("POST", f"{group}/fail", fail).json == {"outcomes": ["died", "died"]}

    first = gateway.ask("GET", f"{group}/dead?limit=1").json
    second = gateway.ask("GET", f"{group}/dead?after={first['next']}").json
    one = gateway.ask("POST", f"{group}/redrive", {"messages": at(1)})
    rest = gateway.ask("POST", f"{group}/redrive")

    [dead] = first["messages"]
    [died_at_ms] = dead.pop("attempt_times_ms")
    assert dead.pop("died_at_ms") == died_at_ms
    assert dead == {
        "partition": 0,
        "offset": 0,
        "payload": to_base64(b"a"),
        "key": "k",
        "attributes": {},
        "attempts": 1,
        "reason": "failed once (attempts_max)",
        "last_error": "cannot be read",
    }
    assert [each["offset"] for each in second["messages"]] == [1]
    assert (one.json, rest.json) == ({"messages": 1}, {"messages": 1})
    assert gateway.ask("GET", group).json["dead"] == 0


def test_a_raw_poll_answers_with_the_bytes_of_one_message(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"\x00a", b"b")
    group, accept = f"{topic}/groups/g", {"Accept": "application/octet-stream"}
    gateway.ask("PUT", group, {"settings": {"kind": "shared"}})
    wanted = {"messages_max": 5, "wait_ms": 0}

    polled, other, nothing = (
        gateway.ask("POST", f"{group}/poll", wanted, headers=accept) for _ in range(3)
    )

    assert (polled.status, polled.body, other.body) == (200, b"\x00a", b"b")
    told = {name[9:]: value for name, value in polled.headers.items() if "queueber" in name}
    lease = told.pop("lease")
    assert told == {"partition": "0", "offset": "0", "attempt": "1", "key": "k"}
    assert nothing.status == 204
    ack = gateway.ask("POST", f"{group}/ack", {"lease": lease, "messages": at(0)})
    assert ack.json["done"] == [True]


def test_a_group_of_kind_queue_adds_to_the_queue(
    gateway: GatewayProcess, topic: str, queue: str
) -> None:
    gateway.ask("PUT", queue, {})
    settings = {"kind": "queue", "queue": queue.rpartition("/")[2]}
    gateway.ask("PUT", f"{topic}", {})

    created = gateway.ask("PUT", f"{topic}/groups/bridge", {"settings": settings})
    publish(gateway, topic, b"sale")
    [item] = gateway.ask("POST", f"{queue}/poll", {"wait_ms": 10_000}).json["items"]

    assert created.status == 201
    assert item["contents"] == to_base64(b"sale")
    assert gateway.ask("GET", f"{topic}/groups/bridge").json["settings"] == settings


def test_a_paused_group_delivers_nothing_until_it_is_resumed(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"a")
    group = f"{topic}/groups/g"
    gateway.ask("PUT", group, {"settings": {"kind": "shared"}})

    paused = gateway.ask("POST", f"{group}/pause", {"pause_ms": 600_000})
    nothing = gateway.ask("POST", f"{group}/poll", {"wait_ms": 50})
    until_ms = gateway.ask("GET", group).json["paused_until_ms"]
    resumed = gateway.ask("POST", f"{group}/resume")
    polled = gateway.ask("POST", f"{group}/poll", {"wait_ms": 10_000})

    assert (paused.status, resumed.status) == (204, 204)
    assert nothing.json == {"lease": None, "messages": []}
    assert until_ms > time.time() * 1000
    assert len(polled.json["messages"]) == 1


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_poll_whose_caller_hangs_up_takes_nothing(
    gateway: GatewayProcess, topic: str, how: str
) -> None:
    gateway.ask("PUT", topic, {})
    group = f"{topic}/groups/g"
    gateway.ask("PUT", group, {"settings": {"kind": "shared"}})
    for _ in range(20):
        connection = socket.create_connection(gateway.host_port, timeout=30)
        with contextlib.closing(connection):
            connection.sendall(f"POST {group}/poll HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            time.sleep(0.01)
            if how == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    time.sleep(0.2)
    publish(gateway, topic, b"a")
    polled = gateway.ask("POST", f"{group}/poll", {"wait_ms": 10_000}).json

    [message] = polled["messages"]
    assert (message["offset"], message["attempt"]) == (0, 1)


def test_a_poll_waits_for_the_first_message(gateway: GatewayProcess, topic: str) -> None:
    gateway.ask("PUT", topic, {})
    group = f"{topic}/groups/g"
    gateway.ask("PUT", group, {"settings": {"kind": "shared"}})
    later = threading.Timer(0.3, publish, (gateway, topic, b"new"))
    later.start()

    polled = gateway.ask("POST", f"{group}/poll").json
    later.join()

    assert [each["payload"] for each in polled["messages"]] == [to_base64(b"new")]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "body: offset: it is missing; give offset, or lease and messages"),
        ({"lease": "0" * 32}, "body: offset: it is missing; give offset, or lease and messages"),
        ({"offset": 0, "lease": "0" * 32}, "body: lease: an offset was given, too"),
        (
            {"lease": "0" * 32, "messages": at(0), "partition": 0},
            "body: partition: it goes with an offset",
        ),
    ],
)
def test_an_acknowledgement_is_of_one_kind(
    gateway: GatewayProcess, topic: str, body: object, detail: str
) -> None:
    refused = gateway.ask("POST", f"{topic}/groups/g/ack", body)

    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
    assert refused.json["detail"].startswith(detail)


def test_an_ordered_group_leases_nothing(gateway: GatewayProcess, topic: str) -> None:
    publish(gateway, topic, b"a")
    gateway.ask("PUT", f"{topic}/groups/g", {})

    refused = gateway.ask("POST", f"{topic}/groups/g/poll", {"wait_ms": 0})

    assert (refused.status, refused.code) == (412, "FAILED_PRECONDITION")
