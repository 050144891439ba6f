"""Subscriptions on the wire: the server calls the consumer as long as there are credits."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from queueber.model import Delivery, GroupKind, GroupSettings, QueueSettings, Subscribing
from queueber.schema import wire
from queueber.testing import ServerProcess, running_server
from queueber.wire.subscriptions import write_subscribing
from queueber.wire.topics import read_group_info
from tests.rpc.test_server import open_service, refusal, with_service
from tests.rpc.test_topics import payloads_of, publish
from tests.support.subscriber_codecs import read_delivery

WAIT_SECONDS = 30.0
"""Longer than anything takes, also on a busy machine."""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """Each test has a topic of its own."""
    with running_server() as started:
        yield started


class Consumer(wire.Consumer.Server):  # type: ignore[misc]  # capnp is untyped
    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.heartbeats: list[int] = []
        self.errors: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._changed = asyncio.Event()

    async def deliver_context(self, context: Any) -> None:
        self.deliveries.append(read_delivery(context.params.delivery))
        self._changed.set()
        await self.may_answer.wait()

    async def heartbeat_context(self, context: Any) -> None:
        self.heartbeats.append(context.params.sequence)
        self._changed.set()

    async def ended_context(self, context: Any) -> None:
        self.errors.append(context.params.error)
        self._changed.set()

    @property
    def payloads(self) -> list[bytes]:
        return [each for delivery in self.deliveries for each in payloads_of(delivery.slice)]

    async def until(self, is_so: Any) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def until_got(self, count: int) -> list[bytes]:
        await self.until(lambda: len(self.payloads) >= count)
        return self.payloads


async def subscribe(topic: Any, receiver: Consumer, **asked: Any) -> Any:
    request = topic.subscribe_request()
    write_subscribing(request.init("req"), Subscribing(**asked))
    request.consumer = receiver
    return (await request.send()).subscription


def test_a_subscription_without_a_group_delivers_what_is_granted_and_no_more(
    server: ServerProcess,
) -> None:
    async def scenario(service: Any) -> None:
        topic, consumer = service.topic("t1").topic, Consumer()
        await publish(topic, b"1", b"2", b"3")
        subscription = await subscribe(topic, consumer)
        await asyncio.sleep(0.05)
        assert consumer.payloads == []

        await subscription.grant(2)
        assert await consumer.until_got(2) == [b"1", b"2"]
        await asyncio.sleep(0.05)
        assert consumer.payloads == [b"1", b"2"]
        await subscription.grant(2)
        await publish(topic, b"4", b"5")

        assert await consumer.until_got(4) == [b"1", b"2", b"3", b"4"]
        told = await refusal(subscription.ack(0, 1))
        assert told.startswith("FAILED_PRECONDITION: the subscription has no ordered group")
        await topic.close()
        await subscription.grant(5)
        await consumer.until(lambda: consumer.errors)
        assert (consumer.payloads[4:], consumer.errors) == ([b"5"], [""])

    with_service(server, scenario)


def test_a_second_consumer_of_an_ordered_group_takes_over_at_the_cursor(
    server: ServerProcess,
) -> None:
    async def scenario(service: Any) -> None:
        topic, first, second = service.topic("t2").topic, Consumer(), Consumer()
        await publish(topic, b"1", b"2", b"3")
        old = await subscribe(topic, first, group="g", consumer="first", credits=10)
        await first.until_got(3)
        assert (await old.ack(0, 1)).offset == 1
        info = (await topic.describeGroup("g")).group
        assert (list(info.consumers), list(info.cursors), info.lag) == (["first"], [1], 2)

        new = await subscribe(topic, second, group="g", consumer="second", credits=10)

        await first.until(lambda: first.errors)
        told = "ABORTED: consumer 'second' has taken over partition 0 of group 'g'"
        assert first.errors == [told]
        assert await second.until_got(2) == [b"2", b"3"]
        assert (await refusal(old.ack(0, 3))).startswith(told)
        assert (await refusal(old.grant(3))).startswith(told)
        assert (await new.ack(0, 3)).offset == 3
        await publish(topic, b"4")
        assert await second.until_got(3) == [b"2", b"3", b"4"]
        # The newcomer goes on: it is not aborted with the one before it.
        assert (first.payloads, second.errors) == ([b"1", b"2", b"3"], [])
        assert list((await topic.describeGroup("g")).group.consumers) == ["second"]

    with_service(server, scenario)


def test_a_subscription_ends_with_its_connection_and_with_its_topic(server: ServerProcess) -> None:
    async def scenario(service: Any) -> None:
        topic, gone, there = service.topic("t3").topic, Consumer(), Consumer()
        stream, other = await open_service(server.address)
        lost = await subscribe(other.topic("t3").topic, gone, group="g", consumer="gone")
        held = await subscribe(topic, there, credits=1)
        assert list((await topic.describeGroup("g")).group.consumers) == ["gone"]

        stream.close()
        async with asyncio.timeout(WAIT_SECONDS):
            while len((await topic.describeGroup("g")).group.consumers):
                pass
        await service.deleteTopic("t3")

        await there.until(lambda: there.errors)
        assert there.errors[0].startswith("NOT_FOUND: topic 't3' was deleted")
        assert (gone.errors, there.payloads) == ([], [])
        del lost, held

    with_service(server, scenario)


def test_a_slow_consumer_gets_few_deliveries_ahead_and_heartbeats_when_there_is_nothing() -> None:
    """A heartbeat has the sequence of the server, which is this test's alone."""

    async def scenario(service: Any) -> None:
        topic, slow, idle = service.topic("t").topic, Consumer(), Consumer()
        slow.may_answer.clear()
        for each in range(10):
            await publish(topic, b"%d" % each)
        held = await subscribe(topic, slow, credits=1000, batch_messages_max=1)
        other = await subscribe(service.topic("empty").topic, idle, heartbeat_ms=100)

        await idle.until(lambda: len(idle.heartbeats) == 2)

        assert idle.heartbeats == [10, 10]
        assert slow.payloads == [b"0", b"1", b"2", b"3"]
        slow.may_answer.set()
        assert await slow.until_got(10) == [b"%d" % each for each in range(10)]
        del held, other

    with running_server() as alone:
        with_service(alone, scenario)


def test_letting_go_of_a_subscription_ends_it(server: ServerProcess) -> None:
    async def scenario(service: Any) -> None:
        topic, consumer = service.topic("t5").topic, Consumer()
        held = await subscribe(topic, consumer, group="g", credits=5)
        await held.close()
        assert len((await topic.describeGroup("g")).group.consumers) == 0
        again = await subscribe(topic, consumer, group="g", credits=5)
        del held, again
        async with asyncio.timeout(WAIT_SECONDS):
            while len((await topic.describeGroup("g")).group.consumers):
                pass
        await publish(topic, b"1")
        await asyncio.sleep(0.05)
        assert (consumer.payloads, consumer.errors) == ([], [])

    with_service(server, scenario)


def test_consumers_of_a_shared_group_share_its_messages_and_settle_each(
    server: ServerProcess,
) -> None:
    async def scenario(service: Any) -> None:
        topic, one, two = service.topic("t6").topic, Consumer(), Consumer()
        await publish(topic, b"0", b"1", b"2", b"3")
        settings = GroupSettings(GroupKind.SHARED, leases=QueueSettings(backoff_ms=(0,)))
        first = await subscribe(topic, one, group="g", consumer="one", settings=settings, credits=2)
        assert await one.until_got(2) == [b"0", b"1"]
        second = await subscribe(topic, two, group="g", consumer="two", credits=10)
        assert await two.until_got(2) == [b"2", b"3"]
        info = read_group_info((await topic.describeGroup("g")).group)
        assert (info.leased, info.lag, list(info.consumers)) == (4, 4, ["one", "two"])

        lease = one.deliveries[0].lease
        settle = {"lease": lease, "partitions": [0], "offsets": [0, 7], "outcome": "acknowledged"}
        assert list((await first.settle(req=settle)).resp.settled) == [True, False]
        failed = {**settle, "offsets": [1], "outcome": "failed", "error": "it broke"}
        assert list((await first.settle(req=failed)).resp.settled) == [True]
        assert await two.until_got(3) == [b"2", b"3", b"1"]
        assert list(two.deliveries[-1].attempts) == [2]

        # What a consumer has not settled when it closes goes to another.
        await second.close()
        await first.grant(3)
        assert sorted((await one.until_got(5))[2:]) == [b"1", b"2", b"3"]
        for delivery in one.deliveries[1:]:
            offsets = [p.offset + n for p in delivery.slice.packed for n in range(p.count)]
            done = {"lease": delivery.lease, "partitions": [0], "offsets": offsets}
            assert all((await first.settle(req=done)).resp.settled)
        info = read_group_info((await topic.describeGroup("g")).group)
        assert (info.leased, info.lag, list(info.cursors)) == (0, 0, [4])
        await topic.close()
        await one.until(lambda: one.errors)
        assert (one.errors, two.errors) == ([""], [])

    with_service(server, scenario)


def test_messages_of_a_consumer_that_is_lost_go_to_another(server: ServerProcess) -> None:
    async def scenario(service: Any) -> None:
        topic, gone, there = service.topic("t7").topic, Consumer(), Consumer()
        await publish(topic, b"0")
        stream, other = await open_service(server.address)
        settings = GroupSettings(GroupKind.SHARED, leases=QueueSettings(backoff_ms=(0,)))
        elsewhere = other.topic("t7").topic
        lost = await subscribe(elsewhere, gone, group="g", settings=settings, credits=2)
        await gone.until_got(1)
        held = await subscribe(topic, there, group="g", credits=10)

        stream.close()

        assert await there.until_got(1) == [b"0"]
        # An attempt counts: the message may be what has killed its consumer.
        assert list(there.deliveries[0].attempts) == [2]
        del lost, held

    with_service(server, scenario)


def test_a_subscription_that_nobody_holds_gives_its_messages_back(server: ServerProcess) -> None:
    async def scenario(service: Any) -> None:
        topic, careless, other = service.topic("t8").topic, Consumer(), Consumer()
        await publish(topic, b"0")
        settings = GroupSettings(GroupKind.SHARED)
        held = await subscribe(topic, careless, group="g", settings=settings, credits=2)
        await careless.until_got(1)
        again = await subscribe(topic, other, group="g", credits=10)

        del held

        assert await other.until_got(1) == [b"0"]
        assert list(other.deliveries[0].attempts) == []
        del again

    with_service(server, scenario)


def test_a_shared_group_is_a_queue_that_takes_no_items(server: ServerProcess) -> None:
    async def scenario(service: Any) -> None:
        topic = service.topic("t9").topic
        settings = {"kind": "shared", "inFlightMax": 2}
        assert (await topic.createGroup("g", settings, {"start": "latest"})).created
        await publish(topic, b"0", b"1", b"2")
        queue = topic.group("g").queue

        polled = (await queue.poll(req={"numItems": 9, "columns": True})).resp

        assert list(polled.contents) == [b"0", b"1"]
        assert list(polled.ids) == [bytes(8) + n.to_bytes(8) for n in range(2)]
        nothing = (await queue.poll(req={"numItems": 9, "noWait": True})).resp
        assert len(nothing.items) == 0
        waiting = asyncio.ensure_future(poll_of(queue, numItems=9, timeoutMs=5000))
        done = {"ids": list(polled.ids), "leases": [polled.lease]}
        assert list((await queue.removeMany(req=done)).resp.removed) == [True, True]
        assert await waiting == [b"2"]
        told = await refusal(queue.add(req={"contents": [b"x"]}))
        assert told.startswith("FAILED_PRECONDITION: 't9/g' is a group of a topic")
        told = await refusal(queue.openSnapshot())
        assert told.startswith("FAILED_PRECONDITION: 't9/g' is a group of a topic, which has no")
        stats = (await queue.stats()).stats
        assert (stats.inProgress, stats.ready) == (1, 0)
        refused = asyncio.ensure_future(refusal(poll_of(queue, timeoutMs=5000)))
        await asyncio.sleep(0.05)
        assert (await topic.deleteGroup("g")).deleted
        assert (await refused).startswith("NOT_FOUND: queue 't9/g' was deleted")

    with_service(server, scenario)


async def poll_of(queue: Any, **request: Any) -> list[bytes]:
    return list((await queue.poll(req={"columns": True, **request})).resp.contents)
