"""Reading over HTTP: where it begins and ends, waiting, what was missed, and finding."""

import contextlib
import threading
import time

import pytest

from tests.support.http import GatewayProcess, to_base64


def publish(gateway: GatewayProcess, topic: str, *payloads: bytes) -> dict[str, list[int]]:
    messages = [{"payload": to_base64(each)} for each in payloads]
    answer = gateway.ask("POST", f"{topic}/messages", {"messages": messages})
    assert answer.status == 201
    return dict(answer.json)


@pytest.mark.parametrize(
    ("query", "offsets", "next_offset"),
    [
        ("", [0, 1, 2, 3, 4], 5),
        ("from=earliest", [0, 1, 2, 3, 4], 5),
        ("from=latest", [], 5),
        ("from=3", [3, 4], 5),
        ("from=5", [], 5),
        ("from=last:2", [3, 4], 5),
        ("from=last:0", [], 5),
        ("from=last:999999999999999999", [0, 1, 2, 3, 4], 5),
        ("from=time:0", [0, 1, 2, 3, 4], 5),
        ("from=time:99999999999999", [], 5),
        ("from=group:g", [2, 3, 4], 5),
        ("from=9&moves=true", [], 5),
        ("messages_max=2", [0, 1], 2),
        ("bytes_max=1", [0], 1),
        ("from=1&end_offset=3", [1, 2], 3),
        ("end_time_ms=1", [], 5),
    ],
)
def test_a_read_begins_and_ends_where_it_is_told(
    gateway: GatewayProcess, topic: str, query: str, offsets: list[int], next_offset: int
) -> None:
    publish(gateway, topic, *(b"%d" % number for number in range(5)))
    gateway.ask("PUT", f"{topic}/groups/g", {})
    gateway.ask("POST", f"{topic}/groups/g/ack", {"offset": 2})

    page = gateway.ask("GET", f"{topic}/messages?{query}").json

    assert [each["offset"] for each in page["messages"]] == offsets
    if query != "end_time_ms=1":
        assert page["next_offset"] == next_offset


def test_an_offset_that_is_not_there_names_both_ends_unless_it_moves(
    gateway: GatewayProcess, topic: str
) -> None:
    publish(gateway, topic, b"a", b"b", b"c")
    gateway.ask("POST", f"{topic}/trim", {"to": 2})

    refused = gateway.ask("GET", f"{topic}/messages?from=0")
    moved = gateway.ask("GET", f"{topic}/messages?from=0&moves=true")

    assert (refused.status, refused.code) == (416, "OUT_OF_RANGE")
    assert (refused.json["first"], refused.json["next"]) == (2, 3)
    assert [each["offset"] for each in moved.json["messages"]] == [2]
    assert (moved.json["missed"], moved.json["first_kept"]) == (2, 2)


def test_a_read_waits_for_the_first_message(gateway: GatewayProcess, topic: str) -> None:
    publish(gateway, topic, b"old")
    later = threading.Timer(0.3, publish, (gateway, topic, b"new"))
    later.start()

    begun = time.monotonic()
    page = gateway.ask("GET", f"{topic}/messages?from=latest&wait_ms=30000").json
    later.join()

    assert [each["payload"] for each in page["messages"]] == [to_base64(b"new")]
    assert 0.2 < time.monotonic() - begun < 20


def test_a_reader_that_hangs_up_costs_nothing_more(gateway: GatewayProcess, topic: str) -> None:
    publish(gateway, topic, b"old")

    for _ in range(50):
        with contextlib.closing(gateway.connection()) as connection:
            connection.request("GET", f"{topic}/messages?from=latest&wait_ms=300000")

    assert gateway.ask("GET", f"{topic}/messages?from=latest&wait_ms=10").status == 200
    publish(gateway, topic, b"new")


def test_messages_are_found_by_id_and_by_sequence(gateway: GatewayProcess, topic: str) -> None:
    published = publish(gateway, topic, b"a", b"b")
    place = {"partition": 0, "offset": 1}

    by_id = gateway.ask("GET", f"{topic}/find?id={published['ids'][1]}")
    by_sequence = gateway.ask("GET", f"{topic}/find?sequence={published['sequences'][1]}")
    nothing = gateway.ask("GET", f"{topic}/find?id={'0' * 32}")
    unclear = [
        gateway.ask("GET", f"{topic}/find{query}")
        for query in ("", f"?id={'0' * 32}&sequence=1", "?id=xyz", "?sequence=-1")
    ]

    assert (by_id.json, by_sequence.json) == (place, place)
    assert (nothing.status, nothing.code) == (404, "NOT_FOUND")
    assert [(each.status, each.code) for each in unclear] == [(400, "INVALID_ARGUMENT")] * 4


def test_results_of_a_queue_are_a_topic(gateway: GatewayProcess, queue: str) -> None:
    gateway.ask("POST", f"{queue}/items", {"items": [{"contents": "aGk=", "key": "k"}]})
    polled = gateway.ask("POST", f"{queue}/poll", {}).json
    [item] = polled["items"]
    completed = {"lease": polled["lease"], "items": [{"id": item["id"], "result": "Ym8="}]}
    gateway.ask("POST", f"{queue}/complete", completed)
    results = f"/v1/topics/queue%2F{queue.rpartition('/')[2]}%2Fresults"

    [message] = gateway.ask("GET", f"{results}/messages").json["messages"]
    tail = gateway.ask("GET", f"{results}/tail?from=0&messages_max=1")
    gateway.ask("PUT", f"{results}/groups/gallery", {})
    acknowledged = gateway.ask("POST", f"{results}/groups/gallery/ack", {"offset": 1})
    refused = gateway.ask("POST", f"{results}/messages", {"messages": [{"payload": "aGk="}]})

    assert (message["payload"], message["key"]) == ("Ym8=", "k")
    assert message["attributes"] == {"queueber.id": item["id"], "queueber.attempt": "1"}
    assert acknowledged.json == {"offset": 1, "done": None}
    assert gateway.ask("GET", f"{results}/groups/gallery").json["lag"] == 0
    assert b"id: 0:0\n" in tail.body
    assert (refused.status, refused.code) == (400, "INVALID_ARGUMENT")
