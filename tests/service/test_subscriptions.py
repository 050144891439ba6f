"""Subscriptions: credits, what a slow consumer holds, takeovers, pauses and resets."""

import asyncio
from collections.abc import Awaitable
from itertools import pairwise
from typing import Any

import pytest

from queueber.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)
from queueber.limits import (
    CREDITS_MAX,
    DELIVERIES_MAX,
    DELIVERY_BYTES,
    DELIVERY_BYTES_MAX,
    MINUTE_MS,
    SUBSCRIPTIONS_OF_CONNECTION_MAX,
)
from queueber.model import (
    Delivery,
    GroupKind,
    GroupSettings,
    Outcome,
    Position,
    QueueSettings,
    Settlement,
    Start,
    Subscribing,
    TopicConfig,
)
from queueber.service.lease_feed import LeaseFeed
from queueber.service.subscription import Subscription
from queueber.service.topic_handle import TopicHandle
from tests.service.test_topics import open_topic, payloads_of, publish, read
from tests.support.service_rig import HeldSync, ServiceRig, limits, on_service, run_on_service
from tests.support.virtual_loop import turns

SHARED = GroupSettings(GroupKind.SHARED, leases=QueueSettings(backoff_ms=(0,)))


class Consumer:
    """A consumer that answers at once, unless it is told to be slow."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.heartbeats: list[int] = []
        self.errors: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.failure: Exception | None = None

    def deliver(self, delivery: Delivery) -> Awaitable[object]:
        self.deliveries.append(delivery)
        return self._answer()

    async def _answer(self) -> None:
        await self.may_answer.wait()
        if self.failure is not None:
            raise self.failure

    def heartbeat(self, time_ms: int, sequence: int) -> Awaitable[object]:
        self.heartbeats.append(time_ms)
        return self._answer()

    def ended(self, error: str) -> Awaitable[object]:
        self.errors.append(error)
        return self._answer()

    @property
    def payloads(self) -> list[bytes]:
        return [each for delivery in self.deliveries for each in payloads_of(delivery.slice)]


async def subscribe(
    rig: ServiceRig, topic: TopicHandle, receiver: Consumer, **asked: Any
) -> Subscription:
    made = await rig.service.subscriptions.subscribe(topic, Subscribing(**asked), receiver)
    await turns()
    return made


# --- credits --------------------------------------------------------------------------------------


@on_service()
async def test_grants_add_up_and_have_a_limit(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await publish(rig, topic, *[b"%d" % n for n in range(10)])
    made = await subscribe(rig, topic, consumer)
    assert consumer.deliveries == []

    made.grant(2)
    made.grant(3)
    await asyncio.sleep(1)

    assert consumer.payloads == [b"0", b"1", b"2", b"3", b"4"]
    made.grant(CREDITS_MAX)
    with pytest.raises(InvalidArgument, match=f"credits: .* the limit is {CREDITS_MAX}"):
        made.grant(6)
    await asyncio.sleep(1)
    assert (len(consumer.payloads), made.credits) == (10, CREDITS_MAX - 5)


@on_service()
async def test_a_slow_consumer_holds_a_few_deliveries_and_calls_go_on(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    consumer.may_answer.clear()
    for _ in range(60):
        await publish(rig, topic, *[bytes(60_000)] * 1)
    made = await subscribe(rig, topic, consumer, credits=1000)
    await asyncio.sleep(1)

    held = sum(len(p.payloads) for d in consumer.deliveries for p in d.slice.packed)
    assert len(consumer.deliveries) == DELIVERIES_MAX
    assert held <= DELIVERY_BYTES_MAX + DELIVERY_BYTES
    assert made.credits == 1000 - len(consumer.payloads)
    assert (await read(rig, topic)).count > 0
    consumer.may_answer.set()
    await asyncio.sleep(1)
    assert len(consumer.payloads) == 60


@on_service()
async def test_one_delivery_a_turn_leaves_turns_for_calls(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await publish(rig, topic, *[b"x"] * 1000)
    seen: list[int] = []
    made = await subscribe(rig, topic, consumer, batch_messages_max=10)
    made.grant(1000)
    for _ in range(10):
        await asyncio.sleep(0)
        seen.append(len(consumer.deliveries))

    assert all(later - earlier <= 1 for earlier, later in pairwise(seen))
    await asyncio.sleep(1)
    assert len(consumer.payloads) == 1000


def test_messages_are_delivered_once_they_are_durable() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        topic, consumer = await open_topic(rig), Consumer()
        sync.let()
        await subscribe(rig, topic, consumer, credits=10)
        publishing = rig.begin(publish(rig, topic, b"a"))
        await sync.wait_begun(3)
        await turns()
        assert consumer.deliveries == []

        sync.let_all()
        await publishing
        await turns()

        assert consumer.payloads == [b"a"]

    run_on_service(body, sync=sync)


def test_a_consumer_is_told_once_how_many_messages_it_missed() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        for _ in range(5):
            sync.let()
        topic, consumer = await open_topic(rig), Consumer()
        await publish(rig, topic, b"0", b"1", b"2")
        await rig.service.topics.trim(topic, 0, Position(Start.OFFSET, 1))
        moved = Position(Start.OFFSET, 0, moves=True)
        made = await subscribe(rig, topic, consumer, position=moved)
        await rig.service.topics.trim(topic, 0, Position(Start.LATEST))
        publishing = rig.begin(publish(rig, topic, b"3"))
        await sync.wait_begun(6)
        made.grant(10)
        await turns()
        assert consumer.deliveries == []

        sync.let_all()
        await publishing
        await publish(rig, topic, b"4")
        await turns()

        told = [(payloads_of(each.slice), each.missed) for each in consumer.deliveries]
        assert told == [([b"3"], 3), ([b"4"], 0)]

    run_on_service(body, sync=sync)


@on_service()
async def test_heartbeats_come_when_nothing_else_does(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    began_ms = rig.clock.now_ms()
    await subscribe(rig, topic, consumer, credits=10, heartbeat_ms=1000)
    await asyncio.sleep(2.5)
    assert [at_ms - began_ms for at_ms in consumer.heartbeats] == [1000, 2000]

    await publish(rig, topic, b"x")
    await asyncio.sleep(1.2)

    assert [at_ms - began_ms for at_ms in consumer.heartbeats] == [1000, 2000, 3500]


# --- ends -----------------------------------------------------------------------------------------


@on_service()
async def test_a_consumer_that_fails_gets_nothing_more(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    consumer.failure = RuntimeError("its disk is full")
    made = await subscribe(rig, topic, consumer, group="g", credits=10)
    await publish(rig, topic, b"a")
    await turns()

    await publish(rig, topic, b"b")
    await turns()

    assert (consumer.payloads, made.is_over) == ([b"a"], True)
    assert rig.service.groups.describe_group(topic, "g").consumers == []
    with pytest.raises(Aborted, match="the subscription is over"):
        made.grant(1)


@on_service()
async def test_a_closed_topic_ends_its_subscriptions_after_the_last_message(
    rig: ServiceRig,
) -> None:
    topic, slow, quick = await open_topic(rig), Consumer(), Consumer()
    await publish(rig, topic, b"a", b"b")
    made = await subscribe(rig, topic, slow, credits=1)
    await subscribe(rig, topic, quick, credits=9)

    await publish(rig, topic, b"c", closes=True)
    await turns()

    assert (quick.payloads, quick.errors) == ([b"a", b"b", b"c"], [""])
    assert (slow.payloads, slow.errors) == ([b"a"], [])
    made.grant(2)
    await turns()
    assert (slow.payloads, slow.errors) == ([b"a", b"b", b"c"], [""])


@on_service()
async def test_deleted_topics_and_groups_end_subscriptions(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    consumers = {name: Consumer() for name in ("", "ordered", "shared", "kept")}
    for name, consumer in consumers.items():
        settings = SHARED if name == "shared" else GroupSettings()
        await subscribe(rig, topic, consumer, group=name, settings=settings, credits=1)

    assert await rig.service.groups.delete_group(topic, "ordered")
    assert await rig.service.groups.delete_group(topic, "shared")
    await turns()

    told = {name: consumer.errors for name, consumer in consumers.items()}
    assert told == {
        "": [],
        "ordered": ["NOT_FOUND: group 'ordered' of topic 't' was deleted"],
        "shared": ["NOT_FOUND: group 'shared' of topic 't' was deleted"],
        "kept": [],
    }
    await rig.service.topics.delete_topic("t", rig.session)
    await turns()
    gone = "NOT_FOUND: topic 't' was deleted, or has expired; ask for it again"
    assert (consumers[""].errors, consumers["kept"].errors) == ([gone], [gone])


@on_service()
async def test_a_server_that_stops_tells_its_consumers(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await subscribe(rig, topic, consumer, credits=1)

    await rig.service.drain()
    await turns()

    told = "UNAVAILABLE: the server is shutting down; subscribe again in a moment"
    assert consumer.errors == [told]


@on_service()
async def test_a_connection_has_a_limit_of_subscriptions(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    made = [
        await rig.service.subscriptions.subscribe(topic, Subscribing(), Consumer())
        for _ in range(SUBSCRIPTIONS_OF_CONNECTION_MAX)
    ]
    with pytest.raises(ResourceExhausted, match="this connection has 1000 subscriptions"):
        await subscribe(rig, topic, Consumer())
    made[0].drop()
    await subscribe(rig, topic, Consumer())
    rig.service.subscriptions.connection_ended(rig.session)
    await turns()
    assert all(each.is_over for each in made)


@on_service(limits(waiting_polls_max=1))
async def test_the_server_has_a_limit_of_subscriptions(rig: ServiceRig) -> None:
    topic = await open_topic(rig)
    await subscribe(rig, topic, Consumer())
    with pytest.raises(ResourceExhausted, match="there are 1 subscriptions, the limit"):
        await subscribe(rig, topic, Consumer())


# --- ordered groups -------------------------------------------------------------------------------


@on_service()
async def test_a_newcomer_also_takes_over_a_partition_that_was_added_since(
    rig: ServiceRig,
) -> None:
    topic, first, second = await open_topic(rig), Consumer(), Consumer()
    await subscribe(rig, topic, first, group="g", credits=10)
    await rig.service.topics.configure_topic("t", TopicConfig(partitions=2), rig.session)

    await subscribe(rig, topic, second, group="g", consumer="two", credits=10, partitions=[1])
    await publish(rig, topic, b"a", partition=1)
    await turns()

    assert (first.payloads, second.payloads) == ([], [b"a"])
    assert first.errors == ["ABORTED: consumer 'two' has taken over partition 1 of group 'g'"]


def test_a_subscribe_that_is_given_up_leaves_no_consumer() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        sync.let()
        topic = await open_topic(rig)
        asked = Subscribing(group="g", consumer="gone", credits=10)
        begun = rig.begin(rig.service.subscriptions.subscribe(topic, asked, Consumer()))
        await sync.wait_begun(2)
        assert rig.service.groups.describe_group(topic, "g").consumers == ["gone"]

        begun.cancel()
        await turns()

        assert rig.service.groups.describe_group(topic, "g").consumers == []
        sync.let_all()

    run_on_service(body, sync=sync)


@on_service()
async def test_a_newcomer_takes_over_and_the_one_before_it_hears_aborted_only(
    rig: ServiceRig,
) -> None:
    topic, first, second, third = await open_topic(rig), Consumer(), Consumer(), Consumer()
    await publish(rig, topic, b"0", b"1", b"2")
    old = await subscribe(rig, topic, first, group="g", consumer="one", credits=10)
    assert await rig.service.subscriptions.ack(old, 0, 2) == 2
    new = await subscribe(rig, topic, second, group="g", consumer="two", credits=10)
    await publish(rig, topic, b"3")
    await turns()

    assert (first.payloads, len(first.errors)) == ([b"0", b"1", b"2"], 1)
    assert (second.payloads, second.errors) == ([b"2", b"3"], [])
    with pytest.raises(Aborted, match="consumer 'two' has taken over partition 0 of group 'g'"):
        await rig.service.subscriptions.ack(old, 0, 3)
    assert await rig.service.subscriptions.ack(new, 0, 4) == 4
    # Cursors never go back.
    assert await rig.service.subscriptions.ack(new, 0, 3) == 4
    old.drop()  # the one before lets go of it only now, which changes nothing
    last = await subscribe(rig, topic, third, group="g", consumer="three", credits=10)
    assert (third.payloads, second.errors, third.errors) == (
        [],
        ["ABORTED: consumer 'three' has taken over partition 0 of group 'g'"],
        [],
    )
    assert rig.service.groups.describe_group(topic, "g").consumers == ["three"]
    assert not last.is_over


@on_service()
async def test_consumers_of_different_partitions_are_there_together(rig: ServiceRig) -> None:
    await rig.service.topics.create_topic("t", TopicConfig(partitions=3), rig.session)
    topic, low, high = await open_topic(rig), Consumer(), Consumer()
    for partition in range(3):
        await publish(rig, topic, b"%d" % partition, partition=partition)
    await subscribe(rig, topic, low, group="g", consumer="l", partitions=[0, 1], credits=9)
    made = await subscribe(rig, topic, high, group="g", consumer="h", partitions=[2], credits=9)

    assert (sorted(low.payloads), high.payloads) == ([b"0", b"1"], [b"2"])
    assert (low.errors, high.errors) == ([], [])
    with pytest.raises(InvalidArgument, match="partition: 0 is not one of this subscription"):
        rig.service.subscriptions.ack(made, 0, 1)
    with pytest.raises(FailedPrecondition, match="offset: 2 was not delivered"):
        rig.service.subscriptions.ack(made, 2, 2)
    with pytest.raises(InvalidArgument, match="partition is 3"):
        await subscribe(rig, topic, Consumer(), partitions=[3])


@on_service()
async def test_pauses_and_resets_hold_and_move_consumers(rig: ServiceRig) -> None:
    topic, consumer, groups = await open_topic(rig), Consumer(), rig.service.groups
    made = await subscribe(rig, topic, consumer, group="g", credits=99)
    await groups.pause_group(topic, "g", MINUTE_MS)
    await publish(rig, topic, b"0", b"1")
    await asyncio.sleep(59)
    assert consumer.payloads == []
    await asyncio.sleep(2)
    assert consumer.payloads == [b"0", b"1"]
    assert await rig.service.subscriptions.ack(made, 0, 2) == 2

    await groups.reset_group(topic, "g", None, Position())
    await turns()

    assert consumer.payloads == [b"0", b"1"] * 2
    assert list(groups.describe_group(topic, "g").cursors) == [0]
    await groups.pause_group(topic, "g", 0)
    await publish(rig, topic, b"2")
    await turns()
    assert len(consumer.payloads) == 4
    await groups.resume_group(topic, "g")
    await turns()
    assert consumer.payloads[4:] == [b"2"]


@on_service()
async def test_a_group_begins_where_its_first_consumer_asks(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await publish(rig, topic, b"0", b"1")
    await subscribe(rig, topic, consumer, group="g", position=Position(Start.LAST, 1), credits=9)
    assert consumer.payloads == [b"1"]
    with pytest.raises(InvalidArgument, match="from: a group goes on where it is"):
        await subscribe(rig, topic, consumer, group="g", position=Position(Start.GROUP))
    found = await read(rig, topic, Position(Start.GROUP), group="g")
    assert payloads_of(found) == [b"1"]
    with pytest.raises(NotFound, match="topic 't' has no group 'no'"):
        await read(rig, topic, Position(Start.GROUP), group="no")


# --- shared groups --------------------------------------------------------------------------------


@on_service()
async def test_what_a_closed_subscription_had_goes_to_others_at_once(rig: ServiceRig) -> None:
    topic, first, second = await open_topic(rig), Consumer(), Consumer()
    await publish(rig, topic, b"0", b"1", b"2")
    one = await subscribe(rig, topic, first, group="g", settings=SHARED, credits=3)
    await subscribe(rig, topic, second, group="g", credits=3)
    assert (len(first.payloads), second.payloads) == (3, [])
    lease = first.deliveries[0].lease
    done = Settlement(lease, [0], [1])
    assert await rig.service.subscriptions.settle(one, done) == [True]

    one.drop()
    await turns()

    assert sorted(second.payloads) == [b"0", b"2"]
    with pytest.raises(Aborted, match="the subscription is over"):
        rig.service.subscriptions.settle(one, done)


@on_service()
async def test_leases_of_a_subscription_expire_and_can_be_extended(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await publish(rig, topic, b"0")
    made = await subscribe(
        rig, topic, consumer, group="g", settings=SHARED, credits=9, lease_ms=10_000
    )
    lease = consumer.deliveries[0].lease
    settle = rig.service.subscriptions.settle
    async with rig.sweeper():
        await asyncio.sleep(9)
        assert await settle(made, Settlement(lease, [], [], Outcome.EXTENDED)) == [True]
        await asyncio.sleep(9)
        assert len(consumer.deliveries) == 1
        await asyncio.sleep(2)
        assert [list(each.attempts) for each in consumer.deliveries] == [[], [2]]
        assert await settle(made, Settlement(lease, [0], [0])) == [False]
        again = consumer.deliveries[1].lease
        released = Settlement(again, [0], [0], Outcome.RELEASED)
        assert await settle(made, released) == [True]
        await turns()
        assert len(consumer.deliveries) == 3


@on_service()
async def test_messages_in_flight_have_a_limit(rig: ServiceRig) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await publish(rig, topic, *[b"x"] * 5)
    settings = GroupSettings(GroupKind.SHARED, in_flight_max=2)
    made = await subscribe(rig, topic, consumer, group="g", settings=settings, credits=9)
    assert len(consumer.payloads) == 2
    lease = consumer.deliveries[0].lease

    assert await rig.service.subscriptions.settle(made, Settlement(lease, [0], [0])) == [True]
    await turns()

    assert len(consumer.payloads) == 3
    with pytest.raises(InvalidArgument, match="partitions: group 'g' is shared"):
        await subscribe(rig, topic, Consumer(), group="g", partitions=[0])
    with pytest.raises(FailedPrecondition, match="no ordered group"):
        rig.service.subscriptions.ack(made, 0, 1)


@on_service()
async def test_leases_that_expire_are_forgotten_while_the_subscription_goes_on(
    rig: ServiceRig,
) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    settings = GroupSettings(
        GroupKind.SHARED, leases=QueueSettings(backoff_ms=(0,), attempts_max=0)
    )
    terms = {"group": "g", "settings": settings, "credits": 10_000, "lease_ms": 1000}
    made = await subscribe(rig, topic, consumer, **terms)
    await publish(rig, topic, b"a")

    async with rig.sweeper():
        await asyncio.sleep(500)

    assert len(consumer.deliveries) > 400
    assert isinstance(made.feed, LeaseFeed)
    assert len(made.feed._left) <= 101
    made.drop()
    assert rig.service.groups.describe_group(topic, "g").leased == 0


@pytest.mark.parametrize("kind", [None, GroupKind.ORDERED, GroupKind.SHARED])
def test_a_consumer_without_credits_hears_at_once_that_its_topic_is_gone(
    kind: GroupKind | None,
) -> None:
    async def body(rig: ServiceRig) -> None:
        topic, consumer = await open_topic(rig), Consumer()
        terms = {} if kind is None else {"group": "g", "settings": GroupSettings(kind)}
        await subscribe(rig, topic, consumer, **terms)
        await turns()

        await rig.service.topics.delete_topic("t", rig.session)
        await turns()

        assert [each.partition(":")[0] for each in consumer.errors] == ["NOT_FOUND"]

    run_on_service(body)


@on_service()
async def test_a_consumer_without_credits_hears_at_once_that_its_group_is_gone(
    rig: ServiceRig,
) -> None:
    topic, consumer = await open_topic(rig), Consumer()
    await subscribe(rig, topic, consumer, group="g")

    await rig.service.groups.delete_group(topic, "g")
    await turns()

    assert consumer.errors == ["NOT_FOUND: group 'g' of topic 't' was deleted"]
