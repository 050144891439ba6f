"""Subscriptions of the blocking client, on a real server."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import pytest
import trio

import queueber
from queueber import FailOutcome
from queueber.testing import ServerProcess, running_server


def numbered(count: int) -> list[bytes]:
    return [b"%d" % n for n in range(count)]


def offsets(subscription: queueber.Subscription, count: int) -> list[int]:
    taken = [subscription.next(10) for _ in range(count)]
    return [each.offset for each in taken if each is not None]


def test_an_ordered_group_gets_more_than_its_credits_in_order(topic: queueber.Topic) -> None:
    topic.publish(numbered(250))

    with topic.subscribe(group="billing", credits=7) as subscription:
        assert offsets(subscription, 250) == list(range(250))
        assert subscription.next(0) is None
        topic.publish(b"new")
        newest = subscription.next(10)

    assert newest is not None
    assert newest.payload == b"new"


def test_a_group_goes_on_where_it_acknowledged(topic: queueber.Topic) -> None:
    topic.publish(numbered(10))
    with topic.subscribe(group="billing") as subscription:
        for message in subscription:
            if message.offset == 4:
                assert message.ack()
                break

    with topic.subscribe(group="billing") as subscription:
        after = subscription.next(10)
        assert after is not None
        assert after.offset == 5
        after.ack_soon()

    info = topic.describe_group("billing")
    assert (info.cursors, info.lag, topic.describe().groups) == ([6], 4, ["billing"])


def test_the_last_messages_of_a_closed_topic_can_be_acknowledged_after_its_end(
    topic: queueber.Topic,
) -> None:
    topic.publish(numbered(3), close=True)

    with topic.subscribe(group="billing") as subscription:
        messages = list(subscription)
        assert subscription.is_over
        assert [message.ack() for message in messages] == [True] * 3

    assert topic.describe_group("billing").lag == 0


def test_messages_that_were_deleted_unread_are_counted_once(topic: queueber.Topic) -> None:
    topic.publish(numbered(10))
    with topic.subscribe(group="billing") as subscription:
        first = subscription.next(10)
        assert first is not None
        first.ack()
    topic.trim(start=4)

    with topic.subscribe(group="billing") as subscription:
        assert offsets(subscription, 6) == [4, 5, 6, 7, 8, 9]
        assert subscription.missed == 3


@pytest.mark.parametrize("kind", ["ordered", "shared"])
def test_the_end_of_the_block_sends_what_was_acknowledged_soon(
    topic: queueber.Topic, kind: Literal["ordered", "shared"]
) -> None:
    topic.publish(numbered(100))

    with topic.subscribe(group="billing", kind=kind, credits=10) as subscription:
        for _ in range(100):
            message = subscription.next(10)
            assert message is not None
            message.ack_soon()

    assert topic.describe_group("billing").lag == 0


def test_a_second_consumer_takes_over_and_the_first_is_told(topic: queueber.Topic) -> None:
    topic.publish(numbered(3))
    with topic.subscribe(group="billing") as first:
        held = first.next(10)
        assert held is not None

        with topic.subscribe(group="billing") as second:
            assert offsets(second, 3) == [0, 1, 2]
            with pytest.raises(queueber.Aborted):
                list(first)
            topic.publish(b"more")
            assert offsets(second, 1) == [3]


def test_without_a_group_every_subscriber_gets_everything(topic: queueber.Topic) -> None:
    topic.publish(numbered(5))

    with topic.subscribe(last=2) as late, topic.subscribe(start=1) as early:
        assert offsets(late, 2) == [3, 4]
        assert offsets(early, 4) == [1, 2, 3, 4]
        topic.publish(b"new")
        assert (offsets(late, 1), offsets(early, 1)) == ([5], [5])
        message = topic.read(start=5)[0]
        assert message.payload == b"new"


def test_a_subscription_without_a_group_acknowledges_nothing(topic: queueber.Topic) -> None:
    topic.publish(b"a")

    with topic.subscribe() as subscription:
        message = subscription.next(10)
        assert message is not None
        with pytest.raises(queueber.InvalidArgument, match=r"group: .* acknowledges nothing"):
            message.ack()


def test_a_shared_group_gives_each_message_to_one_consumer(topic: queueber.Topic) -> None:
    topic.publish(numbered(40))

    def consume() -> list[int]:
        done = []
        with topic.subscribe(group="mail", kind="shared", credits=4) as subscription:
            while (message := subscription.next(1)) is not None:
                assert message.ack()
                done.append(message.offset)
        return done

    with ThreadPoolExecutor(3) as pool:
        done = [each.result() for each in [pool.submit(consume) for _ in range(3)]]

    assert sorted(offset for each in done for offset in each) == list(range(40))
    assert topic.describe_group("mail").lag == 0


def test_messages_of_a_shared_group_fail_and_come_back(topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b"])

    with topic.subscribe(group="mail", kind="shared", credits=2) as subscription:
        failed, released = subscription.next(10), subscription.next(10)
        assert failed is not None
        assert released is not None
        assert failed.extend(30)
        assert failed.fail(ValueError("no"), delay=0) is FailOutcome.RETRIED
        assert released.release()
        assert not released.ack()
        again = [subscription.next(10), subscription.next(10)]

    attempts = {each.offset: each.attempt for each in again if each is not None}
    assert attempts == {0: 2, 1: 1}


def test_a_closed_subscription_gives_back_what_was_not_handed_out(topic: queueber.Topic) -> None:
    topic.publish(numbered(10))
    with topic.subscribe(group="mail", kind="shared", credits=10) as subscription:
        message = subscription.next(10)
        assert message is not None
        assert message.ack()

    lease = topic.group("mail").poll(10, wait=10)

    assert [item.contents for item in lease] == numbered(10)[1:]
    assert lease.remove() == [True] * 9


def test_a_subscription_ends_when_the_topic_is_closed(topic: queueber.Topic) -> None:
    topic.publish([b"a", b"b"])

    with topic.subscribe(group="billing") as subscription:
        threading.Timer(0.05, topic.close).start()
        assert [message.payload for message in subscription] == [b"a", b"b"]
        assert subscription.is_over


def test_wrong_terms_are_refused_with_a_reason(topic: queueber.Topic) -> None:
    for given, told in (
        ({"credits": 0}, "credits: 0 is not a number, 1 or more"),
        ({"kind": "shared"}, "group: messages are shared within a group; name one"),
        ({"group": ""}, "group: it is empty"),
        ({"group": "g", "lease": 1}, "lease: only groups of kind 'shared' have leases"),
        ({"group": "g", "kind": "queue"}, "kind: the messages of a group of kind 'queue'"),
        ({"partitions": [0, 0]}, "partitions: one is named twice"),
        ({"partitions": [256]}, "partition: 256 is too many; the limit is 255"),
        ({"heartbeat": -1}, "heartbeat: -1 is not a number of seconds"),
    ):
        with pytest.raises(queueber.InvalidArgument) as refused:
            topic.subscribe(**given)
        assert told in str(refused.value)


def test_groups_are_created_listed_paused_reset_and_deleted(topic: queueber.Topic) -> None:
    topic.publish(numbered(5))

    assert topic.create_group("late", start="latest")
    assert not topic.create_group("late", start="latest")
    topic.create_group("mail", kind="shared", lease=30)
    assert {each.name: each.cursors for each in topic.groups()} == {"late": [5], "mail": [0]}

    topic.reset("late", start=2)
    assert topic.describe_group("late").cursors == [2]
    assert topic.ack("late", 4) == 4
    assert topic.ack("late", 3) == 4
    assert topic.read(group="late").payloads == [b"4"]

    topic.pause("late", 100)
    assert topic.describe_group("late").paused_until_ms > 0
    topic.resume("late")
    assert topic.describe_group("late").paused_until_ms == 0

    assert (topic.delete_group("late"), topic.delete_group("late")) == (True, False)


@pytest.mark.parametrize("run", [asyncio.run, lambda main: trio.run(lambda: main)])
def test_programs_that_await_subscribe_as_well(
    server: ServerProcess, topic: queueber.Topic, run: object
) -> None:
    async def main() -> tuple[list[int], list[int]]:
        async with queueber.connect_async(server.address) as client:
            awaited = client.topic(topic.name)
            await awaited.publish(numbered(30))
            read = [message.offset async for message in awaited.messages(limit=7)]
            received = []
            async with awaited.subscribe(group="billing", credits=5) as subscription:
                async for message in subscription:
                    received.append(message.offset)
                    await message.ack()
                    if len(received) == 30:
                        break
            return read, received

    assert run(main()) == (list(range(30)), list(range(30)))  # type: ignore[operator]
    assert topic.describe_group("billing").lag == 0


@pytest.mark.recovery
def test_subscriptions_go_on_after_the_server_was_killed() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_topic("orders", partitions=2)
        topic = client.topic("orders")
        for n in range(40):
            topic.publish((b"%d" % n, f"key {n}"))
        free = topic.subscribe(credits=6)
        ordered = topic.subscribe(group="ordered", credits=6)
        shared = topic.subscribe(group="shared", kind="shared", credits=6)
        first = [[each.next(10) for _ in range(5)] for each in (free, ordered, shared)]
        places = [[(m.partition, m.offset) for m in each if m is not None] for each in first]
        assert first[1][-1] is not None
        first[1][-1].ack()
        assert [message is not None and message.ack() for message in first[2]] == [True] * 5

        server.kill()
        server.start()
        for each, so_far in zip((free, ordered, shared), places, strict=True):
            for _ in range(35):
                message = each.next(20)
                assert message is not None
                so_far.append((message.partition, message.offset))

        for so_far in places:
            assert len(set(so_far)) == len(so_far) == 40


@pytest.mark.parametrize(("exists", "asked"), [("ordered", "shared"), ("shared", "ordered")])
def test_a_subscription_of_another_kind_than_the_group_is_refused(
    topic: queueber.Topic,
    exists: Literal["ordered", "shared"],
    asked: Literal["ordered", "shared"],
) -> None:
    topic.publish(numbered(2))
    topic.create_group("billing", kind=exists)

    with (
        topic.subscribe(group="billing", kind=asked) as subscription,
        pytest.raises(queueber.FailedPrecondition) as refused,
    ):
        subscription.next(10)

    assert str(refused.value) == (
        f"group 'billing' exists and is of kind '{exists}'; subscribe with kind='{exists}'"
    )
    assert topic.describe_group("billing").cursors == [0]
    with topic.subscribe(group="billing", kind=exists) as subscription:
        assert offsets(subscription, 2) == [0, 1]


def test_deleted_messages_are_counted_once_as_missed(topic: queueber.Topic) -> None:
    topic.publish(numbered(5))
    topic.create_group("billing")
    topic.trim(start=3)

    with topic.subscribe(group="billing") as subscription:
        first = subscription.next(10)

    assert first is not None
    assert (first.offset, subscription.missed) == (3, 3)
