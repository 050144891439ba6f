"""Sources of topics through the client, on a real server."""

import json
from typing import Any

import pytest

import queueber
from queueber.limits import FILTER_CHARS_MAX
from queueber.model import On
from queueber.testing import running_server


def _payloads(topic: Any) -> list[bytes]:
    return [bytes(each.payload) for each in topic.read().messages]


def test_changes_of_a_queue_are_read_from_the_topic_and_reach_a_subscriber() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_topic("events")
        topic, queue = client.topic("events"), client.queue("orders")
        queue.add([b"before"])
        where = "total >= 10"
        assert topic.add_source("orders", on="insert", where=where, payload="full")
        assert not topic.add_source("orders", on=On.INSERT, where=where, payload="full")
        assert topic.add_source("orders", on="delete", partition_by="(total)")

        with topic.subscribe(start="earliest") as subscription:
            queue.add([json.dumps({"total": each}).encode() for each in (9, 10)])
            message = next(iter(subscription))

        assert message.payload == b'{"total": 10}'
        assert message.attributes["queueber.queue"] == "orders"
        assert message.attributes["queueber.change"] == "added"
        lease = queue.poll(3)
        lease.complete([b""] * 3)
        assert [json.loads(each) for each in _payloads(topic)[1:]] == [
            {"id": item.id.hex(), "key": None} for item in lease
        ]
        assert [
            (each.queue, each.on, each.where, each.partition_by, each.payload)
            for each in topic.describe().sources
        ] == [
            ("orders", "insert", "total >= 10", "", "full"),
            ("orders", "delete", "", "(total)", "key"),
        ]
        assert client.describe_topic("events").sources == topic.describe().sources

        assert topic.drop_source("orders", on="insert") == 1
        assert topic.drop_source("orders") == 1
        assert topic.drop_source("orders") == 0
        assert topic.describe().sources == ()


def test_a_read_that_waits_is_woken_by_a_lease_that_runs_out() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_topic("events")
        topic, queue = client.topic("events"), client.queue("orders")
        queue.add([b"a"])
        topic.add_source("orders", on="update", payload="diff")
        queue.poll(lease=0.2)

        (message,) = topic.read(wait=20).messages

        assert json.loads(message.payload)["error"] == [None, "the lease ran out"]


def test_what_a_source_cannot_be_is_refused_and_the_error_says_why() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_topic("events")
        topic = client.topic("events")
        client.queue("orders").add([b"a"])
        refused: list[tuple[type[Exception], str, dict[str, Any]]] = [
            (queueber.InvalidArgument, "on: 'add' is none of insert", {"on": "add"}),
            (queueber.InvalidArgument, "payload: 'row' is none of", {"payload": "row"}),
            (queueber.InvalidArgument, "where: 'a =' ends too early", {"where": "a ="}),
            (queueber.InvalidArgument, "where: int is not a str", {"where": 1}),
            (queueber.InvalidArgument, "partition_by: character 3", {"partition_by": "a = 1"}),
            (queueber.InvalidArgument, "item.size is no field", {"where": "item.size = 1"}),
            (queueber.InvalidArgument, "the limit is 2000", {"where": "a" * 2001}),
            (queueber.NotFound, "no queue 'nobody'", {"queue": "nobody"}),
        ]
        for error, text, arguments in refused:
            given = {"queue": "orders", "on": "insert", **arguments}
            with pytest.raises(error, match=text):
                topic.add_source(given.pop("queue"), **given)
        assert FILTER_CHARS_MAX == 2000
        assert topic.describe().sources == ()

        topic.add_source("orders", on="insert")
        with pytest.raises(queueber.AlreadyExists, match="drop it first"):
            topic.add_source("orders", on="insert", payload="full")
        with pytest.raises(queueber.FailedPrecondition, match="drop its sources first"):
            topic.close()
        with pytest.raises(queueber.FailedPrecondition, match="drop its sources first"):
            client.configure_topic("events", refuses_when_full=True)
        with pytest.raises(queueber.FailedPrecondition, match=r"no 'addSource'"):
            client.topic("queue/orders/results").add_source("orders", on="insert")


def test_sources_are_there_after_a_restart() -> None:
    with running_server() as server:
        with queueber.connect(server.address) as client:
            client.create_topic("events")
            client.queue("orders").add([b"a"])
            client.topic("events").add_source("orders", on="delete", where="item.attempt = 1")
        server.kill()
        server.start()
        with queueber.connect(server.address) as client:
            client.queue("orders").poll().remove()
            assert len(_payloads(client.topic("events"))) == 1
