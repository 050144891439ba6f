"""Producers of topics: they number their calls, and repeat them over lost connections."""

import asyncio
import signal
import threading

import pytest

import queueber
from queueber.testing import ServerProcess, running_server


def test_a_producer_numbers_its_calls_and_keeps_them_in_order(topic: queueber.Topic) -> None:
    producer = topic.producer("importer", 1)

    sent = [producer.publish_soon([b"%d" % n], partition=0) for n in range(50)]

    assert [future.result(10).offsets[0] for future in sent] == list(range(50))
    assert (producer.id, producer.epoch, producer.sequence) == ("importer", 1, 51)
    assert topic.read().payloads == [b"%d" % n for n in range(50)]
    assert repr(producer) == f"<TopicProducer 'importer' of {topic.name!r} epoch=1 sequence=51>"


@pytest.mark.parametrize("must_exist", [False, True])
def test_a_producer_that_begins_again_stores_nothing_twice(
    client: queueber.Client, topic: queueber.Topic, must_exist: bool
) -> None:
    topic.describe()  # creates it
    topic = client.topic(topic.name, must_exist=must_exist)
    first = topic.producer("p", 3)
    published = [first.publish([b"a", (b"b", "k")]), first.publish(b"c")]

    again = topic.producer("p", 3)
    repeated = [again.publish([b"a", (b"b", "k")]), again.publish(b"c"), again.publish(b"d")]

    assert [each.is_repeat for each in repeated] == [True, True, False]
    assert [list(each.offsets) for each in repeated] == [[0, 1], [2], [3]]
    assert [list(each.ids) for each in repeated[:2]] == [list(each.ids) for each in published]
    assert topic.read().payloads == [b"a", b"b", b"c", b"d"]


def test_a_greater_epoch_shuts_the_older_one_out(topic: queueber.Topic) -> None:
    old, new = topic.producer("p", 1), topic.producer("p", 2)
    old.publish(b"old")
    new.publish(b"new")

    with pytest.raises(queueber.Aborted) as refused:
        old.publish(b"late")

    assert refused.value.numbers == {"epoch": 2}
    assert topic.read().payloads == [b"old", b"new"]


def test_after_a_refused_call_a_producer_stands_still_until_it_is_repeated(
    topic: queueber.Topic,
) -> None:
    producer = topic.producer("p", 1)
    producer.publish(b"a")
    with pytest.raises(queueber.FailedPrecondition):
        producer.publish(b"b", expected_offset=7)

    with pytest.raises(queueber.Aborted, match="call 2 of the producer failed"):
        producer.publish(b"c")
    producer.publish(b"b", expected_offset=1, sequence=2)
    producer.publish(b"c", close=True)

    assert topic.read().payloads == [b"a", b"b", b"c"]
    assert topic.read().is_closed


def test_what_is_no_producer_is_refused(topic: queueber.Topic) -> None:
    with pytest.raises(queueber.InvalidArgument, match="producer: it is empty"):
        topic.producer("", 1)
    with pytest.raises(queueber.InvalidArgument, match="epoch: -1"):
        topic.producer("p", -1)
    with pytest.raises(queueber.InvalidArgument, match="sequence: 0"):
        topic.producer("p", 1).publish(b"a", sequence=0)
    with pytest.raises(queueber.InvalidArgument, match="messages: there are none"):
        topic.producer("p", 1).publish([])


@pytest.mark.recovery
def test_a_producer_is_not_left_in_doubt_by_a_server_that_dies() -> None:
    """The server is stopped (SIGSTOP) so that calls are under way for certain when it dies."""
    with running_server() as server, queueber.connect(server.address) as client:
        topic = client.topic("sure")
        producer = topic.producer("p", 1)
        producer.publish(b"first")
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        sent = [producer.publish_soon(b"%d" % n) for n in range(20)]
        threading.Event().wait(0.2)
        server.kill()
        server.start()

        offsets = [future.result(30).offsets[0] for future in sent]

        assert offsets == list(range(1, 21))
        assert topic.read().payloads[1:] == [b"%d" % n for n in range(20)]


def test_many_tasks_share_a_producer(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            topic = client.topic("producer-tasks")
            producer = topic.producer("p", 1)
            await asyncio.gather(*[producer.publish(b"%d" % n) for n in range(100)])

            assert (producer.id, producer.epoch, producer.sequence) == ("p", 1, 101)
            assert (await topic.read()).payloads == [b"%d" % n for n in range(100)]

    asyncio.run(main())
