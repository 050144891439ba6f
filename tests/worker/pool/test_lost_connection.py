"""A connection that breaks while the server goes on: the server releases its items."""

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import Self

import queueber
from queueber.config import split_address
from queueber.testing import ServerProcess
from tests.worker.conftest import WAIT_SECONDS, results_of, running


class Proxy:
    """Passes connections on to a server, and cuts them when told to."""

    def __init__(self, address: str) -> None:
        self._target = split_address(address)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self.connections = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            for each in self._sockets:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            self._sockets.clear()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                for each in (near, far):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self.connections += 1
                    self._sockets += [near, far]
                threading.Thread(target=_carry, args=(near, far), daemon=True).start()


def _carry(near: socket.socket, far: socket.socket) -> None:
    with near, far, selectors.DefaultSelector() as selector:
        selector.register(near, selectors.EVENT_READ, far)
        selector.register(far, selectors.EVENT_READ, near)
        with contextlib.suppress(OSError):
            while True:
                for key, _ in selector.select():
                    chunk = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not chunk:
                        return
                    key.data.sendall(chunk)


@contextlib.contextmanager
def proxy_to(server: ServerProcess) -> Iterator[Proxy]:
    with Proxy(server.address) as proxy:
        yield proxy


def test_items_of_a_broken_connection_are_handled_again_and_only_one_result_counts(
    server: ServerProcess, patient_queue: queueber.Queue
) -> None:
    (item_id,) = patient_queue.add(b"x")
    leases: list[bytes] = []
    began, again, go = threading.Event(), threading.Event(), threading.Event()

    def handle(item: queueber.WorkItem) -> bytes:
        leases.append(item.lease.id)
        if len(leases) > 1:
            again.set()
            return b"second"
        began.set()
        assert go.wait(WAIT_SECONDS)
        return b"first"

    with proxy_to(server) as proxy:
        worker = queueber.Worker(
            proxy.address, queue=patient_queue.name, handler=handle, progress=False
        )
        with running(worker) as outcome:
            assert began.wait(WAIT_SECONDS)
            proxy.cut()
            assert again.wait(WAIT_SECONDS)
            go.set()
            worker.stop()
            stats = outcome.result(WAIT_SECONDS)

    assert results_of(patient_queue) == {item_id: b"second"}
    assert (stats.done, stats.refused) == (1, 1)


def test_cuts_under_load_lose_nothing(server: ServerProcess, patient_queue: queueber.Queue) -> None:
    queue = patient_queue
    ids: list[bytes] = []
    for start in range(0, 2000, 500):
        ids += queue.add([b"%d" % number for number in range(start, start + 500)])
    handled = threading.Semaphore(0)

    def handle(item: queueber.WorkItem) -> bytes:
        handled.release()
        return item.contents

    with proxy_to(server) as proxy:
        worker = queueber.Worker(proxy.address, queue=queue.name, handler=handle, progress=False)
        with running(worker) as outcome:
            for _ in range(5):
                for _ in range(300):
                    assert handled.acquire(timeout=WAIT_SECONDS)
                proxy.cut()
            while queue.stats().completed_total < 2000:
                pass
            worker.stop()
            stats = outcome.result(WAIT_SECONDS)

    assert results_of(queue) == {ids[n]: b"%d" % n for n in range(2000)}
    assert stats.failed == 0


def test_a_worker_has_one_connection(server: ServerProcess, queue: queueber.Queue) -> None:
    queue.add(b"x")

    with proxy_to(server) as proxy:
        queueber.Worker(
            proxy.address, queue=queue.name, handler=lambda _: None, progress=False
        ).run(until="empty")

        assert proxy.connections == 1
