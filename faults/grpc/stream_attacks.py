"""What hostile callers do with streams and answers."""

import contextlib
import itertools
import queue
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from faults.grpc.frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    WINDOW_UPDATE,
    call,
    frame,
    head,
    message,
    opened,
    path_of,
    read_some,
    window_settings,
)
from faults.grpc.said import (
    BIG,
    CREDITS,
    EMPTY,
    SMALL,
    WRONG,
    ballast,
    init,
    init_with_ballast,
    odd,
)
from faults.http.task import Task, send

_WATCH = b"/grpc.health.v1.Health/Watch"
_REFLECTION = b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
_ALL_OF_IT = 0x7FFF_FFFF
_WIDE = frame(WINDOW_UPDATE, 0, 0, (_ALL_OF_IT - 65_535).to_bytes(4))
_LARGE = 5 << 20


def _asked(stream: int, path: bytes, body: bytes, *, is_last: bool = False) -> bytes:
    sent = frame(HEADERS, END_HEADERS, stream, head(b"", path=path))
    return sent + message(stream, body, is_last=is_last)


def waits_with_ballast(task: Task) -> int:
    """Streams that wait, each with a first message of 5 MB that says next to nothing. They keep to
    the windows of HTTP/2, so that all of it is taken."""
    count, size = 0, _LARGE - 200
    said = (
        (_WATCH, ballast(b"\x0a", size)),
        (_REFLECTION, ballast(b"\x22", size)),
        (path_of(b"Subscribe"), init_with_ballast(EMPTY, "ballast", size)),
    )
    never: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    calls: list[grpc.Call] = []
    with contextlib.ExitStack() as stack:
        channels = [stack.enter_context(_channel(task)) for _ in range(4)]
        while not task.is_over():
            path, first = said[count % len(said)]
            method: Any = channels[count % len(channels)].stream_stream(path.decode())
            calls.append(method(itertools.chain([first], iter(never.get, b""))))
            time.sleep(0.01)
            count += 1
        for each in calls:
            each.cancel()
        for _ in calls:
            never.put(b"")
    return count


def _channel(task: Task) -> grpc.Channel:
    """A connection of its own."""
    host, port = task.address
    address, options = f"{host}:{port}", [("grpc.use_local_subchannel_pool", 1)]
    if task.tls is None or task.tls.ca is None:
        return grpc.insecure_channel(address, options)
    trusted = grpc.ssl_channel_credentials(Path(task.tls.ca).read_bytes())
    return grpc.secure_channel(address, trusted, options)


def unread_answers(task: Task) -> int:
    """Asks for lists and descriptions again and again, and reads none of them."""
    count, files = 0, ballast(b"\x1a", 0) + b"\x22\x10sluice.v1.Sluice"
    with opened(task, 10, window_settings(_ALL_OF_IT) + _WIDE) as connections:
        while not task.is_over():
            for connection in connections:
                asked = message(odd(count), b"", is_last=True)
                sent = call(odd(count), b"ListTopics") + asked
                sent += _asked(odd(count + 1), _REFLECTION, files) * (count % 4 == 0)
                connection.settimeout(0.05)
                send(connection, sent)
                count += 2
    return count


def drip_readers(task: Task) -> int:
    """Streams over messages of megabytes, of which a byte is read at a time."""
    count = 0
    with opened(task, 20, window_settings(0) + _WIDE) as connections:
        for at, connection in enumerate(connections):
            stream = call(1, b"Subscribe") + message(1, init(BIG, f"drip-{at}"))
            send(connection, stream + message(1, CREDITS))
        drop = frame(WINDOW_UPDATE, 0, 1, bytes([0, 0, 0, 1])) * 20
        while not task.is_over():
            for connection in connections:
                count += send(connection, drop)
                read_some(connection)
            time.sleep(0.001)
    return count


def open_calls(task: Task) -> int:
    """Calls that are answered, and whose callers go on as if they were not."""
    count = 0
    with opened(task, 10) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                send(connection, call(stream, b"Publish") + message(stream, WRONG))
                read_some(connection)
                send(connection, frame(DATA, 0, stream, bytes(1000)) * 4)
                send(connection, frame(WINDOW_UPDATE, 0, 0, bytes([0, 0, 16, 0])))
                count += 1
            time.sleep(0.001)
    return count


def never_acknowledges(task: Task) -> int:
    """Reads all that its streams are sent, acknowledges nothing, and subscribes again."""
    count = 0
    with opened(task, 10, window_settings(_ALL_OF_IT) + _WIDE) as connections:
        while not task.is_over():
            for at, connection in enumerate(connections):
                stream = odd(count)
                sent = call(stream, b"Subscribe") + message(stream, init(SMALL, f"never-{at}"))
                count += send(connection, sent + message(stream, CREDITS))
                read_some(connection)
            time.sleep(0.05)
    return count


def takes_over(task: Task) -> int:
    """Streams of one group that take over from each other as fast as possible."""
    count = 0
    with opened(task, 10, window_settings(_ALL_OF_IT) + _WIDE) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                sent = call(stream, b"Subscribe") + message(stream, init(SMALL, "taken"))
                count += send(connection, sent + message(stream, CREDITS))
                read_some(connection)
            time.sleep(0.002)
    return count


def many_waiting(task: Task) -> int:
    """A stream that waits on each of as many connections as the gateway takes."""
    count, said = 0, PREFACE + window_settings(_ALL_OF_IT)
    connections = []
    try:
        while not task.is_over():
            connection = task.connect()
            connections.append(connection)
            stream = call(1, b"Subscribe") + message(1, init(EMPTY, f"waiting-{count % 50}"))
            count += send(connection, said + stream + message(1, CREDITS))
    except OSError:
        pass  # it takes no more
    finally:
        for each in connections:
            each.close()
    return count


def refused_later(task: Task) -> int:
    """Streams that begin as they should, and then say what no call may: all that they took must be
    given back."""
    count, packed, huge = 0, b"\1\0\0\0\1x", b"\0" + (1 << 24).to_bytes(4)
    with opened(task, 20) as connections:
        while not task.is_over():
            begun = [odd(count + at) for at in range(len(connections))]
            for connection, stream in zip(connections, begun, strict=True):
                first = init(EMPTY, f"refused-{stream % 90}")
                said = ((path_of(b"Subscribe"), first), (_WATCH, b""), (_REFLECTION, b"\x3a\0"))
                send(connection, _asked(stream, *said[stream % len(said)]))
                if stream % len(said) == 0:
                    send(connection, message(stream, CREDITS))
            time.sleep(0.03)  # their handlers begin
            for connection, stream in zip(connections, begun, strict=True):
                wrong = (
                    frame(DATA, 0, stream, packed),
                    frame(DATA, 0, stream, huge),
                    frame(DATA, END_STREAM, stream, huge),
                    message(stream, bytes(16_000)) * 8 + frame(DATA, 0, stream, packed),
                )
                send(connection, wrong[stream // 2 % len(wrong)])
                read_some(connection)
            count += len(connections)
    return count


STREAM_ATTACKS: dict[str, Callable[[Task], int]] = {
    "waits with ballast": waits_with_ballast,
    "unread answers": unread_answers,
    "drip readers": drip_readers,
    "open calls": open_calls,
    "never acknowledges": never_acknowledges,
    "takes over": takes_over,
    "many waiting": many_waiting,
    "refused later": refused_later,
}
