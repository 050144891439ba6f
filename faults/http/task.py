"""What an attack on an HTTP port gets: an address, a time, and connections."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import cast

from faults.hostile.tls_socket import TlsSocket
from queueber.tls import TlsOptions

Address = tuple[str, int]


@dataclass
class Task:
    address: Address
    random: Random
    seconds: float
    tls: TlsOptions | None = None

    def __post_init__(self) -> None:
        self._end_at = time.monotonic() + self.seconds

    def is_over(self) -> bool:
        return time.monotonic() > self._end_at

    def connect(self) -> socket.socket:
        plain = self.connect_plain()
        if self.tls is None:
            return plain
        try:
            return cast(socket.socket, TlsSocket(plain, self.tls, self.address[0]))
        except OSError:
            plain.close()
            raise

    def connect_plain(self) -> socket.socket:
        """Without TLS, whatever the port speaks."""
        return socket.create_connection(self.address, timeout=10)

    @contextlib.contextmanager
    def connections(self, count: int) -> Iterator[list[socket.socket]]:
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(contextlib.closing(self.connect())) for _ in range(count)]


Attack = Callable[[Task], int]
"""Runs until its time is over; returns how often it did what it does."""


def send(connection: socket.socket, data: bytes) -> bool:
    """Whether the gateway has not hung up."""
    try:
        connection.sendall(data)
    except OSError:
        return False
    return True
