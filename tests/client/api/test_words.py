"""The words of the API: ids, durations, errors and settings in every form that users write."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

import queueber
from queueber.limits import ERROR_BYTES_MAX
from queueber.testing import ServerProcess

NOBODY = bytes(16)


@pytest.mark.parametrize(
    "form", [lambda item: item.id, lambda item: item.id.hex(), lambda item: item]
)
def test_an_id_is_bytes_or_hex_or_an_item(
    queue: queueber.Queue, form: Callable[[queueber.Item], queueber.Item]
) -> None:
    queue.add([b"%d" % n for n in range(6)])
    lease = queue.poll(5)
    one, two, three, four, five = map(form, lease.items)

    assert lease.remove(one) == [True]
    assert lease.complete({two: b"done"}) == [True]
    assert lease.fail("not now", ids=[three], delay=3600) == [queueber.FailOutcome.RETRIED]
    assert queue.release([four], lease=lease.id.hex()) == [True]
    assert queue.cancel(five) == [True]
    stats = queue.stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.results) == (2, 1, 0, 1)


def test_a_lease_can_be_named_by_itself_and_holds_ids_itself(queue: queueber.Queue) -> None:
    queue.add([b"1", b"2"])
    lease = queue.poll(2)

    assert queue.extend(60, lease=lease)
    assert queue.remove(lease, lease=lease) == [True, True]


@pytest.mark.parametrize("given", ["12", "zz" * 16, b"short", 5, None])
def test_an_id_of_no_known_form_is_refused(queue: queueber.Queue, given: object) -> None:
    with pytest.raises(queueber.InvalidArgument, match=r"ids: .* is not an id of 16 bytes"):
        queue.cancel(given)  # type: ignore[arg-type]


def test_a_duration_is_seconds_or_a_timedelta(queue: queueber.Queue) -> None:
    queue.add([b"now", b"later"], delay=[timedelta(), timedelta(hours=1)])
    lease = queue.poll(2, lease=timedelta(minutes=1), wait=timedelta(milliseconds=10))

    assert len(lease) == 1
    assert lease.extend(timedelta(minutes=2))
    assert lease.fail("x", delay=timedelta(hours=1)) == [queueber.FailOutcome.RETRIED]
    assert queue.stats().delayed == 2
    with pytest.raises(queueber.InvalidArgument, match="lease: 0 is no lease"):
        queue.poll(lease=timedelta())
    with pytest.raises(queueber.InvalidArgument, match=r"delay: .* is not a number of seconds"):
        queue.add(b"x", delay=timedelta(seconds=-1))


def last_error(queue: queueber.Queue) -> str:
    return queue.peek("delayed").items[0].last_error


def test_a_failure_is_text_or_an_exception(queue: queueber.Queue) -> None:
    queue.add(b"x")
    queue.poll().fail(ValueError("no such city"), delay=3600)

    assert last_error(queue) == "ValueError: no such city"


def test_an_exception_without_a_message_is_named(queue: queueber.Queue) -> None:
    queue.add(b"x")
    queue.poll().fail([KeyError()], delay=3600)

    assert last_error(queue) == "KeyError"


@pytest.mark.parametrize(
    "error", ["x" * 100_000, "\u20ac" * 100_000, ValueError("\u20ac" * 100_000)]
)
def test_an_error_that_is_too_long_is_cut(queue: queueber.Queue, error: str | Exception) -> None:
    queue.add(b"x")

    assert queue.poll().fail(error, delay=3600) == [queueber.FailOutcome.RETRIED]
    kept = last_error(queue)
    assert ERROR_BYTES_MAX - 3 < len(kept.encode()) <= ERROR_BYTES_MAX
    assert kept[-1] in "x\u20ac"


def test_an_error_that_utf8_cannot_hold_is_kept_all_the_same(queue: queueber.Queue) -> None:
    queue.add(b"x")
    queue.poll().fail("bad \ud800 text", delay=3600)

    assert last_error(queue) == r"bad \ud800 text"


def test_a_wait_above_the_servers_limit_is_refused(
    queue: queueber.Queue, client: queueber.Client
) -> None:
    limit = client.server().poll_wait_ms_max // 1000

    with pytest.raises(queueber.InvalidArgument) as caught:
        queue.poll(wait=limit + 1)

    assert str(caught.value) == (
        f"wait: {limit + 1} s is too long; the limit of this server is {limit}"
    )


def test_completing_nothing_says_what_is_missing(queue: queueber.Queue) -> None:
    queue.add([b"1", b"2"])
    lease = queue.poll(2)

    with pytest.raises(queueber.InvalidArgument) as caught:
        lease.complete([])
    assert str(caught.value) == "results: 0 results for 2 items; give one for each"
    with pytest.raises(queueber.InvalidArgument, match=r"^ids: "):
        queue.complete([], [], lease=lease.id)


@pytest.mark.parametrize("name", ["grüße", "a b", "", "x" * 129])
def test_a_name_that_is_none_is_refused_with_the_rule(client: queueber.Client, name: str) -> None:
    with pytest.raises(queueber.InvalidArgument, match="letters, digits, dots, dashes"):
        client.queue(name).stats()


def test_a_queue_that_must_exist_is_not_created(client: queueber.Client) -> None:
    with pytest.raises(queueber.NotFound, match="there is no queue 'misspelt'"):
        client.queue("misspelt", must_exist=True).poll()
    assert "misspelt" not in [stats.name for stats in client.queues()]


def test_a_client_that_was_not_entered_says_so() -> None:
    client = queueber.connect_async("127.0.0.1:1")

    with pytest.raises(queueber.QueueberError, match="not connected; write `async with connect_"):
        client.queue()
    with pytest.raises(queueber.QueueberError, match="not connected"):
        asyncio.run(client.queues())
    asyncio.run(client.aclose())


def test_a_client_that_was_entered_twice_keeps_its_connection(server: ServerProcess) -> None:
    async def main() -> None:
        client = await queueber.connect_async(server.address)
        connection = client._connected().connection
        async with client:
            assert client._connected().connection is connection

    asyncio.run(main())


# --- settings that are read can be set ------------------------------------------------------------


def test_settings_that_are_read_can_be_set(client: queueber.Client) -> None:
    client.create_queue("first", lease=30, backoff=[1, 10], attempts_max=0, isolation=False)
    read = client.queue("first").stats().settings

    assert client.create_queue("second", read, items_max=5)
    client.create_queue("third")
    client.configure_queue("third", read)
    client.configure_queue("third", dedup_window=timedelta(minutes=5))

    second, third = (client.queue(name).stats().settings for name in ("second", "third"))
    assert (read.lease_ms, read.backoff_ms, read.attempts_max, read.isolation) == (
        30_000,
        (1000, 10_000),
        0,
        False,
    )
    assert second == queueber.QueueSettings(
        items_max=5, lease_ms=30_000, backoff_ms=(1000, 10_000), attempts_max=0, isolation=False
    )
    assert (third.dedup_window_ms, third.isolation) == (300_000, False)
    assert client.create_queue("first", read) is False


def test_wrong_settings_are_told_by_their_python_names(client: queueber.Client) -> None:
    with pytest.raises(queueber.InvalidArgument, match=r"^lease_ms: 0 is out of range"):
        client.create_queue("wrong", queueber.QueueSettings(lease_ms=0))
    with pytest.raises(queueber.InvalidArgument, match=r"^item_bytes_max: "):
        client.create_queue("wrong", item_bytes_max=1 << 40)
    with pytest.raises(queueber.InvalidArgument, match=r"^settings: 'x' is not a QueueSettings"):
        client.create_queue("wrong", "x")  # type: ignore[arg-type]


# --- what objects say of themselves ---------------------------------------------------------------


def test_objects_say_what_they_are(client: queueber.Client, server: ServerProcess) -> None:
    queue = client.queue("shown")
    [item_id] = queue.add(b"x" * 100)
    lease = queue.poll()
    producer = queue.producer("p", epoch=3)
    load = queue.load("night")

    assert repr(client) == f"<Client {server.address}>"
    assert repr(queue) == f"<Queue 'shown' at {server.address}>"
    assert repr(lease) == f"<Lease {lease.id.hex()} items=1 queue='shown'>"
    assert repr(queue.poll()) == "<Lease empty items=0 queue='shown'>"
    assert repr(lease.items) == f"[<Item {item_id.hex()} {b'x' * 40!r}... attempt=1>]"
    assert repr(producer) == "<Producer 'p' epoch=3 sequence=1>"
    assert repr(load) == "<Load 'night' epoch=0 staging>"
    assert "queue='shown'" in repr(queue.open_snapshot())
    assert repr(queueber.connect_async("h:1")) == "<AsyncClient h:1 (not connected)>"
    load.abort()
