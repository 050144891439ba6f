"""Attacks on a port that speaks TLS: before, during and after the handshake."""

import contextlib
import socket
import ssl
import time
from contextlib import ExitStack
from typing import cast

from faults.hostile.attacks import Attack, Task
from faults.hostile.messages import bootstrap, call
from faults.hostile.raw import Raw
from faults.hostile.tls_socket import TlsSocket
from queueber.tls import TlsOptions, client_context

_SILENT = 1000
_TLS_1_2_HELLO_BYTES = 5
"""Of a record: its kind, version and length."""


def _hello(task: Task) -> bytes:
    """The first message of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = client_context(task.tls or TlsOptions())
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def _plain(task: Task) -> socket.socket:
    host, port = task.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=10)


def silent(task: Task) -> int:
    """As many callers as handshakes are allowed, and more: each says nothing, or half a hello."""
    hello, count = _hello(task), 0
    with ExitStack() as stack:
        for number in task.goes_on():
            if number >= _SILENT:
                time.sleep(0.05)
                continue
            with contextlib.suppress(OSError):
                opened = stack.enter_context(_plain(task))
                opened.sendall(hello[: number % len(hello)])
                count += 1
    return count


def shakes_hands(task: Task) -> int:
    """Handshakes as fast as possible, and nothing after them."""
    count = 0
    for _ in task.goes_on():
        with contextlib.suppress(OSError), task.connect() as raw:
            raw.reset()
            count += 1
    return count


def only_hello(task: Task) -> int:
    """Has the server sign its part of a handshake, and leaves."""
    hello, count = _hello(task), 0
    for _ in task.goes_on():
        with contextlib.suppress(OSError), _plain(task) as plain:
            plain.sendall(hello)
            plain.recv(1 << 16)
            count += 1
    return count


def garbage(task: Task) -> int:
    """Bytes that are no handshake, or begin like one."""
    hello, random, count = _hello(task), task.random, 0
    for _ in task.goes_on():
        data = bytearray(hello if random.random() < 0.7 else random.randbytes(2000))
        for _ in range(random.randrange(1, 20)):
            data[random.randrange(len(data))] = random.randrange(256)
        with contextlib.suppress(OSError), _plain(task) as plain:
            plain.sendall(data[: random.randrange(_TLS_1_2_HELLO_BYTES, len(data))])
            plain.settimeout(0.003)
            plain.recv(1 << 16)
            count += 1
    return count


def cut_off(task: Task) -> int:
    """Records that were changed, cut off, or sent twice, after a good handshake."""
    random, count = task.random, 0
    for number in task.goes_on():
        with contextlib.suppress(OSError), task.connect() as raw:
            tls = cast(TlsSocket, raw.socket)
            record = bytearray(tls.encrypted(bootstrap() + call(1, "stats")))
            kind = number % 3
            if kind == 0:
                record[random.randrange(len(record))] ^= 1
            elif kind == 1:
                del record[random.randrange(len(record)) :]
            else:
                record *= 2
            tls.plain.sendall(record)
            if number % 2:
                raw.reset()
            count += 1
    return count


def many_records(task: Task) -> int:
    """Messages in records of one byte each: as much work for as few bytes as possible."""
    count = 0
    with ExitStack() as stack:
        streams: list[Raw] = [stack.enter_context(task.connect()) for _ in range(10)]
        for _ in task.goes_on():
            for raw in streams:
                tls = cast(TlsSocket, raw.socket)
                records = [tls.encrypted(b"\0") for _ in range(200)]
                with contextlib.suppress(OSError):
                    tls.plain.sendall(b"".join(records))
                count += 200
    return count


TLS_ATTACKS: dict[str, Attack] = {
    "tls: silent": Attack(silent),
    "tls: shakes hands": Attack(shakes_hands),
    "tls: only hello": Attack(only_hello),
    "tls: garbage": Attack(garbage),
    "tls: cut off": Attack(cut_off),
    "tls: many records": Attack(many_records),
}
