"""What hostile callers do to a gRPC port. Each attack runs for some seconds and counts."""

import contextlib
import gzip
import socket
import time
from collections.abc import Callable

from faults.grpc.frame_attacks import FRAME_ATTACKS
from faults.grpc.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    FRAME_BYTES,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    call,
    field,
    frame,
    head,
    message,
    opened,
    read_some,
    window_settings,
)
from faults.grpc.said import BIG, CREDITS, EMPTY, PUBLISH, WRONG, init, odd
from faults.grpc.stream_attacks import STREAM_ATTACKS
from faults.http.task import Task, send


def garbage(task: Task) -> int:
    """Bytes that are no HTTP/2, and frames with some bytes changed."""
    count = 0
    whole = PREFACE + frame(SETTINGS, 0, 0) + call(1, b"Publish") + message(1, PUBLISH)
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            changed = bytearray(whole)
            for _ in range(task.random.randrange(1, 8)):
                changed[task.random.randrange(len(PREFACE), len(whole))] = task.random.randrange(
                    256
                )
            send(connection, bytes(changed) if count % 2 else task.random.randbytes(1000))
        count += 1
    return count


def slow_hellos(task: Task) -> int:
    """A byte of the preface now and then, or nothing at all, over many connections."""
    count = 0
    with task.connections(500) as connections:
        for at in range(len(PREFACE)):
            for connection in connections[::2]:
                count += send(connection, PREFACE[at : at + 1])
            if task.is_over():
                break
            time.sleep(0.2)
    return count


def half_calls(task: Task) -> int:
    """Calls whose message does not come: its head alone, or all but the last byte."""
    count = 0
    with opened(task, 20) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                sent = call(stream, b"Publish") + message(stream, PUBLISH)[:-1]
                count += send(connection, sent if count % 2 else call(stream, b"Publish"))
                read_some(connection)
            time.sleep(0.001)
    return count


def huge_messages(task: Task) -> int:
    """Messages of megabytes without their ends, and some that are said to have gigabytes."""
    count, part = 0, frame(DATA, 0, 1, bytes(FRAME_BYTES))
    with opened(task, 50) as connections:
        for connection in connections:
            size = 0xFFFF_FFFF if count % 2 else 5 << 20
            begin = frame(DATA, 0, 1, b"\0" + size.to_bytes(4))
            send(connection, call(1, b"Publish") + begin)
            connection.setblocking(False)
            count += 1
        while not task.is_over():
            for connection in connections:
                with contextlib.suppress(OSError):
                    count += connection.send(part * 16) // len(part)
            time.sleep(0.005)
    return count


def packed_messages(task: Task) -> int:
    """A few bytes that are said to be compressed, and are a gigabyte."""
    count, bomb = 0, gzip.compress(bytes(1 << 26))
    packed = field(b"grpc-encoding", b"gzip")
    with opened(task, 20) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                sent = call(stream, b"Publish", packed)
                count += send(connection, sent + message(stream, bomb, is_packed=True))
                read_some(connection)
    return count


def huge_heads(task: Task) -> int:
    """Metadata above the limit, and heads without an end."""
    count = 0
    while not task.is_over():
        with opened(task, 1) as (connection,):
            if count % 2:
                many = field(b"x-junk", b"j" * 4000) * 4
                send(connection, frame(HEADERS, 0, 1, head(b"Publish")))
                while not task.is_over() and send(connection, frame(CONTINUATION, 0, 1, many)):
                    count += 1
            else:
                large = field(b"x-junk", b"j" * 15_000)
                send(connection, frame(HEADERS, 0, 1, head(b"Publish")))
                for _ in range(8):
                    send(connection, frame(CONTINUATION, 0, 1, large))
                send(connection, frame(CONTINUATION, END_HEADERS, 1))
                time.sleep(0.005)
        count += 1
    return count


def flood(task: Task) -> int:
    """Publishes that are refused, as fast as they go out."""
    count = 0
    with opened(task, 10) as connections:
        while not task.is_over():
            for connection in connections:
                sent = b"".join(
                    call(odd(count + at), b"Publish")
                    + message(odd(count + at), WRONG, is_last=True)
                    for at in range(10)
                )
                if send(connection, sent):
                    count += 10
                read_some(connection)
            time.sleep(0.002)
    return count


def resets(task: Task) -> int:
    """Calls that are cancelled as soon as they are made."""
    count = 0
    with opened(task, 5) as connections:
        while not task.is_over():
            for connection in connections:
                sent = b"".join(
                    call(odd(count + at), b"Subscribe")
                    + message(odd(count + at), init(EMPTY, "resets"))
                    + frame(RST_STREAM, 0, odd(count + at), bytes([0, 0, 0, 8]))
                    for at in range(20)
                )
                if send(connection, sent):
                    count += 20
                read_some(connection)
            time.sleep(0.005)
    return count


def many_streams(task: Task) -> int:
    """More streams than there may be, which say nothing or wait for what never comes."""
    count = 0
    with opened(task, 10) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                sent = call(stream, b"Subscribe")
                if count % 2:
                    sent += message(stream, init(EMPTY, f"g{count % 50}"))
                count += send(connection, sent)
                read_some(connection)
            time.sleep(0.002)
    return count


def slow_readers(task: Task) -> int:
    """Streams with all credits there are over messages of megabytes, which nobody reads."""
    count = 0
    with opened(task, 60, window_settings(0x7FFF_FFFF)) as connections:
        while not task.is_over():
            for at, connection in enumerate(connections):
                stream = odd(count)
                group = f"g{at % 50}" if count < 200 else f"g{count % 50}"
                sent = call(stream, b"Subscribe") + message(stream, init(BIG, group))
                count += send(connection, sent + message(stream, CREDITS))
            time.sleep(0.2)
    return count


def shut_windows(task: Task) -> int:
    """The same, with windows that are shut: they say at once that they read nothing."""
    count = 0
    with opened(task, 60, window_settings(0)) as connections:
        while not task.is_over():
            for at, connection in enumerate(connections):
                stream = odd(count)
                sent = call(stream, b"Subscribe") + message(stream, init(BIG, f"g{at % 50}"))
                count += send(connection, sent + message(stream, CREDITS))
            time.sleep(0.2)
    return count


def pings(task: Task) -> int:
    """Nothing but pings and settings."""
    count, ping = 0, frame(PING, 0, 0, bytes(8)) * 50 + frame(SETTINGS, 0, 0) * 50
    while not task.is_over():
        with opened(task, 1) as (connection,):
            while not task.is_over() and send(connection, ping) and read_some(connection):
                count += 100
    return count


def hang_ups(task: Task) -> int:
    """Callers that are gone before the answer, with a reset or without."""
    count, reset = 0, b"\x01\0\0\0\0\0\0\0"
    while not task.is_over():
        with opened(task, 10) as connections:
            for connection in connections:
                send(connection, call(1, b"Publish") + message(1, PUBLISH, is_last=True))
                if task.random.random() < 0.5:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        count += 10
    return count


def many_connections(task: Task) -> int:
    """More connections than the gateway takes; they say hello, and then nothing."""
    count = 0
    with contextlib.ExitStack() as stack:
        while not task.is_over():
            with contextlib.suppress(OSError):
                connection = stack.enter_context(contextlib.closing(task.connect()))
                send(connection, PREFACE + frame(SETTINGS, 0, 0))
                count += 1
    return count


ATTACKS: dict[str, Callable[[Task], int]] = {
    "garbage": garbage,
    "slow hellos": slow_hellos,
    "half calls": half_calls,
    "huge messages": huge_messages,
    "packed messages": packed_messages,
    "huge heads": huge_heads,
    "flood": flood,
    "resets": resets,
    "many streams": many_streams,
    "slow readers": slow_readers,
    "shut windows": shut_windows,
    "pings": pings,
    "hang-ups": hang_ups,
    "many connections": many_connections,
    **FRAME_ATTACKS,
    **STREAM_ATTACKS,
}
