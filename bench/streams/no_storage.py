"""`python -m bench.streams.no_storage PORT`: a server that answers at once and keeps nothing.

Of a stream it knows the length alone, so that a reader gets as many bytes as were appended.
"""

import select
import socket
import sys

from bench.peers.processes import LOOPBACK
from bench.streams.requests import MIB

_BACKLOG = 1024
_ANSWER_BYTES = MIB
_NOSNIFF = b"x-content-type-options: nosniff\r\n"
_APPENDED = b"HTTP/1.1 204 No Content\r\nstream-next-offset: 0\r\n" + _NOSNIFF + b"\r\n"
_CREATED = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n" + _NOSNIFF + b"\r\n"
_EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n" + _NOSNIFF + b"\r\n"
    b'event: control\ndata:{"upToDate":true}\n\n'
)


class NoStorage:
    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._opened: dict[int, socket.socket] = {}
        self._partial: dict[int, bytes] = {}
        self._lengths: dict[bytes, int] = {}
        self._readers: dict[bytes, list[socket.socket]] = {}
        self._zeros = bytes(_ANSWER_BYTES)
        self._waiting = select.epoll()
        self._waiting.register(listening.fileno(), select.EPOLLIN)

    def run(self) -> None:
        while True:
            for number, _ in self._waiting.poll():
                if number == self._listening.fileno():
                    self._accept()
                else:
                    self._take(number)

    def _accept(self) -> None:
        opened, _ = self._listening.accept()
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened[opened.fileno()] = opened
        self._partial[opened.fileno()] = b""
        self._waiting.register(opened.fileno(), select.EPOLLIN)

    def _take(self, number: int) -> None:
        opened = self._opened[number]
        try:
            got = opened.recv(2 * MIB)
        except ConnectionError:
            got = b""
        if not got:
            self._close(number)
            return
        data = self._partial[number] + got
        end = data.find(b"\r\n\r\n")
        head, body = data[:end], data[end + 4 :]
        _, _, given = head.rpartition(b"content-length: ")
        if end < 0 or (not head.startswith(b"GET") and len(body) < int(given)):
            self._partial[number] = data
            return
        self._partial[number] = b""
        self._answer(opened, head, body)

    def _answer(self, opened: socket.socket, head: bytes, body: bytes) -> None:
        method, target, _ = head.split(b" ", 2)
        path, _, query = target.partition(b"?")
        if method == b"POST":
            self._lengths[path] = self._lengths.get(path, 0) + len(body)
            opened.sendall(_APPENDED)
            event = b"event: data\ndata:" + body + b"\n\n"
            for reader in self._readers.get(path, ()):
                reader.sendall(event)
        elif method != b"GET":
            opened.sendall(_CREATED)
        elif b"live=sse" in query:
            opened.sendall(_EVENTS)
            self._readers.setdefault(path, []).append(opened)
        else:
            self._send_page(opened, path, query)

    def _send_page(self, opened: socket.socket, path: bytes, query: bytes) -> None:
        start = max(0, int(query.partition(b"offset=")[2]))
        end = min(start + _ANSWER_BYTES, self._lengths.get(path, 0))
        up_to_date = b"" if end < self._lengths.get(path, 0) else b"stream-up-to-date: true\r\n"
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nstream-next-offset: %d\r\n" % (
            end - start,
            end,
        )
        opened.sendall(head + up_to_date + b"\r\n")
        opened.sendall(memoryview(self._zeros)[: end - start])

    def _close(self, number: int) -> None:
        opened = self._opened.pop(number)
        del self._partial[number]
        for readers in self._readers.values():
            if opened in readers:
                readers.remove(opened)
        opened.close()


def main() -> None:
    with socket.create_server((LOOPBACK, int(sys.argv[1])), backlog=_BACKLOG) as listening:
        NoStorage(listening).run()


if __name__ == "__main__":
    main()
