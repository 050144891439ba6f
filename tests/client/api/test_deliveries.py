"""Deliveries: credits that the program grants, acknowledgements by offset, and their end."""

import asyncio

import pytest

import queueber
from queueber import errors
from queueber.testing import ServerProcess


def payloads(messages: list[queueber.Message]) -> list[bytes]:
    return [each.payload for each in messages]


def taken(deliveries: queueber.Deliveries, count: int) -> list[bytes]:
    """So many messages, which may come in several deliveries, and none behind them."""
    found: list[bytes] = []
    while len(found) < count and (more := payloads(deliveries.next(wait=5))):
        found += more
    return found


def test_nothing_comes_without_credits_and_they_add_up(topic: queueber.Topic) -> None:
    topic.publish([b"0", b"1", b"2", b"3"])
    with topic.deliveries("g") as deliveries:
        assert deliveries.next(wait=0.1) == []
        deliveries.grant(0)
        deliveries.grant(1)
        deliveries.grant(2)

        assert taken(deliveries, 3) == [b"0", b"1", b"2"]
        assert deliveries.next(wait=0.1) == []
        deliveries.grant(10)
        topic.publish(b"4")
        assert taken(deliveries, 2) == [b"3", b"4"]


def test_the_next_delivery_comes_when_the_program_is_done_with_the_last(
    topic: queueber.Topic,
) -> None:
    for _ in range(8):
        topic.publish(bytes(1 << 20))
    with topic.deliveries("g") as deliveries:
        deliveries.grant(1000)

        assert [len(deliveries.next(wait=5)) for _ in range(8)] == [1] * 8


def test_an_acknowledgement_moves_the_cursor_and_not_what_is_delivered(
    topic: queueber.Topic,
) -> None:
    topic.publish([b"0", b"1", b"2", b"3", b"4"])
    with topic.deliveries("g") as deliveries:
        deliveries.grant(3)
        assert taken(deliveries, 3) == [b"0", b"1", b"2"]

        assert deliveries.ack(2)
        assert deliveries.ack(1)  # it is done with that, and does not go back
        deliveries.grant(2)

        assert taken(deliveries, 2) == [b"3", b"4"]
        assert topic.describe_group("g").cursors == [2]
        with pytest.raises(errors.FailedPrecondition, match="was not delivered"):
            deliveries.ack(6)
    with topic.deliveries("g") as deliveries:
        deliveries.grant(1)
        assert taken(deliveries, 1) == [b"2"]


def test_deliveries_begin_at_a_start_and_leave_the_cursor_where_it_is(
    topic: queueber.Topic,
) -> None:
    topic.publish([b"0", b"1", b"2", b"3"])
    with topic.deliveries("g", start=2) as deliveries:
        deliveries.grant(1)
        assert taken(deliveries, 1) == [b"2"]
        assert topic.describe_group("g").cursors == [0]
    with topic.deliveries("g", start="latest") as deliveries:
        deliveries.grant(1)
        topic.publish(b"4")
        assert taken(deliveries, 1) == [b"4"]
        deliveries.ack_soon(5)
    assert topic.describe_group("g").cursors == [5]
    with topic.deliveries("g", start="earliest") as deliveries:
        deliveries.grant(1)
        assert taken(deliveries, 1) == [b"0"]


def test_a_second_consumer_takes_over_and_only_the_first_is_told(topic: queueber.Topic) -> None:
    topic.publish([b"0", b"1"])
    with topic.deliveries("g") as first:
        first.grant(1)
        assert taken(first, 1) == [b"0"]
        with topic.deliveries("g") as second:
            with pytest.raises(errors.Aborted, match="taken over"):
                first.next(wait=5)
            assert first.is_over
            with pytest.raises(errors.Aborted):
                first.ack(1)

            assert second.next(wait=0.1) == []  # credits are not inherited
            second.grant(2)
            assert taken(second, 2) == [b"0", b"1"]
            assert second.ack(2)


def test_deliveries_of_a_closed_topic_end_once_all_came(topic: queueber.Topic) -> None:
    topic.publish(b"0", close=True)
    with topic.deliveries("g") as deliveries:
        deliveries.grant(5)
        assert payloads(deliveries.next(wait=5)) == [b"0"]
        assert deliveries.next(wait=5) == []
        assert deliveries.is_over
        assert deliveries.ack(1)
    assert topic.describe_group("g").cursors == [1]


def test_what_comes_while_they_are_closed_is_let_go(topic: queueber.Topic) -> None:
    topic.publish([bytes(1000)] * 4)
    for _ in range(50):
        with topic.deliveries("g") as deliveries:
            deliveries.grant(4)
        calls = deliveries._calls
        assert calls._ready is None
    of_server = [
        task
        for task in asyncio.all_tasks(calls._connection.loop)
        if "deliver_context" in repr(task.get_coro())
    ]
    assert of_server == []


def test_a_program_that_is_cancelled_as_they_open_is_no_consumer(
    server: ServerProcess, topic: queueber.Topic
) -> None:
    """Or it would be the group's consumer for as long as its connection lives."""

    async def begin() -> None:
        async with queueber.connect_async(server.address) as client:
            found = client.topic(topic.name)
            deliveries = found.deliveries("g")
            opened = deliveries._calls.open()
            deliveries._calls.open = lambda: opened  # type: ignore[method-assign]
            entering = asyncio.ensure_future(deliveries.__aenter__())
            opened.add_done_callback(lambda _: entering.cancel())  # in the moment of the answer
            with pytest.raises(asyncio.CancelledError):
                await entering
            for _ in range(1000):
                if not (await found.describe_group("g")).consumers:
                    return
            pytest.fail("it is the consumer")

    asyncio.run(begin())


def test_only_an_ordered_group_is_sought_in(topic: queueber.Topic) -> None:
    topic.create_group("shared", kind="shared")
    with pytest.raises(errors.InvalidArgument, match="seeks: group 'shared' is shared"):
        topic.deliveries("shared", start="latest").__enter__()


def test_topics_are_listed_with_the_times_of_their_creation(client: queueber.Client) -> None:
    for name in ("times/a", "times/b"):
        client.create_topic(name)
    found = dict(client.topic_times("times/"))
    assert list(found) == ["times/a", "times/b"]
    assert found["times/a"] == client.describe_topic("times/a").created_at_ms
