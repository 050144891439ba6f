"""What hostile callers do with connections and frames."""

import contextlib
import socket
import struct
from collections.abc import Callable
from random import Random

from faults.grpc.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    call,
    field,
    frame,
    head,
    message,
    opened,
    path_of,
    read_some,
)
from faults.grpc.said import CREDITS, EMPTY, PUBLISH, init, nested, odd
from faults.http.task import Task, send
from queueber.gateway.grpc import sluice_pb2 as wire

_PRIORITY, _PUSH_PROMISE, _GOAWAY = 2, 5, 7
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_METHODS = (
    *(path_of(each) for each in (b"Publish", b"BatchPublish", b"ListTopics", b"Subscribe")),
    b"/grpc.health.v1.Health/Check", b"/grpc.health.v1.Health/Watch",
    b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    b"/sluice.v1.Sluice/", b"/", b"*", b"http://a/b",
)  # fmt: skip
_BATCH = wire.BatchPublishRequest(topic="hostile", messages=[wire.BatchMessage()] * 3)


def _conversation() -> list[bytes]:
    """Frames that a normal client might send."""
    return [
        frame(SETTINGS, 0, 0),
        call(1, b"Publish"), message(1, PUBLISH, is_last=True),
        frame(WINDOW_UPDATE, 0, 0, (1 << 20).to_bytes(4)),
        call(3, b"Subscribe"), message(3, init(EMPTY, "cut")), message(3, CREDITS),
        frame(WINDOW_UPDATE, 0, 3, (1 << 20).to_bytes(4)),
        call(5, b"BatchPublish"), message(5, _BATCH.SerializeToString(), is_last=True),
        frame(PING, 0, 0, bytes(8)),
        frame(RST_STREAM, 0, 3, bytes([0, 0, 0, 8])),
        call(7, b"ListTopics"), message(7, b"", is_last=True),
    ]  # fmt: skip


def _close_at_once(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def cut_calls(task: Task) -> int:
    """Connections that end at any byte of what they say, with a reset or without."""
    count, whole = 0, PREFACE + b"".join(_conversation())
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            send(connection, whole[: task.random.randrange(len(whole))])
            if count % 2:
                _close_at_once(connection)
        count += 1
    return count


def comes_and_goes(task: Task) -> int:
    """Connects and disconnects as fast as possible."""
    count = 0
    while not task.is_over():
        with contextlib.closing(task.connect()) as connection:
            _close_at_once(connection)
        count += 1
    return count


def spliced_frames(task: Task) -> int:
    """Frames that are left out, come twice, or are replaced by others, with any content."""
    count, random = 0, task.random
    while not task.is_over():
        frames = _conversation()
        for _ in range(random.randrange(1, 6)):
            at = random.randrange(len(frames))
            other = random.choice([b"", frames[at] * 2, frames[at], _any_frame(random)])
            frames[at : at + random.randrange(3)] = [other]
        with contextlib.closing(task.connect()) as connection:
            send(connection, PREFACE + b"".join(frames))
            read_some(connection)
        count += 1
    return count


def _any_frame(random: Random) -> bytes:
    kind = random.choice(
        [DATA, HEADERS, _PRIORITY, RST_STREAM, SETTINGS, _PUSH_PROMISE, PING, _GOAWAY,
         WINDOW_UPDATE, CONTINUATION, 10, 255]
    )  # fmt: skip
    stream = random.choice([0, 1, 2, 3, 5, 9, 0x7FFF_FFFF, 0xFFFF_FFFF])
    content = random.choice(
        [b"", bytes(4), b"\xff" * 4, bytes(8), b"\x7f\xff\xff\xff", random.randbytes(40), bytes(6)]
    )
    return frame(kind, random.randrange(256), stream, content)


def strange_calls(task: Task) -> int:
    """Every method with the messages of others, with none, and with bytes that are no message."""
    count, random = 0, task.random
    bodies = [
        PUBLISH, CREDITS, init(EMPTY, "strange"), _BATCH.SerializeToString(), b"",
        nested(10), nested(200), nested(4000), b"\xff" * 100,
    ]  # fmt: skip
    with opened(task, 5) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                sent = frame(HEADERS, END_HEADERS, stream, head(b"", path=random.choice(_METHODS)))
                for _ in range(random.randrange(3)):
                    body = random.choice([*bodies, random.randbytes(50)])
                    sent += message(stream, body)
                sent += frame(DATA, 1, stream)
                send(connection, sent)
                count += 1
                if not read_some(connection):
                    return count
    return count


def nested_messages(task: Task) -> int:
    """Messages of megabytes of groups in groups, which would take a parser to the end of its
    stack."""
    count = 0
    with opened(task, 5) as connections:
        while not task.is_over():
            for connection in connections:
                stream = odd(count)
                if send(connection, call(stream, b"Publish")):
                    send(connection, message(stream, PUBLISH + nested(60_000), is_last=True))
                read_some(connection)
                count += 1
    return count


def packed_heads(task: Task) -> int:
    """Heads of a few kilobytes that stand for megabytes: one field, named again and again."""
    count, large = 0, b"\x40" + field(b"x-junk", b"j" * 3900)[1:]
    again = b"\xbe" * 16_000  # the newest field of the table, in a byte
    while not task.is_over():
        with opened(task, 1) as (connection,):
            send(connection, frame(HEADERS, END_HEADERS, 1, head(b"Publish") + large))
            send(connection, frame(HEADERS, END_HEADERS, 3, head(b"Publish") + again[:12_000]))
            while read_some(connection) and not task.is_over():
                count += send(connection, frame(HEADERS, END_HEADERS, 5 + 2 * count, again))
        count += 1
    return count


def empty_frames(task: Task) -> int:
    """Frames that carry nothing: data, windows of a byte, priorities, kinds that nobody knows."""
    count = 0
    nothing = (
        frame(DATA, 0, 1) * 50
        + frame(WINDOW_UPDATE, 0, 0, bytes([0, 0, 0, 1])) * 20
        + frame(_PRIORITY, 0, 3, bytes([0, 0, 0, 0, 1])) * 50
        + frame(250, 0, 0, b"") * 50
    )
    while not task.is_over():
        with opened(task, 5) as connections:
            for connection in connections:
                send(connection, call(1, b"Subscribe") + message(1, init(EMPTY, "empty")))
            while not task.is_over() and all(send(each, nothing) for each in connections):
                count += 170 * len(connections)
                for each in connections:
                    read_some(each)
    return count


FRAME_ATTACKS: dict[str, Callable[[Task], int]] = {
    "cut calls": cut_calls,
    "comes and goes": comes_and_goes,
    "spliced frames": spliced_frames,
    "strange calls": strange_calls,
    "nested messages": nested_messages,
    "packed heads": packed_heads,
    "empty frames": empty_frames,
}
