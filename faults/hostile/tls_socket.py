"""TLS over a socket that may be read and written by two threads, and cut off anywhere."""

import functools
import socket
import ssl
import threading

from queueber.tls import TlsOptions, client_context

_RECORD_BYTES = 1 << 14


@functools.cache
def _context(options: TlsOptions) -> ssl.SSLContext:
    return client_context(options)


class TlsSocket:
    """As much of a socket as `Raw` uses. The ssl module's own is not safe in two threads."""

    def __init__(self, plain: socket.socket, options: TlsOptions, host: str) -> None:
        self.plain = plain
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = _context(options)
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._lock = threading.Lock()
        """Of the two buffers and what is between them."""
        self._sending = threading.Lock()
        self._unsent = b""
        self.settimeout, self.setblocking = plain.settimeout, plain.setblocking
        self.setsockopt = plain.setsockopt
        self._shake_hands()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self.plain.sendall(self._outgoing.read())
                received = self.plain.recv(1 << 16)
                if not received:
                    raise ConnectionResetError("the server hung up") from None
                self._incoming.write(received)
            else:
                self.plain.sendall(self._outgoing.read())
                return

    def sendall(self, data: bytes) -> None:
        with self._sending:
            self.plain.sendall(self._unsent + self.encrypted(data))
            self._unsent = b""

    def send(self, data: bytes) -> int:
        """Take one record at most; `BlockingIOError` while the one before has not left."""
        with self._sending:
            if self._unsent:
                self._unsent = self._unsent[self.plain.send(self._unsent) :]
                return 0
            taken = data[:_RECORD_BYTES]
            self._unsent = self.encrypted(taken)
            return len(taken)

    def recv(self, size: int) -> bytes:
        while True:
            with self._lock:
                try:
                    return self._tls.read(size)
                except ssl.SSLWantReadError:
                    pass
            received = self.plain.recv(1 << 16)
            if not received:
                return b""
            with self._lock:
                self._incoming.write(received)

    def close(self) -> None:
        self.plain.close()

    def encrypted(self, data: bytes) -> bytes:
        with self._lock:
            if data:
                self._tls.write(data)
            return self._outgoing.read()
