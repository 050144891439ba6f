"""What hostile callers do to streams: floods of long polls, garbage, halves, slow readers."""

import contextlib
import socket
import time

from faults.http.task import Task, send

ROOT = b"/v1/stream/"
STREAM = b"hostile/stream"
"""A stream with some megabytes."""
_HOST = b" HTTP/1.1\r\nhost: localhost\r\n"
BYTES, TEXT = b"application/octet-stream", b"text/plain"


def request(
    method: bytes, path: bytes, *headers: bytes, body: bytes = b"", kind: bytes = BYTES
) -> bytes:
    lines = [method + b" " + path + _HOST, *(each + b"\r\n" for each in headers)]
    if body or method in (b"POST", b"PUT"):
        lines.append(b"content-type: %b\r\ncontent-length: %d\r\n" % (kind, len(body)))
    return b"".join(lines) + b"\r\n" + body


def long_polls(task: Task) -> int:
    """Polls at the tail of a stream, whose callers hang up soon or at once."""
    count, poll = 0, request(b"GET", ROOT + STREAM + b"?offset=now&live=long-poll")
    while not task.is_over():
        with task.connections(50) as opened:
            for connection in opened:
                send(connection, poll)
            time.sleep(task.random.choice((0, 0.02)))
        count += 50
    return count


def slow_stream_readers(task: Task) -> int:
    """They ask for a stream of megabytes, and read nothing."""
    count = 0
    reads = [request(b"GET", ROOT + STREAM + query) for query in (b"?offset=-1", _SSE_FROM_START)]
    with task.connections(200) as opened:
        while not task.is_over():
            count += sum(send(each, reads[at % 2]) for at, each in enumerate(opened))
            time.sleep(0.5)
    return count


_SSE_FROM_START = b"?offset=-1&live=sse"

_PATHS = (
    b"", b"/", b"//", b"%00", b"%ff", b"a%2Fb", b"..%2f..", b"../../metrics", b"__ds/keys",
    b"queue/x", b"a" * 300, b"\xc3\xa4", b"a%", b"a?b=%zz", b"a/../b", b".",
)  # fmt: skip
_OFFSETS = (
    b"-1", b"-2", b"now", b"NOW", b"9" * 400, b"0_0", b"%016d_%016d" % (0, 10**15),
    b"%016d_%016d" % (10**15, 0), b"1e9", b"0x1", b"_", b"%00", b"%2d1", b"-1&offset=-1",
    b"nan", "\u0661".encode(), b"18446744073709551616_18446744073709551616",
)  # fmt: skip
_HEADERS = (
    b"producer-id: ", b"producer-id: x\r\nproducer-epoch: -1\r\nproducer-seq: 0",
    b"producer-id: x\r\nproducer-epoch: 1e3\r\nproducer-seq: 18446744073709551616",
    b"producer-id: " + b"x" * 5000, b"producer-seq: 5", b"stream-seq: " + b"\xff" * 100,
    b"stream-seq: " + b"9" * 20_000, b"stream-closed: maybe", b"stream-ttl: -5",
    b"stream-ttl: 99999999999999999999", b"stream-expires-at: yesterday",
    b"stream-forked-from: /v1/stream/hostile/stream\r\nstream-fork-offset: garbage",
    b"stream-forked-from: ../../x", b"if-match: \"\xff\"", b"if-none-match: " + b'"a",' * 2000,
    b"content-type: application/json", b"content-type: ;;;", b"content-encoding: gzip",
    b"transfer-encoding: gzip",
)  # fmt: skip


def stream_garbage(task: Task) -> int:
    """Wrong paths, offsets and headers, one of each, and requests with some bytes changed."""
    count, choose = 0, task.random.choice
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            path = ROOT + (choose(_PATHS) if count % 3 == 0 else STREAM)
            if count % 3 == 1:
                path += b"?offset=" + choose(_OFFSETS) + choose((b"", b"&live=sse", b"&live=x"))
            named = [choose(_HEADERS)] if count % 3 == 2 else []
            method = choose((b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH"))
            if method == b"DELETE" and path.endswith(STREAM):
                method = b"GET"
            sent = bytearray(request(method, path, *named, body=choose((b"", b"{}", b"[1,"))))
            for _ in range(task.random.choice((0, 0, 3))):
                sent[task.random.randrange(len(sent))] = task.random.randrange(256)
            send(connection, bytes(sent))
            connection.settimeout(0.05)
            with contextlib.suppress(OSError):
                connection.recv(65536)
        count += 1
    return count


def half_appends(task: Task) -> int:
    """PUT and POST that end anywhere in the head or the body, with a reset or without."""
    count = 0
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            path = ROOT + b"hostile/half-%d" % task.random.randrange(10)
            whole = request(task.random.choice((b"PUT", b"POST")), path, body=bytes(200_000))
            cut = task.random.choice(
                (task.random.randrange(200), task.random.randrange(len(whole)))
            )
            send(connection, whole[:cut])
            if task.random.random() < 0.5:
                reset = b"\x01\0\0\0\0\0\0\0"
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        count += 1
    return count
