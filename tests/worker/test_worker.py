"""The `Worker` class: its arguments, signals, log lines and live line."""

import asyncio
import functools
import pickle
import signal
from datetime import timedelta
from typing import Any

import pytest
import structlog
import trio

import queueber
from queueber.testing import ServerProcess
from queueber.worker.processes.worker_process import Logged, _short
from queueber.worker.progress import Rate, to_line
from queueber.worker.worker_settings import is_coroutine_function
from tests.worker import samples
from tests.worker.conftest import WAIT_SECONDS, running


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"handler": 3}, "handler: 3 is int, not a function"),
        ({"concurrency": 0}, "concurrency: 0 is outside 1 to 10000"),
        ({"concurrency": 1.5}, "concurrency: 1.5 is not a number"),
        ({"processes": -1}, "processes: -1 is outside 0 to 1000"),
        ({"prefetch": -1}, "prefetch: -1 is outside"),
        ({"lease": 0}, "lease: 0 is outside 0.001 to 604800 seconds"),
        ({"timeout": 0}, "timeout: 0 is outside 0.01 to 604800 seconds"),
        ({"timeout": "long"}, "timeout: 'long' is not a number of seconds"),
        ({"shutdown_timeout": "long"}, "shutdown_timeout: 'long' is not a number of seconds"),
        ({"loop": "curio"}, "loop: 'curio' is not one of asyncio, trio"),
        ({"loop": "trio"}, "loop: a plain function runs in threads"),
        ({"serializer": "xml"}, "serializer: 'xml' is not one of json"),
        ({"serializer": "json", "results": False}, "serializer: there is nothing to serialize"),
        ({"results": "no"}, "results: 'no' is not True or False"),
        ({"deserializer": 3}, "deserializer: 3 is not a function"),
        ({"middleware": [3]}, "middleware: 3 is not a queueber.Middleware"),
        ({"on_lease_lost": 3}, "on_lease_lost: 3 is not a function"),
        ({"queue": 3}, "queue: 3 is not text"),
        ({"address": None}, "address: None is not text"),
        ({"lease": timedelta(days=8)}, "lease: 691200.0 is outside 0.001 to 604800 seconds"),
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], told: str) -> None:
    with pytest.raises(queueber.InvalidArgument, match=told):
        queueber.Worker(**{"handler": samples.double, **options})


def test_durations_are_seconds_or_timedeltas() -> None:
    worker = queueber.Worker(
        handler=samples.double,
        lease=timedelta(minutes=5),
        shutdown_timeout=timedelta(milliseconds=1500),
        connect_timeout=3,
    )

    settings = worker._settings
    assert (settings.lease_seconds, settings.shutdown_seconds) == (300, 1.5)
    assert settings.connect_seconds == 3
    assert queueber.Retry(delay=timedelta(minutes=1)).delay == 60


def test_a_worker_says_what_it_does() -> None:
    worker = queueber.Worker("127.0.0.1:9090", queue="mail", handler="shop.mail:send")

    assert repr(worker) == "Worker('127.0.0.1:9090', queue='mail', handler='shop.mail:send')"


def test_what_a_run_ends_with_is_empty_or_done() -> None:
    with pytest.raises(queueber.InvalidArgument, match="until: 'later' is not one of empty, done"):
        queueber.Worker(handler=samples.double).run(until="later")  # type: ignore[arg-type]


class Callable:
    async def __call__(self, item: queueber.WorkItem) -> None:
        pass


def test_what_is_a_coroutine_function() -> None:
    assert is_coroutine_function(samples.double_soon)
    assert is_coroutine_function(functools.partial(functools.partial(samples.double_soon)))
    assert is_coroutine_function(Callable())
    assert not is_coroutine_function(samples.double)
    assert not is_coroutine_function(functools.partial(samples.double))


def test_stop_before_run_counts(server: ServerProcess, queue: queueber.Queue) -> None:
    queue.add(b"x")
    worker = queueber.Worker(
        server.address, queue=queue.name, handler=samples.double, progress=False
    )

    worker.stop()
    first = worker.run()
    second = worker.run(until="empty")

    assert (first.done, second.done) == (0, 1)


def test_signal_handlers_are_put_back(server: ServerProcess, queue: queueber.Queue) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    during: list[Any] = []
    queue.add(b"x")

    queueber.Worker(
        server.address,
        queue=queue.name,
        handler=lambda _: during.append(signal.getsignal(signal.SIGTERM)),
        progress=False,
    ).run(until="empty")

    assert during[0] not in before
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_worker_runs_once_at_a_time(server: ServerProcess, queue: queueber.Queue) -> None:
    worker = queueber.Worker(
        server.address, queue=queue.name, handler=samples.double, progress=False
    )

    with running(worker) as outcome:
        while worker.stats().processes == 0:
            pass
        with pytest.raises(RuntimeError, match="is already running"):
            worker.run()
        worker.stop()
        outcome.result(WAIT_SECONDS)


def test_run_refuses_to_hold_up_a_loop() -> None:
    worker = queueber.Worker(handler=samples.double)

    async def main() -> None:
        worker.run()

    with pytest.raises(RuntimeError, match=r"event loop; use 'await asyncio.to_thread\("):
        asyncio.run(main())
    with pytest.raises(RuntimeError, match=r"event loop; use 'await trio.to_thread.run_sync\("):
        trio.run(main)


def test_a_wrong_queue_name_is_the_callers_fault(server: ServerProcess) -> None:
    worker = queueber.Worker(
        server.address, queue="no spaces", handler=samples.double, progress=False
    )

    with pytest.raises(queueber.InvalidArgument, match="queue: 'no spaces' is not a queue name"):
        worker.run()


@pytest.mark.parametrize("processes", [0, 1])
def test_without_a_terminal_start_and_end_are_logged(
    processes: int, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add([b"x"] * 3)

    with structlog.testing.capture_logs() as logs:
        worker = queueber.Worker(
            server.address, queue=queue.name, handler=samples.double, processes=processes
        )
        worker.run(until="empty")

    events = ["worker_connecting", "worker_started", "worker_ended"]
    assert [log["event"] for log in logs] == events
    assert {log["queue"] for log in logs} == {queue.name}
    assert (logs[-1]["done"], logs[-1]["connected"]) == (3, True)


@pytest.mark.parametrize("processes", [0, 1])
def test_a_worker_that_never_reached_its_server_has_not_started(processes: int) -> None:
    worker = queueber.Worker(
        "127.0.0.1:1", handler=samples.double, connect_timeout=0, processes=processes
    )

    with structlog.testing.capture_logs() as logs, pytest.raises(queueber.Unavailable):
        worker.run()

    assert [log["event"] for log in logs] == ["worker_connecting", "worker_ended"]
    assert logs[-1]["connected"] is False


def test_the_line_tells_all_that_matters() -> None:
    stats = queueber.WorkerStats(
        done=120_000, failed=3, refused=1, in_flight=32, waiting=31, processes=2
    )

    assert to_line("thumbnails", stats, 1234.5) == (
        "thumbnails: 1,234/s, 32 in flight, 31 waiting, 120,000 done, 3 failed, 1 refused, "
        "2 processes, connected"
    )
    away = queueber.WorkerStats(processes=2, disconnected=2, unknown=1)
    assert to_line("q", away, 0).endswith(
        "1 unknown, 2 processes, cannot reach the server; retrying"
    )
    starting = queueber.WorkerStats(processes=2, connecting=2)
    assert to_line("q", starting, 0).endswith("2 processes, connecting")
    half = queueber.WorkerStats(processes=2, disconnected=1)
    assert to_line("q", half, 0).endswith("2 processes, cannot reach the server from 1; retrying")


def test_the_rate_of_nothing_is_nothing() -> None:
    assert Rate().of(0) == 0


def test_messages_of_a_process_are_short() -> None:
    facts = _short({"ids": ["x" * 32] * 1000, "reason": "x" * 10_000, "count": 3})

    assert facts == {"ids": ["x" * 32] * 20, "reason": "x" * 400, "count": 3}
    assert len(pickle.dumps(Logged("warning", "x" * 50, facts))) < 4096
    traced = _short({"id": "x" * 32, "error": "ü" * 10_000, "exception": "ü" * 9_000 + "the end"})
    assert str(traced["exception"]).endswith("üthe end")
    assert len(pickle.dumps(Logged("warning", "x" * 50, traced))) < 4096
