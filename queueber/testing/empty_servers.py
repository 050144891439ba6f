"""A server with nothing in it for each test of a session, in as few processes as is safe.

To start a process takes longer than most tests. So a server is emptied after a test, and serves the
next one. But a server is stopped, and the next test gets another one, if the test moved its clock,
used its queue `default`, which cannot be deleted, ended the server, or left somebody connected,
such as a worker that still runs.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from queueber.client import Client, connect
from queueber.errors import QueueberError
from queueber.model import QueueSettings
from queueber.testing.server_process import ServerProcess

_OPTIONS = ("--durability", "os")
"""A test that loses its machine starts anew, so nothing waits for the disk."""
_DEFAULT_QUEUE = "default"
_CONNECTIONS = "queueber_connections"
_CLOSING_SECONDS = 0.2
"""How long connections that the test has closed may take to end."""


class EmptyServers:
    """`options` are flags of `queueber serve`. They go before those that are set here."""

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        self._options = (*_OPTIONS, *options)
        self._server: ServerProcess | None = None
        self._folder = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop()

    @contextlib.contextmanager
    def empty(self) -> Iterator[ServerProcess]:
        """One at a time: for as long as this block lasts."""
        server = self._server or self._start()
        address = server.address
        try:
            yield server
        finally:
            if server.advanced_ms or server.address != address or not _is_emptied(server):
                self._stop()

    def _start(self) -> ServerProcess:
        folder = self._folder.enter_context(tempfile.TemporaryDirectory(prefix="queueber-"))
        server = self._server = ServerProcess(
            Path(folder) / "data", self._options, has_movable_clock=True
        )
        server.start()
        return server

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            if server.is_running:
                server.kill()
            server.forget()
        self._folder.close()


def _is_emptied(server: ServerProcess) -> bool:
    """False if that cannot be done, or somebody may still put something into it."""
    if not server.is_running:
        return False
    try:
        with connect(server.address, retry_timeout=0) as client:
            if not _is_alone(client):
                return False
            return _empty(client)
    except QueueberError:
        return False


def _is_alone(client: Client) -> bool:
    """Whether this is the only connection, once those that were closed have ended."""
    give_up_at = time.monotonic() + _CLOSING_SECONDS
    while _connections(client) > 1:
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.01)
    return True


def _connections(client: Client) -> float:
    [family] = [each for each in client.metrics() if each.name == _CONNECTIONS]
    return family.samples[0].value


def _empty(client: Client) -> bool:
    """Delete all of it; False if something stays."""
    for schedule in client.schedules():
        client.remove_schedule(schedule.name)
    for topic in client.topics():
        client.delete_topic(topic)
    for queue in client.queues():
        if queue.name != _DEFAULT_QUEUE:
            client.delete_queue(queue.name)
        elif queue.added_total or queue.paused_until_ms or queue.settings != QueueSettings():
            return False  # it cannot be deleted, and remembers keys and batches
    return True
