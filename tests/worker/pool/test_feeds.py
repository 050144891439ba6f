"""A worker of several queues: weights, idle queues, failures and deleted queues."""

import threading
import time
from collections import Counter
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.worker.conftest import WAIT_SECONDS, left_in, results_of, running


@pytest.fixture
def three(client: queueber.Client, queue: queueber.Queue) -> list[queueber.Queue]:
    names = [f"{queue.name}-{letter}" for letter in "abc"]
    for name in names:
        client.create_queue(name, attempts_max=1)
    return [client.queue(name) for name in names]


def worker_of(
    server: ServerProcess, queues: "dict[str, int] | list[str]", handler: Any, **options: Any
) -> queueber.Worker:
    return queueber.Worker(
        server.address, queues=queues, handler=handler, progress=False, **options
    )


def test_a_queue_with_three_times_the_weight_gets_three_times_the_handlers(
    server: ServerProcess, three: list[queueber.Queue]
) -> None:
    one, two, idle = three
    for each in one, two:
        for _ in range(4):
            each.add([b""] * 500)
    order: list[str] = []

    def handle(item: queueber.WorkItem) -> None:
        order.append(item.source)
        time.sleep(0.0005)

    weights = {one.name: 3, two.name: 1, idle.name: 100}
    worker = worker_of(server, weights, handle, concurrency=4, prefetch=12)
    with running(worker):
        give_up_at = time.monotonic() + WAIT_SECONDS
        while len(order) < 1200:
            assert time.monotonic() < give_up_at
            time.sleep(0.01)
        counts = Counter(order[100:1100])

    assert 600 <= counts[one.name] <= 900, counts


def test_a_queue_gets_all_handlers_while_the_others_are_empty(
    server: ServerProcess, three: list[queueber.Queue]
) -> None:
    busy, *_ = three
    busy.add([b""] * 8)
    all_at_once = threading.Barrier(8)

    def handle(item: queueber.WorkItem) -> None:
        all_at_once.wait(WAIT_SECONDS)

    weights = {busy.name: 1, three[1].name: 1000, three[2].name: 1000}
    stats = worker_of(server, weights, handle, concurrency=8, prefetch=0).run(until="empty")

    assert (stats.done, stats.failed) == (8, 0)


def test_outcomes_go_to_the_queue_of_their_item(
    server: ServerProcess, three: list[queueber.Queue]
) -> None:
    for at, each in enumerate(three):
        each.add([b"%d" % number for number in range(at + 1)] + [b"bad"])

    def handle(item: queueber.WorkItem) -> bytes:
        if item.contents == b"bad":
            raise ValueError
        return item.source.encode()

    stats = worker_of(server, [each.name for each in three], handle).run(until="done")

    assert (stats.done, stats.failed, stats.died) == (6, 3, 3)
    for at, each in enumerate(three):
        assert list(results_of(each).values()) == [each.name.encode()] * (at + 1)
        assert (each.stats().dead, left_in(each)) == (1, 0)


def test_leases_of_all_queues_are_extended(
    server: ServerProcess, three: list[queueber.Queue]
) -> None:
    for each in three:
        each.add(b"")

    def handle(item: queueber.WorkItem) -> None:
        time.sleep(1.2)

    names = [each.name for each in three]
    stats = worker_of(server, names, handle, lease=0.3).run(until="done")

    assert (stats.done, stats.refused) == (3, 0)


def test_a_deleted_queue_does_not_hold_up_the_others(
    server: ServerProcess, client: queueber.Client, three: list[queueber.Queue]
) -> None:
    gone, kept, _ = three
    done = threading.Event()

    def handle(item: queueber.WorkItem) -> None:
        if item.contents == b"last":
            done.set()

    with running(worker_of(server, [gone.name, kept.name], handle)) as ended:
        kept.add(b"first")
        client.delete_queue(gone.name)
        kept.add(b"last")
        assert done.wait(WAIT_SECONDS)
    assert ended.result().done == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queues": {}}, "queues: there are none; name at least one"),
        ({"queues": "mail"}, "queues: 'mail' is one name; give a list of names, or queue="),
        ({"queues": {"mail": 0}}, "queues: the weight of 'mail': 0 is outside 1 to 1000"),
        ({"queues": {"mail": "3"}}, "queues: the weight of 'mail': '3' is not a number"),
        ({"queues": {3: 1}}, "queues: 3 is not text; it must be str"),
        ({"queues": [str(n) for n in range(101)]}, "queues: 101 are too many; the limit is 100"),
        ({"queues": ["a"], "queue": "b"}, "queues: a queue or a topic was given, too"),
        ({"queues": ["a"], "topic": "b", "group": "c"}, "queues: a queue or a topic was given"),
    ],
)
def test_wrong_queues_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        queueber.Worker(handler=print, **options)

    assert str(caught.value).startswith(told)
