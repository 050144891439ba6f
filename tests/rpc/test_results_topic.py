"""The results of a queue read as a topic, on the wire."""

from typing import Any

from queueber.db.records.blocks import unpack_attributes
from queueber.testing import running_server
from queueber.wire.topics import read_group_info, read_topic_info
from tests.rpc.test_server import poll_request, refusal, with_service
from tests.rpc.test_subscriptions import Consumer, subscribe
from tests.rpc.test_topics import payloads_of, read_of


async def complete(queue: Any, *results: bytes) -> list[bytes]:
    items = [
        {
            "contents": b"x",
            "key": f"k{result.decode()}",
            "attributes": [{"name": "a", "value": "b"}],
        }
        for result in results
    ]
    await queue.add(req={"items": items, "batch": "b"})
    polled = (await queue.poll(req=poll_request(columns=True))).resp
    ids = list(polled.ids)
    await queue.complete(req={"ids": ids, "leases": [polled.lease], "results": list(results)})
    return ids


def test_results_are_read_described_and_subscribed_to() -> None:
    async def scenario(service: Any) -> None:
        queue = service.queue("work").queue
        ids = await complete(queue, b"r0", b"r1")
        topic, consumer = service.topic("queue/work/results", True).topic, Consumer()

        found = await read_of(topic, {"from": {"start": "offset", "value": 1}})
        held = await subscribe(topic, consumer, group="g", consumer="c", credits=3)

        assert payloads_of(found) == [b"r1"]
        (piece,) = found.packed
        assert (piece.offset, piece.id, list(piece.keys)) == (1, ids[1], [b"kr1"])
        assert unpack_attributes(piece.attributes[0]) == {
            "a": "b",
            "queueber.id": ids[1].hex(),
            "queueber.attempt": "1",
            "queueber.batch": "b",
        }
        assert await consumer.until_got(2) == [b"r0", b"r1"]
        assert (await held.ack(0, 1)).offset == 1
        await complete(queue, b"r2")
        assert await consumer.until_got(3) == [b"r0", b"r1", b"r2"]
        info = read_group_info((await topic.describeGroup("g")).group)
        assert (list(info.cursors), info.lag, list(info.consumers)) == ([1], 2, ["c"])
        about = read_topic_info((await topic.describe()).topic)
        assert (about.name, list(about.groups)) == ("queue/work/results", ["g"])
        assert [(p.first_offset, p.next_offset) for p in about.partitions] == [(0, 3)]
        again = await subscribe(topic, Consumer(), group="g", consumer="d")
        await consumer.until(lambda: consumer.errors)
        told = "ABORTED: consumer 'd' has taken over partition 0 of group 'g'"
        assert consumer.errors == [told]
        assert (await refusal(held.ack(0, 2))).startswith(told)
        assert (await again.ack(0, 1)).offset == 1

    with running_server() as server:
        with_service(server, scenario)


def test_what_a_topic_of_results_has_not_is_refused() -> None:
    async def scenario(service: Any) -> None:
        topic = service.topic("queue/default/results").topic
        missing = service.topic("queue/no/results").topic.describe()
        assert (await refusal(missing)).startswith("NOT_FOUND: there is no queue 'no'")
        for call in (topic.publish({}), topic.close(), topic.trim(0, {}), topic.fork({})):
            told = await refusal(call)
            assert told.startswith("FAILED_PRECONDITION: 'queue/default/results' has the results")
        past = {"from": {"start": "offset", "value": 1}}
        assert (await refusal(topic.read(req=past))).endswith("[first=0 next=0]")
        told = await refusal(topic.createGroup("g", {"kind": "shared"}, {}))
        assert told.startswith("FAILED_PRECONDITION: kind: 'shared'")
        told = await refusal(service.createTopic("queue/default/results", {}))
        assert told.startswith("INVALID_ARGUMENT: name: 'queue/default/results' is reserved")

    with running_server() as server:
        with_service(server, scenario)
