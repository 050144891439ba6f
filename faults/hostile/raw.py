"""A connection without a client library: it sends bytes and reads messages."""

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from typing import Self, cast

from faults.hostile.messages import rpc
from faults.hostile.tls_socket import TlsSocket
from queueber.tls import TlsOptions


class Raw:
    def __init__(
        self, address: str, *, receive_bytes: int = 0, tls: TlsOptions | None = None
    ) -> None:
        """`receive_bytes` is the size of the kernel's receive buffer."""
        host, port = address.rsplit(":", 1)
        plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_bytes:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        # A call after the end of another waits otherwise 40 ms, until the kernel acknowledges that.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.settimeout(10)
        plain.connect((host, int(port)))
        self.socket = plain
        if tls is not None:
            self.socket = cast(socket.socket, TlsSocket(plain, tls, host))
        self._read = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """False if the server has closed the connection, or does not read any more."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def send_some(self, data: bytes, seconds: float) -> int:
        """Send as much as the server takes in that time."""
        give_up_at = time.monotonic() + seconds
        sent = 0
        self.socket.setblocking(False)
        with contextlib.suppress(ConnectionError):
            while sent < len(data) and time.monotonic() < give_up_at:
                try:
                    sent += self.socket.send(data[sent : sent + (1 << 20)])
                except BlockingIOError:
                    time.sleep(0.01)
        self.socket.settimeout(10)
        return sent

    def reset(self) -> None:
        """Reset the connection."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def is_hung_up_on(self, seconds: float) -> bool:
        """Whether the server ends the connection within that time; its answers are discarded."""
        give_up_at = time.monotonic() + seconds
        while (left := give_up_at - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                if not self.socket.recv(1 << 16):
                    return True
            except TimeoutError:
                return False
            except OSError:
                return True
        return False

    def messages(self) -> Iterator[bytes]:
        """Whole messages as they come, until the server disconnects; or, without blocking, until
        there are no more for now."""
        while True:
            while (size := self._message_bytes()) and len(self._read) >= size:
                message = bytes(self._read[:size])
                del self._read[:size]
                yield message
            try:
                data = self.socket.recv(1 << 18)
            except OSError:
                return
            if not data:
                return
            self._read += data

    def _message_bytes(self) -> int:
        """The size of the next message; 0 while it is unknown."""
        if len(self._read) < 8:
            return 0
        count = int.from_bytes(self._read[:4], "little") + 1
        table = (4 + 4 * count + 7) // 8 * 8
        if len(self._read) < table:
            return 0
        words: tuple[int, ...] = struct.unpack_from(f"<{count}I", self._read, 4)
        return table + 8 * sum(words)

    def outcomes(self) -> Iterator[tuple[int, str]]:
        """For each answer its question, and the error; empty if there was none."""
        for message in self.messages():
            with rpc.Message.from_bytes(message, traversal_limit_in_words=1 << 30) as told:
                if told.which() == "return":
                    answer = getattr(told, "return")
                    is_refused = answer.which() == "exception"
                    yield answer.answerId, answer.exception.reason if is_refused else ""
