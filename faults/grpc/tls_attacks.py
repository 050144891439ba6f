"""Attacks on a gRPC port that speaks TLS: those on any such port, and some after the handshake."""

import contextlib
import struct
from collections.abc import Callable
from functools import partial
from typing import cast

from faults.grpc.frames import PREFACE, SETTINGS, call, frame, message
from faults.grpc.said import PUBLISH
from faults.hostile import tls_attacks
from faults.hostile.attacks import Task as RpcTask
from faults.hostile.tls_socket import TlsSocket
from faults.http.task import Task

_HELLO = PREFACE + frame(SETTINGS, 0, 0)
_UNKNOWN_KIND = 250


def _on_any_port(attack: Callable[[RpcTask], int], task: Task) -> int:
    """Run one of those that say nothing of any protocol."""
    host, port = task.address
    return attack(RpcTask(f"{host}:{port}", task.random, task.seconds, task.tls))


def cut_off(task: Task) -> int:
    """Records that were changed, cut off, or sent twice, after a good handshake."""
    random, count = task.random, 0
    said = _HELLO + call(1, b"Publish") + message(1, PUBLISH, is_last=True)
    while not task.is_over():
        with contextlib.suppress(OSError), contextlib.closing(task.connect()) as connection:
            tls = cast(TlsSocket, connection)
            record = bytearray(tls.encrypted(said))
            match count % 3:
                case 0:
                    record[random.randrange(len(record))] ^= 1
                case 1:
                    del record[random.randrange(len(record)) :]
                case _:
                    record *= 2
            tls.plain.sendall(record)
        count += 1
    return count


def many_records(task: Task) -> int:
    """Frames in records of one byte each: as much work for as few bytes as possible."""
    count, ignored = 0, frame(_UNKNOWN_KIND, 0, 0, struct.pack(">I", 0)) * 20
    with task.connections(10) as connections:
        for each in connections:
            each.sendall(_HELLO)
        while not task.is_over():
            for each in connections:
                tls = cast(TlsSocket, each)
                records = [tls.encrypted(ignored[at : at + 1]) for at in range(len(ignored))]
                with contextlib.suppress(OSError):
                    tls.plain.sendall(b"".join(records))
                count += len(records)
    return count


TLS_ATTACKS: dict[str, Callable[[Task], int]] = {
    "tls: silent": partial(_on_any_port, tls_attacks.silent),
    "tls: shakes hands": partial(_on_any_port, tls_attacks.shakes_hands),
    "tls: only hello": partial(_on_any_port, tls_attacks.only_hello),
    "tls: garbage": partial(_on_any_port, tls_attacks.garbage),
    "tls: cut off": cut_off,
    "tls: many records": many_records,
}
