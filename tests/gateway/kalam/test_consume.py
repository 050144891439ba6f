"""Requests as clients of KalamDB send them: every option, and what they promise each other."""

import base64
import threading
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import queueber
from tests.gateway.kalam.conftest import Kalam, offsets

NewTopic = Callable[..., str]

STARTS: dict[object, int] = {
    "Latest": 6, "latest": 6, "LATEST": 6, "Earliest": 0, "earliest": 0, "EARLIEST": 0,
    None: 6, "offset:2": 2, "Offset:4": 4,
}  # fmt: skip
"""The offset at which each begins in a partition of six messages."""


def start_of(name: object) -> object:
    if isinstance(name, str) and ":" in name:
        field, _, number = name.partition(":")
        return {field: int(number)}
    return name


def test_every_option_with_every_other(kalam: Kalam, new_topic: NewTopic) -> None:
    topic = new_topic(6, partitions=2)
    number = 0
    for path, field, start, group, limit, partition, wait in product(
        ("/v1/api/topics/consume", "/api/topics/consume"),
        ("topic_id", "topic"),
        STARTS,
        ("absent", None, "", "  ", "group"),
        (None, 0, 2, 100),
        (None, 1),
        (None, 0),
    ):
        if wait is None and (limit == 0 or STARTS[start] == 6 or number % 3):
            continue  # it would wait for half a minute, or was tried often enough
        number += 1
        body: dict[str, Any] = {field: topic}
        if start is not None:
            body["start"] = start_of(start)
        if group != "absent":
            body["group_id"] = f"g{number}" if group == "group" else group
        if limit is not None:
            body["limit"] = limit
        if partition is not None:
            body["partition_id"] = partition
        if wait is not None:
            body["timeout_seconds"] = wait

        answered = kalam.ask(path, body)

        begin = STARTS[start]
        expected = list(range(begin, min(6, begin + (100 if limit is None else limit))))
        assert answered.status == 200, (body, answered.body)
        found = answered.json
        assert offsets(found) == expected, body
        assert found["next_offset"] == (expected[-1] + 1 if expected else begin), body
        assert found["has_more"] == (bool(expected) and expected[-1] < 5), body
        assert all(each["partition_id"] == (partition or 0) for each in found["messages"])
        if group == "group" and expected:
            asked = {field: topic, "group_id": body["group_id"], "upto_offset": expected[-1]}
            if partition is not None:
                asked["partition_id"] = partition
            acked = kalam.ask(path.replace("consume", "ack"), asked)
            assert acked.json == {"success": True, "acknowledged_offset": expected[-1]}
        if number % 60 == 0:  # a topic has at most 100 groups
            topic = new_topic(6, partitions=2)
    assert number > 300


def test_messages_have_the_fields_that_clients_read(
    kalam: Kalam, new_topic: NewTopic, admin: queueber.Client
) -> None:
    topic = new_topic()
    routed = {"queueber.op": "update", "queueber.queue": "mail", "queueber.payload": "key"}
    admin.topic(topic).publish([queueber.NewMessage(b"\0\xff", "k", routed), b"plain"])
    (stored, _) = admin.topic(topic).read()

    first, second = kalam.consume(topic)["messages"]

    assert first == {
        "topic_id": topic, "partition_id": 0, "offset": 0,
        "payload": base64.b64encode(b"\0\xff").decode(), "key": "k",
        "timestamp_ms": stored.timestamp_ms, "user": "anonymous", "op": "Update",
        "source_table": "mail", "payload_mode": "Key",
    }  # fmt: skip
    assert (second["op"], second["source_table"], second["payload_mode"]) == ("Insert", "", "Full")
    assert second["key"] is None

    designed = kalam.ask(
        "/api/topics/consume", {"topic": topic, "start": "Earliest", "limit": 1}
    ).json["messages"][0]
    assert designed == {
        "topic_id": topic, "partition_id": 0, "offset": 0, "message_id": stored.id.hex(),
        "source_table": "mail", "op": "Update", "ts": stored.timestamp_ms, "payload_mode": "Key",
        "payload": first["payload"], "user": "anonymous",
    }  # fmt: skip


def test_a_topic_is_found_by_its_alias(kalam: Kalam, new_topic: NewTopic) -> None:
    new_topic(2, alias="app.other-name")

    assert offsets(kalam.consume("app.other-name", "g")) == [0, 1]


def test_a_group_goes_on_where_it_is_whatever_start_is_asked_for(
    kalam: Kalam, new_topic: NewTopic
) -> None:
    topic = new_topic(10, partitions=2)
    assert offsets(kalam.consume(topic, "g", start={"Offset": 3}, limit=2)) == [3, 4]

    assert offsets(kalam.consume(topic, "g", start="Earliest", limit=2)) == [5, 6]
    assert offsets(kalam.consume(topic, "g", start="Latest", limit=2)) == [7, 8]
    assert offsets(kalam.consume(topic, "h", limit=2)) == [0, 1], "groups are apart"
    begun = kalam.consume(topic, "g", start={"offset": 8}, partition_id=1)
    assert offsets(begun) == [8, 9], "it had not begun this partition"


def test_a_window_comes_back_unless_it_is_acknowledged(kalam: Kalam, new_topic: NewTopic) -> None:
    topic = new_topic(9)
    assert offsets(kalam.consume(topic, "g", limit=3)) == [0, 1, 2]
    assert offsets(kalam.consume(topic, "g", limit=3)) == [3, 4, 5]
    assert kalam.ack(topic, "g", 2) == 2

    again = kalam.consume(topic, "g", limit=9)
    assert offsets(again) == [6, 7, 8], "3 to 5 are those of the second consumer"
    assert kalam.consume(topic, "g", limit=9)["next_offset"] == 9
    time.sleep(2.1)  # a lease of the gateway of these tests
    assert offsets(kalam.consume(topic, "g", limit=2)) == [3, 4]
    assert kalam.ack(topic, "g", 8) == 8, "covers what others have"
    assert kalam.ack(topic, "g", 4) == 8, "never goes back"
    time.sleep(2.1)
    assert offsets(kalam.consume(topic, "g")) == [], "what is acknowledged does not come again"


def test_consumers_of_a_group_in_parallel_get_every_message_once(
    kalam: Kalam, new_topic: NewTopic
) -> None:
    topic = new_topic(300)
    taken: list[list[int]] = []

    def work() -> None:
        while found := offsets(kalam.consume(topic, "g", limit=7)):
            taken.append(found)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()

    assert sorted(offset for each in taken for offset in each) == list(range(300))
    assert all(each == list(range(each[0], each[0] + len(each))) for each in taken)


def test_a_long_poll_ends_with_the_first_message(
    kalam: Kalam, new_topic: NewTopic, admin: queueber.Client
) -> None:
    topic = new_topic(1)
    found: list[Any] = []

    def wait(group: str | None) -> None:
        found.append(kalam.consume(topic, group, timeout_seconds=2, start="Latest"))

    waiting = [threading.Thread(target=wait, args=(group,)) for group in ("g", None)]
    begun = time.monotonic()
    for each in waiting:
        each.start()
    time.sleep(0.3)
    admin.topic(topic).publish(b"now")
    for each in waiting:
        each.join()

    assert [offsets(each) for each in found] == [[1], [1]]
    assert time.monotonic() - begun < 1.5


def test_a_long_poll_ends_at_the_longest_wait_of_the_gateway(
    kalam: Kalam, new_topic: NewTopic
) -> None:
    topic, begun = new_topic(1), time.monotonic()

    assert kalam.consume(topic, "g", start="Latest", timeout_seconds=300)["messages"] == []

    assert 1.9 < time.monotonic() - begun < 6


def test_a_caller_that_hangs_up_takes_nothing(
    kalam: Kalam, new_topic: NewTopic, admin: queueber.Client
) -> None:
    topic = new_topic(0)
    connection = kalam.gateway.connection()
    body = b'{"topic_id": "%s", "group_id": "g", "timeout_seconds": 2}' % topic.encode()
    headers = {"Authorization": f"Bearer {kalam.token}", "content-type": "application/json"}
    connection.request("POST", "/v1/api/topics/consume", body, headers)
    time.sleep(0.3)
    connection.close()
    time.sleep(0.3)
    admin.topic(topic).publish(b"one")

    assert offsets(kalam.consume(topic, "g")) == [0]


def test_latest_offsets_are_sorted_and_told_once(kalam: Kalam, new_topic: NewTopic) -> None:
    full, empty = new_topic(3, partitions=2), new_topic()
    named = [(empty, 0), (full, 1), (full, 0), (full, 1)]

    answered = kalam.ask(
        "/v1/api/topics/latest-offsets",
        {"partitions": [{"topic_id": topic, "partition_id": at} for topic, at in named]},
    )

    assert answered.json["offsets"] == [
        {"topic_id": topic, "partition_id": at, "next_offset": end, "last_offset": last}
        for topic, at, end, last in sorted(
            [(full, 0, 3, 2), (full, 1, 3, 2), (empty, 0, 0, None)], key=lambda each: each[:2]
        )
    ]


def test_a_start_that_is_not_kept_moves_with_a_group_and_is_refused_without(
    kalam: Kalam, new_topic: NewTopic, admin: queueber.Client
) -> None:
    topic = new_topic(9)
    admin.topic(topic).trim(start=4)

    assert offsets(kalam.consume(topic, "g", start={"Offset": 1}, limit=2)) == [4, 5]
    refused = kalam.ask("/v1/api/topics/consume", {"topic_id": topic, "start": {"Offset": 1}})
    assert (refused.status, refused.json["code"]) == (400, "OFFSET_OUT_OF_RANGE")
    assert (refused.json["first"], refused.json["next"]) == (4, 9)


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "text"),
    [
        ("consume", {"topic_id": "none.such", "group_id": "g"}, 404, "NOT_FOUND", "none.such"),
        ("consume", {"group_id": "g"}, 400, "INVALID_ARGUMENT", "topic_id"),
        ("consume", {"topic_id": "a", "topic": "b"}, 400, "INVALID_ARGUMENT", "topic"),
        ("consume", {"topic_id": "a", "start": "First"}, 400, "INVALID_ARGUMENT", "start"),
        ("consume", {"topic_id": "a", "limit": -1}, 400, "INVALID_ARGUMENT", "limit"),
        ("consume", {"topic_id": "a", "partition_id": 256}, 400, "INVALID_ARGUMENT", "partition"),
        ("ack", {"topic_id": "a", "upto_offset": 1}, 400, "INVALID_ARGUMENT", "group_id"),
        ("ack", {"topic_id": "a", "group_id": "g"}, 400, "INVALID_ARGUMENT", "upto_offset"),
        ("latest-offsets", {}, 400, "INVALID_ARGUMENT", "partitions"),
        ("latest-offsets", {"partitions": [{"topic_id": "none.such"}]}, 404, "NOT_FOUND", "none"),
    ],
)
def test_errors_have_the_form_of_kalamdb(
    kalam: Kalam, path: str, body: object, status: int, code: str, text: str
) -> None:
    answered = kalam.ask(f"/v1/api/topics/{path}", body)

    assert (answered.status, answered.json["code"]) == (status, code)
    assert text in answered.json["error"]
    assert answered.headers["content-type"] == "application/json"


def test_an_offset_past_the_end_cannot_be_acknowledged(kalam: Kalam, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    kalam.consume(topic, "g", limit=1)

    refused = kalam.ask(
        "/v1/api/topics/ack", {"topic_id": topic, "group_id": "g", "upto_offset": 3}
    )

    assert (refused.status, refused.json["code"]) == (400, "OFFSET_OUT_OF_RANGE")
    assert offsets(kalam.consume(topic, "g")) == [1, 2]


def test_an_acknowledgement_creates_the_group_that_there_is_not(
    kalam: Kalam, new_topic: NewTopic, admin: queueber.Client
) -> None:
    topic = new_topic(3, partitions=2)
    asked = {"topic_id": topic, "group_id": "past", "upto_offset": 3}
    refused = kalam.ask("/v1/api/topics/ack", asked)
    assert (refused.status, refused.json["code"]) == (400, "OFFSET_OUT_OF_RANGE")
    assert admin.topic(topic).groups() == []

    assert kalam.ack(topic, "g", 1) == 1

    assert offsets(kalam.consume(topic, "g")) == [2]
    begun = kalam.consume(topic, "g", partition_id=1, start={"Offset": 1})
    assert offsets(begun) == [1, 2], "it has begun no other partition"
    assert admin.topic(topic).describe_group("g").settings.leases.lease_ms == 2000, (
        "as of a consumer"
    )


def test_messages_can_be_settled_one_by_one_beside_it(
    kalam: Kalam, new_topic: NewTopic, admin: queueber.Client
) -> None:
    topic = new_topic(4)
    window = admin.topic(topic).consume("g", limit=4)
    group = admin.topic(topic).group("g")
    assert group.remove(window.ids[1:3], lease=window.lease) == [True, True]
    group.release([window.ids[0], window.ids[3]], lease=window.lease)

    assert offsets(kalam.consume(topic, "g")) == [0, 3]
    assert kalam.ack(topic, "g", 0) == 2, "1 and 2 are done, too"
