"""What hostile callers do to an HTTP port. Each attack runs for some seconds and counts."""

import contextlib
import socket
import time
from collections.abc import Callable

from faults.http.stream_attacks import (
    half_appends,
    long_polls,
    slow_stream_readers,
    stream_garbage,
)
from faults.http.task import Task, send

_ADD = (
    b"POST /v1/queues/hostile/items HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\n"
)
_POLL = b"POST /v1/queues/hostile-empty/poll HTTP/1.1\r\nhost: localhost\r\n"
_PEEK = b"GET /v1/queues/hostile-big/items HTTP/1.1\r\nhost: localhost\r\n\r\n"


def slow_headers(task: Task) -> int:
    """A byte of a header now and then, over many connections."""
    count = 0
    with task.connections(500) as opened:
        for connection in opened:
            send(connection, b"GET /healthz HTTP/1.1\r\nx-slow: ")
        while not task.is_over():
            count += sum(send(connection, b"a") for connection in opened)
            time.sleep(0.2)
    return count


def slow_bodies(task: Task) -> int:
    """As slow, in bodies that are said to have a megabyte."""
    count = 0
    with task.connections(100) as opened:
        for connection in opened:
            send(connection, _ADD + b"content-length: 1000000\r\n\r\n{")
        while not task.is_over():
            count += sum(send(connection, b" ") for connection in opened)
            time.sleep(0.2)
    return count


def huge_bodies(task: Task) -> int:
    """Bodies above the limit: said to be so, and without saying so."""
    count, piece = 0, b"10000\r\n" + bytes(65536) + b"\r\n"
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            if task.random.random() < 0.5:
                send(connection, _ADD + b"content-length: 99999999999\r\n\r\n" + bytes(100_000))
            else:
                send(connection, _ADD + b"transfer-encoding: chunked\r\n\r\n")
                while not task.is_over() and send(connection, piece):
                    count += 1
        count += 1
    return count


def endless_headers(task: Task) -> int:
    """One header without an end, and headers without an end."""
    count = 0
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            send(connection, b"GET / HTTP/1.1\r\n")
            endless = b"a" * 4096 if count % 2 else b"a: b\r\n" * 500
            while not task.is_over() and send(connection, endless):
                count += 1
        count += 1
    return count


def garbage(task: Task) -> int:
    """Bytes that are no HTTP, and requests with some bytes changed."""
    count = 0
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            request = bytearray(_ADD + b"content-length: 2\r\n\r\n{}")
            for _ in range(task.random.randrange(1, 8)):
                request[task.random.randrange(len(request))] = task.random.randrange(256)
            sent = bytes(request) if count % 2 else task.random.randbytes(1000)
            send(connection, sent)
        count += 1
    return count


def half_requests(task: Task) -> int:
    """Requests that end anywhere, with a reset or without."""
    count, whole = 0, _ADD + b"content-length: 30\r\n\r\n" + b'{"items":[{"contents":"AAAA"}]'
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            send(connection, whole[: task.random.randrange(len(whole))])
            if task.random.random() < 0.5:
                reset = b"\x01\0\0\0\0\0\0\0"
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        count += 1
    return count


def flood(task: Task) -> int:
    """Requests for what is not there, one behind the other, over 20 connections."""
    count, request = 0, b"GET /v1/queues/nobody-has-this HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with task.connections(20) as opened:
        while not task.is_over():
            for connection in opened:
                send(connection, request)
            for connection in opened:
                with contextlib.suppress(OSError):
                    connection.recv(65536)
            count += len(opened)
    return count


def pipelined_flood(task: Task) -> int:
    """A thousand requests in one piece of data."""
    count = 0
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            send(connection, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)
            with contextlib.suppress(OSError):
                connection.recv(1 << 20)
        count += 1
    return count


def slow_readers(task: Task) -> int:
    """They ask for megabytes and read nothing."""
    count = 0
    with task.connections(100) as opened:
        while not task.is_over():
            count += sum(send(connection, _PEEK) for connection in opened)
            time.sleep(0.5)
    return count


def hang_ups(task: Task) -> int:
    """Polls whose callers do not wait for the answer."""
    count, body = 0, b'{"wait_ms":20000}'
    head = _POLL + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
    while not task.is_over():
        with task.connections(20) as opened:
            for connection in opened:
                send(connection, head + body)
        count += 20
    return count


def many_connections(task: Task) -> int:
    """More connections than the gateway takes, which send nothing."""
    count = 0
    with contextlib.ExitStack() as stack:
        while not task.is_over():
            with contextlib.suppress(OSError):
                stack.enter_context(contextlib.closing(task.connect()))
                count += 1
    return count


ATTACKS: dict[str, Callable[[Task], int]] = {
    "slow headers": slow_headers,
    "slow bodies": slow_bodies,
    "huge bodies": huge_bodies,
    "endless headers": endless_headers,
    "garbage": garbage,
    "half requests": half_requests,
    "flood": flood,
    "pipelined flood": pipelined_flood,
    "slow readers": slow_readers,
    "hang-ups": hang_ups,
    "many connections": many_connections,
    "stream polls": long_polls,
    "stream readers": slow_stream_readers,
    "stream garbage": stream_garbage,
    "half appends": half_appends,
}
