"""Requests that are built before they are sent, and as little of an HTTP client as there can be."""

import os
import socket
from collections.abc import Iterator
from itertools import count, cycle

from bench.peers.processes import LOOPBACK

BYTES, JSON, TEXT = "application/octet-stream", "application/json", "text/plain"
KIB, MIB = 1024, 1024 * 1024
_BODIES = 64
"""Different bodies of a caller, so that compression finds little to do."""
_SECONDS_MAX = 60.0
"""How long a caller waits for an answer."""
_HEAD_END = b"\r\n\r\n"
_NO_CONTENT = b"204"
_EMPTY_BODIES = (b"content-length: 0", b"0\r\n\r\n")


def connected(port: int) -> socket.socket:
    opened = socket.create_connection((LOOPBACK, port), timeout=_SECONDS_MAX)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def stream_path(stream: str) -> str:
    return f"/v1/stream/{stream}"


def request(method: str, target: str, body: bytes = b"", *, kind: str = "") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "host: localhost"]
    if kind:
        lines.append(f"content-type: {kind}")
    if method != "GET":
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def appends(stream: str, size: int, items: int = 0) -> Iterator[bytes]:
    """Endless requests: one message of random bytes, or `items` JSON values of that size."""
    made = []
    for _ in range(_BODIES if not items else 4):
        body = json_batch(size, items) if items else os.urandom(size)
        made.append(request("POST", stream_path(stream), body, kind=JSON if items else BYTES))
    return cycle(made)


def json_batch(size: int, items: int) -> bytes:
    """A JSON array of so many values, each of exactly `size` bytes."""
    values = []
    for number in range(items):
        head = f'{{"number":{number},"text":"'
        values.append(head + os.urandom(size).hex()[: size - len(head) - 2] + '"}')
    return f"[{','.join(values)}]".encode()


def creations(prefix: str, kind: str) -> Iterator[bytes]:
    """Endless requests, each of which creates another stream."""
    return (request("PUT", stream_path(f"{prefix}-{n}"), kind=kind) for n in count())


def is_answered(data: bytes) -> bool:
    """Whether this is a whole answer with an empty body; raises for any but 2xx.

    Bodies of appends and creations are empty with every server; most answer in one piece.
    """
    if not data.startswith(b"HTTP/1.1 2") and len(data) > len(b"HTTP/1.1 2"):
        raise RuntimeError(f"refused: {data[:500]!r}")
    end = data.find(_HEAD_END)
    if end < 0:
        return False
    if data[9:12] == _NO_CONTENT:
        return True
    length, last_chunk = _EMPTY_BODIES
    return length in data[:end].lower() or data.endswith(last_chunk)


def ask(port: int, sent: bytes) -> bytes:
    """Send a request whose answer has an empty body, on a connection of its own."""
    with connected(port) as opened:
        opened.sendall(sent)
        data = b""
        while not is_answered(data):
            data += (got := opened.recv(KIB * 64))
            if not got:
                raise RuntimeError(f"hung up after {data!r}")
        return data
