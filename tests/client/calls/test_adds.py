"""What may be said of items that are added, and producers that repeat themselves safely."""

import asyncio
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess, running_server


def contents_of(lease: queueber.Lease) -> list[bytes]:
    return [item.contents for item in lease]


def test_items_of_a_higher_priority_come_first(queue: queueber.Queue) -> None:
    queue.add([b"low", b"middle"], priority=[0, 5])
    queue.add(b"high", priority=9)

    assert contents_of(queue.poll(10)) == [b"high", b"middle", b"low"]


def test_a_key_keeps_a_second_item_out_and_tells_the_first_ones_id(queue: queueber.Queue) -> None:
    [first] = queue.add(b"first", key="order-17")

    ids = queue.add([b"second", b"other"], key=["order-17", None])

    assert ids[0] == first
    assert ids.duplicates == (True, False)
    assert not ids.is_repeat
    assert sorted(contents_of(queue.poll(10))) == [b"first", b"other"]
    assert queue.stats().duplicates_total == 1


def test_ids_without_duplicates_are_a_plain_list(queue: queueber.Queue) -> None:
    ids = queue.add([b"a", b"b"], key=["one", "two"])

    assert isinstance(ids, list)
    assert (len(ids), ids.duplicates, ids.is_repeat) == (2, (), False)
    again = pickle.loads(pickle.dumps(ids))
    assert (again, again.duplicates) == (ids, ())


def test_an_item_tells_what_it_was_added_with(queue: queueber.Queue) -> None:
    queue.add([b"x"], key="k", attributes={"trace": "größe", "empty": ""}, batch="b")

    [item] = queue.poll()

    assert (item.key, item.batch, item.attempt) == ("k", "b", 1)
    assert item.attributes == {"trace": "größe", "empty": ""}
    assert item.added_at is not None
    assert abs(datetime.now(UTC) - item.added_at) < timedelta(minutes=1)


def test_an_item_that_was_added_plainly_has_no_details(queue: queueber.Queue) -> None:
    queue.add(b"x")

    [item] = queue.poll()

    assert (item.key, item.batch, item.attempt, dict(item.attributes)) == ("", "", 1, {})


def test_attributes_are_given_for_all_or_for_each(queue: queueber.Queue) -> None:
    queue.add([b"1", b"2"], attributes={"for": "all"})
    queue.add([b"3", b"4"], attributes=[{"for": "this"}, None])

    found = {item.contents: dict(item.attributes) for item in queue.poll(10)}

    assert found == {b"1": {"for": "all"}, b"2": {"for": "all"}, b"3": {"for": "this"}, b"4": {}}


def test_polls_that_are_joined_give_each_item_its_own_details(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("joined-details")
            for number in range(20):
                named = {"number": str(number)} if number % 2 else None
                await queue.add(b"%d" % number, attributes=named, priority=number % 10)
            leases = await asyncio.gather(*[queue.poll() for _ in range(20)])
            for lease in leases:
                [item] = lease.items
                number = int(item.contents)
                assert dict(item.attributes) == ({"number": str(number)} if number % 2 else {})

    asyncio.run(main())


def test_adds_that_are_joined_keep_their_own_options(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("joined-options")
            calls = [
                queue.add(
                    b"%d" % number,
                    key=f"key-{number % 20}" if number % 3 else None,
                    batch=f"batch-{number % 2}",
                    attributes={"n": str(number)} if number % 5 == 0 else None,
                )
                for number in range(40)
            ]
            added = await asyncio.gather(*calls)
            lease = await queue.poll(100)

            stored = {int(item.contents): item for item in lease}
            for number, ids in enumerate(added):
                if ids.duplicates:
                    continue
                item = stored[number]
                assert ids == [item.id]
                assert item.batch == f"batch-{number % 2}"
                assert item.key == (f"key-{number % 20}" if number % 3 else "")
                assert dict(item.attributes) == ({"n": str(number)} if number % 5 == 0 else {})
            keys = [item.key for item in lease if item.key]
            assert len(keys) == len(set(keys))

    asyncio.run(main())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"priority": 10}, "priority: 10 is not a number from 0 to 9"),
        ({"priority": True}, "priority: True"),
        ({"priority": [1, 2]}, "priority: 2 priorities for 1 item;"),
        ({"priority": None}, "priority: None"),
        ({"key": 5}, "key: 5"),
        ({"key": [5]}, "key: 5 is not text"),
        ({"key": ["a", "b"]}, "key: 2 keys for 1 item;"),
        ({"key": "x" * 513}, "key: it has 513 bytes; the limit is 512"),
        ({"key": "ü" * 257}, "key: it has 514 bytes; the limit is 512"),
        ({"key": "\ud800"}, "key: '\\ud800' cannot be encoded"),
        ({"attributes": "text"}, "attributes: 'text' is neither"),
        ({"attributes": [5]}, "attributes: 5 is not a mapping"),
        ({"attributes": {"a": 5}}, "attributes: 5 is not text"),
        ({"attributes": {str(n): "" for n in range(33)}}, "an item has 33; the limit is 32"),
        ({"attributes": {"a": "x" * 5000, "b": "x" * 5000}}, "10002 bytes of them; the limit"),
        ({"attributes": [{}, {}]}, "attributes: 2 mappings for 1 item;"),
        ({"key": ""}, "key: it is empty"),
        ({"batch": ""}, "batch: it is empty"),
        ({"batch": "x" * 257}, "batch: it has 257 bytes; the limit is 256"),
    ],
)
def test_bad_options_name_the_field_and_the_limit_and_store_nothing(
    queue: queueber.Queue, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        queue.add(b"x", **options)

    assert told in str(caught.value)
    assert queue.stats().added_total == 0


def test_one_key_for_several_items_is_refused(queue: queueber.Queue) -> None:
    with pytest.raises(queueber.InvalidArgument, match="one key for 2 items"):
        queue.add([b"a", b"b"], key="k")


# --- producers ------------------------------------------------------------------------------------


def test_a_producer_numbers_its_calls_and_keeps_them_in_order(queue: queueber.Queue) -> None:
    producer = queue.producer("loader", 1)

    sent = [producer.add_soon([b"%d" % n], batch="load") for n in range(50)]
    ids = [item_id for future in sent for item_id in future.result()]

    assert producer.sequence == 51
    assert ids == sorted(ids)
    assert contents_of(queue.poll(100)) == [b"%d" % n for n in range(50)]


def test_a_producer_that_begins_again_stores_nothing_twice(queue: queueber.Queue) -> None:
    first = queue.producer("task", 3)
    stored = [first.add(b"%d" % n) for n in range(3)]

    again = queue.producer("task", 3)
    repeated = [again.add(b"%d" % n) for n in range(4)]

    assert repeated[:3] == stored
    assert [ids.is_repeat for ids in repeated] == [True, True, True, False]
    assert queue.stats().added_total == 4


def test_a_call_is_repeated_by_its_number(queue: queueber.Queue) -> None:
    producer = queue.producer("numbers", 0)
    [first] = producer.add(b"one")

    assert producer.add(b"one", sequence=1) == [first]
    assert producer.sequence == 2
    assert not producer.add(b"two", sequence=2).is_repeat


def test_an_older_epoch_is_shut_out(queue: queueber.Queue) -> None:
    old, new = queue.producer("fenced", 1), queue.producer("fenced", 2)
    old.add(b"old")
    new.add(b"new")

    with pytest.raises(queueber.Aborted):
        old.add(b"late")

    assert queue.stats().added_total == 2


def test_a_number_that_is_left_out_is_refused(queue: queueber.Queue) -> None:
    with pytest.raises(queueber.Aborted):
        queue.producer("gap", 1).add(b"x", sequence=2)

    assert queue.stats().added_total == 0


def test_after_a_refused_call_a_producer_stands_still_until_it_is_repeated(
    client: queueber.Client,
) -> None:
    """Else a program that begins again would find its numbers taken by other calls."""
    client.create_queue("stands-still", items_max=2)
    queue = client.queue("stands-still")
    producer = queue.producer("p", 1)
    sent = [producer.add_soon(b"%d" % n) for n in range(5)]

    assert [future.exception() is None for future in sent] == [True, True, False, False, False]
    assert isinstance(sent[2].exception(), queueber.ResourceExhausted)
    assert isinstance(sent[3].exception(), queueber.Aborted)
    with pytest.raises(queueber.Aborted, match="repeat it with sequence=3"):
        producer.add(b"2")

    client.configure_queue("stands-still", items_max=10)
    assert producer.sequence == 3
    producer.add(b"2", sequence=3)
    producer.add(b"3")
    assert contents_of(queue.poll(10)) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda q: q.producer("", 1), "producer: it is empty"),
        (lambda q: q.producer("x" * 257, 1), "producer: it has 257 bytes; the limit is 256"),
        (lambda q: q.producer("x", -1), "epoch: -1"),
        (lambda q: q.producer("x", "1"), "epoch: '1'"),
        (lambda q: q.producer("x", 1).add(b"x", sequence=0), "sequence: 0"),
        (lambda q: q.producer("x", 1).add("x"), "contents: str"),
    ],
)
def test_bad_producers_are_refused(
    queue: queueber.Queue, make: Callable[[queueber.Queue], object], told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        make(queue)

    assert told in str(caught.value)


@pytest.mark.recovery
def test_a_producer_is_not_left_in_doubt_by_a_server_that_dies() -> None:
    """The server is stopped (SIGSTOP) so that calls are under way for certain when it dies."""
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("sure")
        producer = queue.producer("p", 1)
        producer.add(b"first")
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        sent = [producer.add_soon(b"%d" % n) for n in range(20)]
        threading.Event().wait(0.2)
        server.kill()
        server.start()

        ids = [item_id for future in sent for item_id in future.result(30)]

        assert len(set(ids)) == 20
        assert queue.stats().added_total == 21
        assert contents_of(queue.poll(100))[1:] == [b"%d" % n for n in range(20)]


@pytest.mark.recovery
def test_a_producer_survives_a_server_that_dies_again_and_again() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("storm")
        producer = queue.producer("p", 1)

        def produce() -> list[bytes]:
            sent = [producer.add_soon(b"%d" % n) for n in range(600)]
            return [item_id for future in sent for item_id in future.result(60)]

        with ThreadPoolExecutor(1) as pool:
            producing = pool.submit(produce)
            for _ in range(3):
                threading.Event().wait(0.05)
                server.kill()
                server.start()
            ids = producing.result()

        assert len(set(ids)) == queue.stats().added_total == 600
        assert contents_of(queue.poll(1000)) == [b"%d" % n for n in range(600)]


def test_a_producer_that_cannot_reach_the_server_says_that_the_outcome_is_unknown() -> None:
    with running_server() as server, queueber.connect(server.address, retry_timeout=0.3) as client:
        producer = client.queue().producer("p", 1)
        producer.add(b"first")
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        adding = producer.add_soon(b"second")
        behind = producer.add_soon(b"third")
        threading.Event().wait(0.2)
        server.kill()

        assert isinstance(adding.exception(30), queueber.OutcomeUnknown)
        assert isinstance(behind.exception(30), queueber.Aborted)
        assert producer.sequence == 2


def test_closing_the_client_leaves_nobody_waiting_for_a_producer(server: ServerProcess) -> None:
    for _ in range(10):
        client = queueber.connect(server.address)
        producer = client.queue("closed-producer").producer("p", 1)
        sent = [producer.add_soon(b"%d" % n) for n in range(100)]
        client.close()

        for future in sent:
            error = future.exception(10)
            assert error is None or isinstance(error, queueber.QueueberError)


def test_many_tasks_share_a_producer(server: ServerProcess) -> None:
    async def main() -> None:
        async with queueber.connect_async(server.address) as client:
            queue = client.queue("producer-tasks")
            producer = queue.producer("p", 1)
            added = await asyncio.gather(*[producer.add(b"%d" % n) for n in range(100)])
            ids = [item_id for each in added for item_id in each]

            assert (producer.id, producer.epoch, producer.sequence) == ("p", 1, 101)
            assert (await queue.poll(1000)).ids == ids

    asyncio.run(main())
