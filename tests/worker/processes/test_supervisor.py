"""Worker processes: each with a connection of its own, watched by the one that started them."""

import os
import signal
import time
from typing import Any

import pytest
import structlog

import queueber
from queueber.testing import ServerProcess
from queueber.worker.processes import supervisor
from queueber.worker.processes.process_slot import ProcessSlot
from queueber.worker.processes.supervisor import WorkersDied
from tests.worker import samples
from tests.worker.conftest import WAIT_SECONDS, left_in, results_of, running

pytestmark = pytest.mark.slow


def worker_of(server: ServerProcess, queue: queueber.Queue, **options: Any) -> queueber.Worker:
    return queueber.Worker(
        server.address, queue=queue.name, progress=False, **{"processes": 2, **options}
    )


@pytest.mark.parametrize("handler", [samples.double, "tests.worker.samples:double_soon"])
def test_processes_share_the_work_and_their_figures_are_added_up(
    handler: Any, server: ServerProcess, queue: queueber.Queue
) -> None:
    ids = queue.add([b"%d" % number for number in range(500)])

    stats = worker_of(server, queue, handler=handler).run(until="empty")

    assert results_of(queue) == {ids[n]: b"%d" % n * 2 for n in range(500)}
    assert stats == queueber.WorkerStats(done=500)


def test_a_process_that_dies_is_replaced_and_its_items_come_back(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    others = [b"%d" % number for number in range(50)]
    ids = patient_queue.add([b"die", *others])

    with structlog.testing.capture_logs() as logs:
        worker = worker_of(
            server, patient_queue, handler=samples.die_at_first, processes=1, concurrency=2
        )
        worker.run(until="empty")

    assert results_of(patient_queue) == dict(zip(ids, [b"die", *others], strict=True))
    deaths = [log["reason"] for log in logs if log["event"] == "worker_process_died"]
    # Four items were held together; the one that is to blame is found by halving.
    assert set(deaths) == {"SIGKILL"}
    assert len(deaths) <= 3


def test_processes_that_die_before_they_have_an_item_are_given_up(
    server: ServerProcess, patient_queue: queueber.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "DEATHS_MAX", 2)
    monkeypatch.setattr(supervisor, "_RESTART_MS_FIRST", 1)
    patient_queue.add(b"x")

    handler = "tests.worker.processes.dies_in_a_process:handle"
    worker = worker_of(server, patient_queue, handler=handler, processes=1)
    with pytest.raises(WorkersDied, match="died 2 times in a row before it had an item"):
        worker.run()


def test_processes_that_an_item_kills_are_replaced_until_it_is_a_dead_letter(
    server: ServerProcess, client: queueber.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "DEATHS_MAX", 2)
    client.create_queue("killers", attempts_max=4, backoff=[0])
    queue = client.queue("killers")
    (killer,) = queue.add(b"x")

    worker_of(server, queue, handler=samples.always_die, processes=1).run(until="empty")

    (letter,) = queue.peek("dead").items
    assert (letter.id, letter.attempts) == (killer, 4)


@pytest.mark.parametrize("contents", [b"fine", b"fail"])
def test_processes_that_die_soon_but_get_something_done_are_not_given_up(
    contents: bytes,
    server: ServerProcess,
    queue: queueber.Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their lives are shorter than the time after which figures are told."""
    monkeypatch.setattr(supervisor, "DEATHS_MAX", 3)
    monkeypatch.setattr(supervisor, "_RESTART_MS_FIRST", 1)
    queue.add([contents, b"die"] * 5)

    worker = worker_of(
        server,
        queue,
        handler=samples.die_after_others,
        processes=1,
        concurrency=1,
        prefetch=0,
    )
    stats = worker.run(until="empty")

    assert (stats.done, stats.failed) == ((5, 0) if contents == b"fine" else (0, 5))
    assert left_in(queue) == 0


def test_a_worker_that_is_told_to_stop_while_it_looks_for_the_server_ends_at_once() -> None:
    worker = queueber.Worker(
        "127.0.0.1:1", handler=samples.double, processes=1, connect_timeout=3600, progress=False
    )
    worker.stop()

    assert worker.run() == queueber.WorkerStats()


def test_a_handler_that_cannot_be_sent_is_refused_at_once(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    worker = worker_of(server, queue, handler=lambda _: None)

    with pytest.raises(queueber.InvalidArgument, match="cannot be sent to a process"):
        worker.run()


def test_what_the_server_refuses_ends_the_worker(server: ServerProcess) -> None:
    worker = queueber.Worker(
        server.address, queue="no spaces", handler=samples.double, processes=1, progress=False
    )

    with pytest.raises(queueber.InvalidArgument, match="no spaces"):
        worker.run()


def test_stop_ends_all_processes(server: ServerProcess, queue: queueber.Queue) -> None:
    queue.add([b"x"] * 10)
    worker = worker_of(server, queue, handler=samples.own_process)

    with running(worker) as outcome:
        while queue.stats().completed_total < 10:
            pass
        worker.stop()
        stats = outcome.result(WAIT_SECONDS)

    assert stats.done == 10
    for result in results_of(queue).values():
        with pytest.raises(ProcessLookupError):
            os.kill(int(result), 0)


def test_a_process_that_is_told_to_end_by_others_is_replaced(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    worker = worker_of(server, queue, handler=samples.own_process, processes=1)

    with running(worker):
        (first,) = queue.add(b"x")
        while not (results := results_of(queue)):
            pass
        os.kill(int(results[first]), signal.SIGTERM)
        while True:
            (later,) = queue.add(b"x")
            while later not in (results := results_of(queue)):
                pass
            if results[later] != results[first]:
                break

    assert left_in(queue) == 0


def test_a_process_that_is_replaced_does_not_create_a_queue_that_was_deleted(
    server: ServerProcess, client: queueber.Client, queue: queueber.Queue
) -> None:
    worker = worker_of(server, queue, handler=samples.own_process, processes=1)

    with structlog.testing.capture_logs() as logs, running(worker):
        (first,) = queue.add(b"x")
        while not (results := results_of(queue)):
            pass
        client.delete_queue(queue.name)
        os.kill(int(results[first]), signal.SIGKILL)
        while not {"worker_process_died", "queue_not_found"} <= {log["event"] for log in logs}:
            time.sleep(0.01)
        while logs[-1]["event"] != "queue_not_found":
            time.sleep(0.01)

        assert queue.name not in {stats.name for stats in client.queues()}
        client.create_queue(queue.name)
        queue.add(b"y")
        while queue.stats().completed_total == 0:
            time.sleep(0.01)


def test_processes_end_when_their_parent_is_gone(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    """As after a SIGKILL of the parent: nobody would ever stop them."""
    (first,) = queue.add(b"x")
    slot = ProcessSlot(0, worker_of(server, queue, handler=samples.own_process)._settings)
    slot.start()
    while first not in results_of(queue):
        pass

    slot._commands.close()

    assert slot.process is not None
    slot.process.join(WAIT_SECONDS)
    assert slot.reap(structlog.get_logger()) == 0
