"""Nothing of Cap'n Proto leaves the thread of its loop: freed on another, it ends the process."""

import gc
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

import queueber
from queueber.testing import ServerProcess, running_server


def native_garbage(scenario: Callable[[], None]) -> set[str]:
    """What a scenario leaves to the garbage collector, which runs on any thread, and must not."""
    gc.collect()
    gc.disable()
    try:
        scenario()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return {
            f"{type(each).__name__} of a {type(holder).__name__}"
            for holder in gc.garbage
            for each in (holder, *gc.get_referents(holder))
            if type(each).__module__.startswith("capnp.")
        }
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def run_all(*works: Callable[[], object]) -> None:
    """Each on a thread of its own, again and again until the last has ended once."""
    is_over = threading.Event()

    def run(work: Callable[[], object]) -> None:
        while not is_over.is_set():
            with suppress(queueber.QueueberError):
                work()
            if work is works[-1]:
                is_over.set()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_refused_calls_leave_nothing_behind(server: ServerProcess) -> None:
    def scenario() -> None:
        with queueber.connect(server.address) as client:
            missing = client.queue("missing", must_exist=True)
            for work in (missing.stats, lambda: missing.add([b"x"]), lambda: missing.poll(1)):
                with pytest.raises(queueber.NotFound):
                    work()

    assert native_garbage(scenario) == set()


def test_lost_calls_leave_nothing_behind() -> None:
    def scenario() -> None:
        with running_server() as server, queueber.connect(server.address) as client:
            queue, producer = client.queue("q"), client.queue("q").producer("p", 1)

            def restart() -> None:
                for added in (100, 200, 300):
                    while queue.stats().added_total < added:
                        pass
                    server.kill()
                    server.start()

            run_all(
                *[lambda: queue.add([b"x"])] * 3,
                lambda: producer.add([b"x"]),
                lambda: queue.poll(1, wait=0.1),
                lambda: queue.poll(10).remove(),
                restart,
            )

    assert native_garbage(scenario) == set()


def test_unreachable_server_leaves_nothing_behind() -> None:
    def scenario() -> None:
        with pytest.raises(queueber.Unavailable):
            queueber.connect("127.0.0.1:1", connect_timeout=0.1)

    assert native_garbage(scenario) == set()


def test_closing_leaves_nothing_behind(server: ServerProcess) -> None:
    def scenario() -> None:
        client = queueber.connect(server.address)
        queue = client.queue("closing")
        producer = queue.producer("p", 1)
        for _ in range(20):
            producer.add_soon([b"x"])
        run_all(lambda: queue.poll(1, wait=20), client.close)

    assert native_garbage(scenario) == set()


def test_error_comes_without_the_frames_of_the_loop(queue: queueber.Queue) -> None:
    """Each caller has an error of its own, though one call told of the failure."""
    queue.add([b"x"], batch="b")
    with pytest.raises(queueber.QueueberError) as failure:
        queue.receipt("other")

    assert failure.value.__context__ is None
    assert failure.value.__cause__ is None
    assert not any("connection.py" in str(entry.path) for entry in failure.traceback)
