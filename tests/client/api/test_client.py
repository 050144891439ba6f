"""The client for plain code, against a real server."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import queueber
from queueber.testing import ServerProcess, running_server


def counts(queue: queueber.Queue) -> tuple[int, int, int]:
    stats = queue.stats()
    return stats.ready, stats.delayed, stats.leased


def test_items_come_back_in_order_with_their_contents_and_go_when_removed(
    queue: queueber.Queue,
) -> None:
    ids = queue.add([b"one", b"two", b""])

    lease = queue.poll(10, lease=60, wait=5)

    assert lease
    assert lease.ids == ids
    assert [item.contents for item in lease] == [b"one", b"two", b""]
    assert lease.remove(ids[:1]) == [True]
    assert lease.remove() == [False, True, True]
    assert counts(queue) == (0, 0, 0)


def test_poll_of_an_empty_queue_is_false_and_holds_nothing(queue: queueber.Queue) -> None:
    lease = queue.poll(5)

    assert not lease
    assert (lease.id, lease.items, lease.remove()) == (b"", [], [])


def test_a_single_bytes_object_is_one_item(queue: queueber.Queue) -> None:
    assert len(queue.add(b"abc")) == 1

    assert [item.contents for item in queue.poll(9)] == [b"abc"]


def test_delays_are_given_for_all_or_for_each(queue: queueber.Queue) -> None:
    queue.add([b"a", b"b"], delay=30)
    queue.add([b"c", b"d"], delay=[0, 30])

    assert counts(queue) == (1, 3, 0)
    assert [item.contents for item in queue.poll(9)] == [b"c"]


def test_a_delayed_item_wakes_a_poll_that_waits(queue: queueber.Queue) -> None:
    added_at = time.monotonic()
    queue.add(b"later", delay=0.2)

    lease = queue.poll(wait=10)

    assert [item.contents for item in lease] == [b"later"]
    assert time.monotonic() - added_at >= 0.2


def test_an_expired_lease_gives_its_items_back_and_has_no_more_rights(
    queue: queueber.Queue,
) -> None:
    [item_id] = queue.add(b"work")
    first = queue.poll(lease=0.1)

    second = queue.poll(lease=60, wait=10)

    assert second.ids == first.ids == [item_id]
    assert first.remove() == [False]
    assert first.extend(10) is False
    assert second.remove() == [True]


def test_an_extended_lease_outlives_its_first_expiry(queue: queueber.Queue) -> None:
    queue.add(b"work")
    lease = queue.poll(lease=0.2)

    assert lease.extend(60) is True

    assert not queue.poll(wait=0.5)
    assert lease.remove() == [True]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda q: q.add("text"), "contents: str"),
        (lambda q: q.add([b"x", 5]), "contents: item 1 is int"),
        (lambda q: q.add([]), "contents: there are none"),
        (lambda q: q.add(b"x", delay=-1), "delay: -1"),
        (lambda q: q.add(b"x", delay=[1, 2]), "delay: 2 delays for 1 item;"),
        (
            lambda q: q.add(b"x", delay=1e10),
            "delay: 10000000000 s is too long; the limit is 31622400",
        ),
        (lambda q: q.poll(0), "count: 0"),
        (lambda q: q.poll(100_000), "count: 100000"),
        (lambda q: q.poll(lease=0), "lease: 0"),
        (lambda q: q.poll(lease=1e9), "lease: 1000000000 s is too long"),
        (lambda q: q.poll(wait="soon"), "wait: 'soon'"),
        (lambda q: q.remove(b"short", lease=bytes(16)), "ids: b'short'"),
        (lambda q: q.extend(5, lease=b"short"), "lease: b'short'"),
        (lambda q: q.extend(5, lease=[]), "lease: []"),
        (lambda q: q.add(None), "contents: None"),
        (lambda q: q.add(b"x", delay=None), "delay: None"),
    ],
)
def test_bad_arguments_name_the_field_and_change_nothing(
    queue: queueber.Queue, call: object, told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        call(queue)  # type: ignore[operator]

    assert told in str(caught.value)
    assert counts(queue) == (0, 0, 0)


def test_too_large_an_item_and_too_large_a_call_are_refused_and_store_nothing(
    queue: queueber.Queue,
) -> None:
    with pytest.raises(queueber.ResourceExhausted, match="4194305 bytes; the limit is 4194304"):
        queue.add([b"small", bytes(4 * 1024 * 1024 + 1)])
    with pytest.raises(queueber.ResourceExhausted, match="send several calls"):
        queue.add([bytes(4 * 1024 * 1024)] * 9)

    assert counts(queue) == (0, 0, 0)


def test_one_bad_call_among_many_joined_ones_fails_alone(queue: queueber.Queue) -> None:
    too_large = bytes(4 * 1024 * 1024 + 1)

    def add(number: int) -> str:
        try:
            queue.add(too_large if number == 20 else b"%d" % number)
        except queueber.ResourceExhausted:
            return "refused"
        return "added"

    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(add, range(40)))

    assert [at for at, outcome in enumerate(outcomes) if outcome == "refused"] == [20]
    contents = {item.contents for item in queue.poll(100)}
    assert contents == {b"%d" % number for number in range(40) if number != 20}


def test_concurrent_single_calls_are_joined_and_each_gets_its_own_answer(
    queue: queueber.Queue,
) -> None:
    def life(number: int) -> bool:
        contents = b"%d" % number
        queue.add(contents)
        lease = queue.poll(1, lease=60, wait=30)
        assert len(lease) == 1
        seen.append((lease.id, lease.items[0].contents))
        return lease.remove() == [True]

    seen: list[tuple[bytes, bytes]] = []
    with ThreadPoolExecutor(24) as pool:
        removed = list(pool.map(life, range(480)))

    assert all(removed)
    assert sorted(contents for _, contents in seen) == sorted(b"%d" % n for n in range(480))
    assert len({lease for lease, _ in seen}) == 480
    stats = queue.stats()
    assert (stats.added_total, stats.polled_total, stats.removed_total) == (480, 480, 480)
    assert counts(queue) == (0, 0, 0)


def test_queues_are_created_configured_listed_and_deleted(client: queueber.Client) -> None:
    assert client.create_queue("made", items_max=2) is True
    assert client.create_queue("made", items_max=2) is False
    with pytest.raises(queueber.AlreadyExists, match="other settings"):
        client.create_queue("made", items_max=3)

    queue = client.queue("made")
    queue.add([b"1", b"2"])
    with pytest.raises(queueber.ResourceExhausted, match="limit of 2"):
        queue.add(b"3")
    client.configure_queue("made", items_max=3)
    queue.add(b"3")

    listed = {stats.name: stats for stats in client.queues()}
    assert listed["made"].ready == 3
    assert listed["made"].settings == queueber.QueueSettings(items_max=3)
    assert list(listed) == sorted(listed)
    assert client.delete_queue("made") is True
    assert client.delete_queue("made") is False
    assert "made" not in {stats.name for stats in client.queues()}


def test_a_deleted_queue_is_empty_when_it_is_used_again(client: queueber.Client) -> None:
    queue = client.queue("again")
    queue.add(b"old")
    client.delete_queue("again")

    assert not queue.poll()
    assert queue.stats().added_total == 0


def test_a_poll_that_waits_on_a_deleted_queue_is_told(client: queueber.Client) -> None:
    queue = client.queue("doomed")
    queue.stats()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.poll, wait=30)
        while queue.stats().waiting_polls == 0:
            time.sleep(0.01)
        client.delete_queue("doomed")

        with pytest.raises(queueber.NotFound, match="deleted"):
            waiting.result()


def test_a_bad_queue_name_is_refused_with_the_rule(client: queueber.Client) -> None:
    with pytest.raises(queueber.InvalidArgument, match="letters, digits"):
        client.queue("no spaces").add(b"x")


def test_the_server_says_its_version_and_limits(client: queueber.Client) -> None:
    info = client.server()

    assert info.version == queueber.__version__
    assert (info.durability, info.item_bytes_max) == ("sync", 4 * 1024 * 1024)


def test_an_unreachable_server_is_told_in_time_and_says_what_to_do() -> None:
    with pytest.raises(queueber.Unavailable, match="queueber serve"):
        queueber.connect("127.0.0.1:1", connect_timeout=0.1)


def test_a_closed_client_refuses_calls(server: ServerProcess) -> None:
    client = queueber.connect(server.address)
    queue = client.queue("closed")
    client.close()
    client.close()

    with pytest.raises(queueber.Unavailable, match="closed"):
        queue.add(b"x")


def test_closing_ends_a_poll_that_waits_and_it_takes_nothing(server: ServerProcess) -> None:
    with queueber.connect(server.address) as other:
        client = queueber.connect(server.address)
        queue = other.queue("left-waiting")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.queue("left-waiting").poll, wait=30)
            while queue.stats().waiting_polls == 0:
                time.sleep(0.01)
            client.close()
            with pytest.raises(queueber.Unavailable):
                waiting.result()
        while queue.stats().waiting_polls:
            time.sleep(0.01)
        queue.add(b"for others")

        assert counts(queue) == (1, 0, 0)


def test_calls_go_on_after_the_server_was_restarted() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("kept")
        [item_id] = queue.add(b"before")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.queue("wakes").poll, wait=30)
            server.kill()
            server.start()

            assert queue.poll(wait=5).ids == [item_id]
            client.queue("wakes").add(b"after")
            assert [item.contents for item in waiting.result()] == [b"after"]


def test_an_add_whose_connection_is_lost_says_that_its_outcome_is_unknown() -> None:
    """The server is stopped (SIGSTOP) so that the call is under way for certain when it dies."""
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("unsure")
        queue.add(b"first")
        assert server.process is not None
        server.process.send_signal(19)
        with ThreadPoolExecutor(1) as pool:
            adding = pool.submit(queue.add, b"second")
            threading.Event().wait(0.2)
            server.kill()

            with pytest.raises(queueber.OutcomeUnknown, match="may or may not"):
                adding.result()
        server.start()
        assert queue.stats().added_total in (1, 2)


def test_an_add_after_the_server_was_restarted_while_idle_is_simply_done() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        queue = client.queue("idle")
        queue.add(b"before")
        server.kill()
        server.start()

        assert len(queue.add(b"after")) == 1
        assert queue.stats().added_total == 2


def test_a_listener_that_never_answers_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"

        with pytest.raises(queueber.Unavailable, match="does not answer"):
            queueber.connect(address, connect_timeout=0.1)


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(queueber.InvalidArgument, match="address"):
        queueber.connect("no-port")
    with pytest.raises(queueber.InvalidArgument, match="host name"):
        queueber.connect("a..b:9090")


def test_adds_that_are_sent_soon_are_stored_in_order(queue: queueber.Queue) -> None:
    sent = [queue.add_soon([b"%d" % n] * 3) for n in range(50)]

    ids = [item_id for future in sent for item_id in future.result()]

    assert ids == sorted(ids)
    assert queue.poll(1000).ids == ids


def test_a_connection_too_many_is_told_so_and_may_come_later() -> None:
    with running_server("--connections-max", "1") as server:
        with queueber.connect(server.address) as first:
            with pytest.raises(queueber.Unavailable, match="as many connections as it may"):
                queueber.connect(server.address, connect_timeout=0)
            first.queue().add(b"x")

        with queueber.connect(server.address) as second:
            assert second.queue().stats().ready == 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda c: c.create_queue("x", items_max=-1), "items_max: -1"),
        (lambda c: c.create_queue("x", bytes_max=1 << 64), "bytes_max: 18446744073709551616"),
        (lambda c: c.configure_queue("x", item_bytes_max="1"), "item_bytes_max: '1'"),
        (lambda c: c.queue("\ud800"), "is not a queue name"),
        (lambda c: c.delete_queue(5), "name: 5"),
        (lambda c: c.create_queue("x" * 129), "1 to 128 letters"),
    ],
)
def test_bad_settings_and_names_are_refused(
    client: queueber.Client, call: object, told: str
) -> None:
    before = [stats.name for stats in client.queues()]

    with pytest.raises(queueber.InvalidArgument) as caught:
        call(client)  # type: ignore[operator]

    assert told in str(caught.value)
    assert [stats.name for stats in client.queues()] == before


def test_joined_polls_of_large_items_all_get_one_while_there_are_some(
    queue: queueber.Queue,
) -> None:
    """The answer that serves them all is full after a few: the others must not come out empty."""
    for _ in range(20):
        queue.add(bytes(4 * 1024 * 1024))

    with ThreadPoolExecutor(16) as pool:
        leases = list(pool.map(lambda _: queue.poll(), range(16)))

    assert [len(lease) for lease in leases] == [1] * 16


def test_a_call_waits_for_its_own_patience_while_another_waits_longer() -> None:
    with running_server() as server, queueber.connect(server.address, retry_timeout=0.5) as client:
        client.queue().stats()
        server.kill()
        with ThreadPoolExecutor(1) as pool:
            patient = pool.submit(client.queue().poll, wait=8)
            started = time.monotonic()
            with pytest.raises(queueber.Unavailable):
                client.queue().stats()
            assert time.monotonic() - started < 4
            server.start()
            client.queue().add(b"y")
            assert len(patient.result()) == 1


def test_a_client_that_was_made_before_a_fork_says_so(server: ServerProcess) -> None:
    program = (
        "import os, sys, queueber\n"
        "client = queueber.connect(sys.argv[1])\n"
        "if os.fork() == 0:\n"
        "    try: client.queue('forked').add(b'x')\n"
        "    except queueber.Unavailable as error: os._exit(0 if 'fork' in str(error) else 1)\n"
        "    os._exit(2)\n"
        "status = os.waitstatus_to_exitcode(os.wait()[1])\n"
        "client.queue('forked').add(b'x')\n"
        "sys.exit(status)\n"
    )

    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, server.address], timeout=30, check=False
    )

    assert ended.returncode == 0


def test_closing_while_threads_call_leaves_nobody_hanging(server: ServerProcess) -> None:
    def call_until_closed(client: queueber.Client) -> None:
        queue = client.queue("closing")
        with contextlib.suppress(queueber.Unavailable, queueber.OutcomeUnknown):
            while True:
                queue.add(b"x")
                queue.stats()
                queue.poll()

    for _ in range(20):
        client = queueber.connect(server.address)
        with ThreadPoolExecutor(6) as pool:
            calls = [pool.submit(call_until_closed, client) for _ in range(6)]
            time.sleep(0.01)
            client.close()
            for call in calls:
                call.result(timeout=10)


def test_a_queue_that_must_exist_is_not_created(client: queueber.Client) -> None:
    queue = client.queue("made-by-others", must_exist=True)
    with pytest.raises(queueber.NotFound):
        queue.add(b"x")
    assert "made-by-others" not in {stats.name for stats in client.queues()}

    client.create_queue("made-by-others", items_max=1)
    queue.add(b"x")
    client.delete_queue("made-by-others")
    with pytest.raises(queueber.NotFound):
        queue.poll()

    assert "made-by-others" not in {stats.name for stats in client.queues()}
