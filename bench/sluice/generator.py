"""Calls at a steady pace, over HTTP/2 by hand: so the generator takes little of the two cores.

A caller made with grpcio takes as much processor time as the gateway does.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from faults.grpc.frames import (
    DATA,
    END_STREAM,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    call,
    frame,
    message,
)

_ACK = 1
_WINDOW = 65_535
_HEAD_BYTES = 9
_CALLS_MAX = 100
"""Calls of a connection that are under way: as many as the gateway takes."""
_SECONDS_LEFT = 5.0
"""How long answers may take after the last call."""


@dataclass(slots=True)
class Measured:
    seconds: float = 0.0
    took: list[float] = field(default_factory=list)
    """Seconds from the time at which a call was due to its answer."""
    failed: int = 0

    @property
    def calls_per_second(self) -> float:
        return len(self.took) / self.seconds if self.seconds else 0.0

    def ms(self, fraction: float) -> float:
        ordered = sorted(self.took)
        return ordered[int(len(ordered) * fraction)] * 1000 if ordered else float("inf")


class _Connection:
    """One connection, and the calls on it that are not answered."""

    def __init__(self, address: tuple[str, int], measured: Measured) -> None:
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        more = (1 << 30).to_bytes(4)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(WINDOW_UPDATE, 0, 0, more))
        self._measured = measured
        self._window = _WINDOW
        self._next = 1
        self._due: dict[int, float] = {}
        self._answered: set[int] = set()
        self._waiting: deque[tuple[bytes, bytes, float]] = deque()
        self._received = b""

    @property
    def under_way(self) -> int:
        return len(self._due) + len(self._waiting)

    def send(self, method: bytes, body: bytes, due: float) -> None:
        self._waiting.append((method, body, due))
        self._send_waiting()

    def _send_waiting(self) -> None:
        sent = []
        while (
            self._waiting
            and len(self._due) < _CALLS_MAX
            and self._window > len(self._waiting[0][1]) + 5
        ):
            method, body, due = self._waiting.popleft()
            sent.append(call(self._next, method) + message(self._next, body, is_last=True))
            self._window -= len(body) + 5
            self._due[self._next] = due
            self._next += 2
        if sent:
            self.socket.sendall(b"".join(sent))

    def receive(self) -> None:
        received = self._received + self.socket.recv(1 << 20)
        at, end = 0, len(received)
        while end - at >= _HEAD_BYTES:
            size = int.from_bytes(received[at : at + 3])
            if end - at < _HEAD_BYTES + size:
                break
            kind, flags = received[at + 3], received[at + 4]
            stream = int.from_bytes(received[at + 5 : at + 9])
            self._handle(kind, flags, stream, received[at + 9 : at + 9 + size])
            at += _HEAD_BYTES + size
        self._received = received[at:]
        self._send_waiting()

    def _handle(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == DATA:
            self._answered.add(stream)
        elif kind == HEADERS and flags & END_STREAM:
            due = self._due.pop(stream)
            if stream in self._answered:
                self._answered.discard(stream)
                self._measured.took.append(time.perf_counter() - due)
            else:
                self._measured.failed += 1
        elif kind == WINDOW_UPDATE and stream == 0:
            self._window += int.from_bytes(payload)
        elif kind in (SETTINGS, PING) and not flags & _ACK:
            self.socket.sendall(frame(kind, _ACK, 0, payload if kind == PING else b""))


def run(
    address: tuple[str, int],
    method: bytes,
    body: Callable[[], bytes],
    *,
    rate: float,
    seconds: float,
    connections: int = 8,
) -> Measured:
    """`rate` calls a second for some seconds, whether their answers come or not."""
    measured = Measured()
    opened = [_Connection(address, measured) for _ in range(connections)]
    by_file = {each.socket.fileno(): each for each in opened}
    poll = select.poll()
    for number in by_file:
        poll.register(number, select.POLLIN)
    begun, sent, total = time.perf_counter(), 0, int(rate * seconds)
    give_up_at = begun + seconds + _SECONDS_LEFT
    while (now := time.perf_counter()) < give_up_at:
        while sent < total and (due := begun + sent / rate) <= now:
            opened[sent % connections].send(method, body(), due)
            sent += 1
        if sent == total and not any(each.under_way for each in opened):
            break
        left = (begun + sent / rate - now) * 1000 if sent < total else 100
        for number, _ in poll.poll(max(0, left)):
            by_file[number].receive()
    measured.seconds = time.perf_counter() - begun
    measured.failed += sum(each.under_way for each in opened)
    for each in opened:
        each.socket.close()
    return measured
