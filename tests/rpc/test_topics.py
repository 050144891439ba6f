"""The methods of topics on the wire, with nothing of our client between."""

import asyncio
from typing import Any

from queueber.model import (
    MessageSlice,
    NewMessages,
    Publication,
    TopicConfig,
    TopicSettings,
)
from queueber.testing import running_server
from queueber.wire.messages import read_published, read_slice, write_publication
from queueber.wire.topics import read_topic_info, write_config
from tests.rpc.test_server import refusal, with_service


async def publish(topic: Any, *payloads: bytes, **more: Any) -> Any:
    request = topic.publish_request()
    messages = NewMessages(payloads, **{k: more.pop(k) for k in ("keys",) if k in more})
    write_publication(request.init("publication"), Publication("", messages, **more))
    return read_published((await request.send()).published)


async def read_of(topic: Any, request: dict[str, Any]) -> MessageSlice:
    return read_slice((await topic.read(req=request)).resp)


def payloads_of(found: Any) -> list[bytes]:
    payloads = []
    for piece in found.packed:
        ends = list(memoryview(piece.ends).cast("I"))
        payloads += [piece.payloads[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return payloads


def test_a_topic_is_created_published_to_read_described_and_deleted() -> None:
    async def scenario(service: Any) -> None:
        config = TopicConfig(TopicSettings(retention_messages=100), 2, "text/plain", "alias")
        request = service.createTopic_request()
        request.name = "orders/eu"
        write_config(request.init("config"), config)
        assert (await request.send()).created
        topic = service.topic("alias", True).topic

        published = await publish(topic, b"a", b"b", partition=1)
        read = {"partition": 1, "from": {"start": "earliest"}}
        found = read_slice((await topic.read(req=read)).resp)

        assert list(published.partitions) == [1, 1]
        assert list(published.offsets) == [0, 1]
        assert list(published.sequences) == [1, 2]
        assert payloads_of(found) == [b"a", b"b"]
        assert (found.partition, found.next_offset, found.end_offset) == (1, 2, 2)
        (piece,) = found.packed
        assert (piece.id, piece.at_ms, piece.sequence) == (
            published.ids[0],
            published.at_ms,
            1,
        )
        info = read_topic_info((await topic.describe()).topic)
        assert (info.name, info.config) == ("orders/eu", config)
        assert [(p.first_offset, p.next_offset) for p in info.partitions] == [(0, 0), (0, 2)]
        where = await topic.find(published.ids[1], 0)
        assert (where.found, where.partition, where.offset) == (True, 1, 1)
        assert list((await service.listTopics("orders", "", 0)).names) == ["orders/eu"]
        assert (await service.deleteTopic("orders/eu")).deleted
        assert not (await service.deleteTopic("orders/eu")).deleted
        assert list((await service.listTopics("", "", 0)).names) == []
        gone = await refusal(topic.read(req=read))
        assert gone.startswith("NOT_FOUND: topic 'orders/eu' was deleted")

    with running_server() as server:
        with_service(server, scenario)


def test_a_read_waits_for_the_first_message() -> None:
    async def scenario(service: Any) -> None:
        topic = service.topic("t").topic
        await publish(topic, b"before")
        read = {"from": {"start": "latest"}, "timeoutMs": 5000}
        waiting = asyncio.ensure_future(read_of(topic, read))
        await asyncio.sleep(0.05)
        assert not waiting.done()

        await publish(topic, b"after")

        assert payloads_of(await waiting) == [b"after"]

    with running_server() as server:
        with_service(server, scenario)


def test_publish_to_many_topics_is_all_or_nothing() -> None:
    async def scenario(service: Any) -> None:
        async def publish_many(**second: Any) -> Any:
            request = service.publish_request()
            listed = request.init("publications", 2)
            write_publication(listed[0], Publication("a", NewMessages([b"1", b"2"])))
            write_publication(listed[1], Publication("b", NewMessages([b"3"]), **second))
            return (await request.send()).published

        first = await publish_many()
        refused = await refusal(publish_many(expected_offset=7))
        again = await publish_many(expected_offset=1)

        assert [list(read_published(each).offsets) for each in first] == [[0, 1], [0]]
        assert refused.startswith("FAILED_PRECONDITION: expected_offset is 7")
        assert refused.endswith("[tail=1]")
        assert [list(read_published(each).offsets) for each in again] == [[2, 3], [1]]

    with running_server() as server:
        with_service(server, scenario)
