"""When a run ends by itself: the queue is empty, or it is done."""

import threading
import time
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess
from tests.worker.conftest import WAIT_SECONDS, left_in, results_of, running


def worker_of(server: ServerProcess, queue: queueber.Queue, **options: Any) -> queueber.Worker:
    return queueber.Worker(server.address, queue=queue.name, progress=False, **options)


def fails_at_first(item: queueber.WorkItem) -> bytes:
    if item.attempt == 1:
        raise queueber.Retry("once more", delay=0.3)
    return b"%d" % item.attempt


def test_until_empty_leaves_what_is_delayed(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    (ready,) = patient_queue.add(b"x")
    patient_queue.add(b"y", delay=3600)

    stats = worker_of(server, patient_queue, handler=lambda _: b"well").run(until="empty")

    assert (stats.done, left_in(patient_queue)) == (1, 1)
    assert results_of(patient_queue) == {ready: b"well"}


@pytest.mark.parametrize("processes", [0, 1])
def test_until_done_waits_for_what_is_delayed(
    processes: int, server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    ids = [*patient_queue.add([b"x"] * 2), *patient_queue.add(b"y", delay=0.5)]

    worker = worker_of(server, patient_queue, handler=fails_at_first, processes=processes)
    stats = worker.run(until="done")

    assert (stats.done, stats.failed) == (3, 3)
    assert results_of(patient_queue) == dict.fromkeys(ids, b"2")
    assert left_in(patient_queue) == 0


def test_until_done_waits_for_what_a_cap_holds_back_and_until_empty_does_not(
    server: ServerProcess, client: queueber.Client, patient_queue: queueber.Queue
) -> None:
    client.configure_queue(patient_queue.name, rate=(1, 0.5))
    patient_queue.add([b"x"] * 2)

    worker = worker_of(server, patient_queue, handler=lambda _: b"well")

    assert worker.run(until="empty").done == 1
    assert worker.run(until="done").done == 1


def test_until_done_waits_for_what_others_have(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    """Their items may come back, and then somebody has to work on them."""
    (item_id,) = patient_queue.add(b"x")
    other = patient_queue.poll()

    worker = worker_of(server, patient_queue, handler=lambda _: b"well")
    with running(worker, until="done") as outcome:
        while worker.stats().connecting:
            time.sleep(0.01)
        time.sleep(0.3)  # it would have ended by now
        assert not outcome.done()
        other.release(list(other))
        stats = outcome.result(WAIT_SECONDS)

    assert stats.done == 1
    assert results_of(patient_queue) == {item_id: b"well"}


def test_until_done_counts_dead_letters_as_done_and_ends_without_a_queue(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    queue.add(b"x")
    deleted = threading.Event()

    def fail_and_delete(_: queueber.WorkItem) -> None:
        raise ValueError

    assert worker_of(server, queue, handler=fail_and_delete).run(until="done").died == 1

    queue.add(b"y")

    def delete(_: queueber.WorkItem) -> None:
        client.delete_queue(queue.name)
        deleted.set()

    with running(worker_of(server, queue, handler=delete), until="done") as outcome:
        outcome.result(WAIT_SECONDS)
    assert deleted.is_set()


def test_until_done_with_the_messages_of_a_topic(
    server: ServerProcess, client: queueber.Client
) -> None:
    client.create_topic("until-done")
    topic = client.topic("until-done")
    topic.create_group("g", kind="shared", start="earliest")
    topic.publish([b"a", b"b"])

    worker = queueber.Worker(
        server.address, topic="until-done", group="g", handler=fails_at_first, progress=False
    )
    stats = worker.run(until="done")

    assert (stats.done, stats.failed) == (2, 2)
