"""Steps over topics and queues that all happen, or none."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import queueber
from queueber import FailOutcome
from queueber.testing import ServerProcess


def received(subscription: queueber.Subscription) -> queueber.Received:
    message = subscription.next(10)
    assert message is not None
    return message


def test_all_steps_happen(
    client: queueber.Client, topic: queueber.Topic, queue: queueber.Queue
) -> None:
    topic.publish([b"a", b"b", b"c"])
    queue.add([b"work", b"bad"])
    client.create_queue(f"{queue.name}-next")
    with (
        topic.subscribe(group="ordered") as ordered,
        topic.subscribe(group="shared", kind="shared") as shared,
    ):
        done, failed = queue.poll(2)
        with client.together() as step:
            step.ack(received(ordered))
            step.ack(received(ordered))
            step.ack(received(shared))
            step.publish(f"{topic.name}-out", [b"x", b"y"])
            step.add(f"{queue.name}-next", [b"1", b"2"], priority=9)
            step.complete(done, b"result")
            step.fail(failed, ValueError("no"), delay=60)

    assert topic.describe_group("ordered").cursors == [2]
    assert topic.describe_group("shared").lag == 2
    out = client.topic(f"{topic.name}-out")
    assert out.read().payloads == [b"x", b"y"]
    assert [list(each.offsets) for each in step.done.published] == [[0, 1]]
    assert [item.contents for item in client.queue(f"{queue.name}-next").poll(9)] == [b"1", b"2"]
    assert len(step.done.added[f"{queue.name}-next"]) == 2
    assert step.done.failed == {queue.name: [FailOutcome.RETRIED]}
    assert [each.result for each in queue.read_results().results] == [b"result"]
    stats = queue.stats()
    assert (stats.ready, stats.delayed, stats.leased) == (0, 1, 0)


def test_steps_may_name_ids_and_offsets_instead_of_objects(
    client: queueber.Client, topic: queueber.Topic, queue: queueber.Queue
) -> None:
    topic.publish([b"a", b"b", b"c"])
    topic.create_group("ordered")
    topic.create_group("shared", kind="shared")
    queue.add([b"work", b"bad"])
    lease = queue.poll(2)
    shared = topic.group("shared").poll(2)
    done, failed = lease.ids

    with client.together() as step:
        step.ack_offsets(topic.name, "ordered", [0, 1])
        step.ack_offsets(topic.name, "shared", [0, 1], lease=shared.id.hex())
        step.complete(done, b"result", queue=queue.name, lease=lease.id)
        step.fail(failed.hex(), "no", delay=60, queue=queue.name, lease=lease.id)

    assert topic.describe_group("ordered").cursors == [2]
    assert topic.describe_group("shared").lag == 1
    assert [each.result for each in queue.read_results().results] == [b"result"]
    assert step.done.failed == {queue.name: [FailOutcome.RETRIED]}


@pytest.mark.parametrize(
    ("take", "text"),
    [
        (lambda step: step.ack_offsets("t", "g", []), "offsets: there are none"),
        (lambda step: step.ack_offsets("t", "g", [-1]), "offsets: -1 is not an offset"),
        (lambda step: step.ack_offsets("", "g", [0]), "topic: '' is not the name"),
        (lambda step: step.ack_offsets("t", "", [0]), "group: it is empty"),
        (lambda step: step.ack_offsets("t", "g", [0], lease=b"x"), "lease: b'x' is not an id"),
        (lambda step: step.ack_offsets("t", "g", [0], partition=256), "partition: 256 is too"),
        (lambda step: step.complete(bytes(16)), "is not an item of a lease"),
        (lambda step: step.complete(bytes(16), queue="q"), "lease: give the queue and the lease"),
        (lambda step: step.fail(b"x", "no", queue="q", lease=bytes(16)), "item: b'x' is not an id"),
    ],
)
def test_a_step_with_a_wrong_name_is_refused_and_nothing_is_sent(
    client: queueber.Client, take: Callable[[queueber.Together], None], text: str
) -> None:
    def run() -> None:
        with client.together() as step:
            step.publish("never-made", b"x")
            take(step)

    with pytest.raises(queueber.InvalidArgument, match=text):
        run()

    assert list(client.topics("never-made")) == []


def test_nothing_happens_if_the_block_raises(
    client: queueber.Client, topic: queueber.Topic
) -> None:
    topic.publish(b"a")

    def stumble() -> None:
        with client.together() as step:
            step.publish(topic.name, b"b")
            raise KeyError

    with pytest.raises(KeyError):
        stumble()

    assert topic.read().payloads == [b"a"]


def test_nothing_happens_if_one_step_is_refused(
    client: queueber.Client, topic: queueber.Topic, queue: queueber.Queue
) -> None:
    queue.add(b"work")
    lease = queue.poll()
    item = lease.items[0]
    lease.remove()

    def complete_again() -> None:
        with client.together() as step:
            step.publish(topic.name, b"a")
            step.complete(item)

    with pytest.raises(queueber.QueueberError):
        complete_again()

    assert topic.read().payloads == []
    assert queue.read_results().results == []


def test_a_condition_of_a_publish_holds_for_all_steps(
    client: queueber.Client, topic: queueber.Topic, queue: queueber.Queue
) -> None:
    topic.publish(b"a")
    client.create_queue(queue.name)

    def publish_elsewhere() -> None:
        with client.together() as step:
            step.publish(topic.name, b"b", expected_offset=0)
            step.add(queue.name, b"work")

    with pytest.raises(queueber.FailedPrecondition):
        publish_elsewhere()

    assert topic.read().payloads == [b"a"]
    assert queue.stats().ready == 0


def test_an_empty_block_sends_nothing(client: queueber.Client) -> None:
    with client.together() as step:
        pass

    assert step.done.published == []


def test_wrong_steps_are_refused_with_a_reason(
    client: queueber.Client, topic: queueber.Topic, queue: queueber.Queue
) -> None:
    topic.publish(b"a")
    with topic.subscribe() as subscription:
        without_group = received(subscription)
    with client.together() as step:
        wrong_steps: list[tuple[Callable[[Any], object], Any, str]] = [
            (step.ack, topic.read()[0], "message: .* is not one of a subscription"),
            (step.ack, without_group, "message: its subscription has no group"),
            (step.complete, queueber.Item(b"\0" * 16, b""), "item: .* is not an item of a lease"),
            (partial(step.publish, "a b"), b"x", "topic: 'a b' is not the name of a topic"),
            (partial(step.add, queue.name), "text", "contents: str is text"),
        ]
        for wrong, argument, told in wrong_steps:
            with pytest.raises(queueber.InvalidArgument, match=told):
                wrong(argument)

    with client.together() as sent:
        sent.publish(topic.name, b"b")
    with pytest.raises(queueber.InvalidArgument, match="the steps are sent"):
        sent.publish(topic.name, b"c")


def test_programs_that_await_have_it_as_well(server: ServerProcess, topic: queueber.Topic) -> None:
    async def main() -> list[int]:
        async with queueber.connect_async(server.address) as client:
            async with client.together() as step:
                step.publish(topic.name, [b"a", b"b"])
            return list(step.done.published[0].offsets)

    assert asyncio.run(main()) == [0, 1]
    assert topic.read().payloads == [b"a", b"b"]
