"""A thousand readers of one stream by server-sent events, and a few who append to it.

A message begins with its time. It is delivered when the generator has read it from the connection
of a reader; a time counts the append, its sync and the way through the generator's own loop.
"""

import re
import select
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.measure import SECOND_NS
from bench.peers.order import Order, Tally
from bench.streams.requests import KIB, TEXT, connected, is_answered, request, stream_path

_STAMP = re.compile(rb"T(\d{19});")
_READY = b"upToDate"
_RECEIVE_BYTES = 256 * KIB
_SILENCE_SECONDS_MAX = 60.0


@dataclass(slots=True)
class _Appender:
    opened: socket.socket
    stamp: int = 0
    """Of the message that not all readers have yet."""
    is_answered: bool = True
    partial: bytes = b""


@dataclass(slots=True)
class FanOut:
    """`order.callers` readers. With a count: so many messages a second, evenly. Without: `items`
    appenders, each of which appends again when all readers have its message."""

    port: int
    order: Order
    tally: Tally
    _readers: dict[int, socket.socket] = field(default_factory=dict)
    _tails: dict[int, bytes] = field(default_factory=dict)
    _appenders: dict[int, _Appender] = field(default_factory=dict)
    _missing: dict[int, int] = field(default_factory=dict)
    """By stamp: how many readers do not have that message yet."""
    _due_ns: int = 0

    def run(self) -> None:
        with ExitStack() as stack:
            waiting = stack.enter_context(select.epoll())
            for _ in range(self.order.callers):
                opened = stack.enter_context(connected(self.port))
                self._subscribe(opened)
                waiting.register(opened.fileno(), select.EPOLLIN)
            self._wait_until_ready(waiting)
            for _ in range(1 if self.order.count else self.order.items):
                appender = _Appender(connected(self.port))
                stack.callback(lambda each=appender: each.opened.close())  # type: ignore[misc]
                self._join(waiting, appender)
            self.tally.started_ns = self._due_ns = time.perf_counter_ns()
            self._measure(waiting)

    def _subscribe(self, opened: socket.socket) -> None:
        target = f"{stream_path(self.order.name)}?offset=-1&live=sse"
        opened.sendall(request("GET", target))
        self._readers[opened.fileno()] = opened
        self._tails[opened.fileno()] = b""

    def _wait_until_ready(self, waiting: select.epoll) -> None:
        """Every reader has been told that the stream is empty."""
        unready = set(self._readers)
        while unready:
            for number, _ in self._poll(waiting):
                self._tails[number] += self._receive(self._readers[number])
                if _READY in self._tails[number]:
                    unready.discard(number)
                    self._tails[number] = b""

    def _measure(self, waiting: select.epoll) -> None:
        while True:
            is_over = self.tally.is_over(self.order.seconds)
            if not is_over:
                self._append_what_is_due()
            elif not self._missing and all(e.is_answered for e in self._appenders.values()):
                return
            for number, _ in self._poll(waiting, is_over=is_over):
                appender = self._appenders.get(number)
                if appender is not None:
                    self._take_answer(waiting, appender)
                else:
                    self._take_events(number)

    def _append_what_is_due(self) -> None:
        for appender in self._appenders.values():
            if not appender.is_answered:
                continue
            now_ns = time.perf_counter_ns()
            if self.order.count:
                if now_ns < self._due_ns:
                    continue
                self._due_ns += SECOND_NS // self.order.count
            elif appender.stamp in self._missing:
                continue
            while now_ns in self._missing:
                now_ns += 1
            appender.stamp, appender.is_answered = now_ns, False
            self._missing[now_ns] = len(self._readers)
            body = (b"T%019d;" % now_ns).ljust(self.order.content_bytes, b".")
            target = stream_path(self.order.name)
            appender.opened.sendall(request("POST", target, body, kind=TEXT))

    def _join(self, waiting: select.epoll, appender: _Appender) -> None:
        self._appenders[appender.opened.fileno()] = appender
        waiting.register(appender.opened.fileno(), select.EPOLLIN)

    def _take_answer(self, waiting: select.epoll, appender: _Appender) -> None:
        data = appender.opened.recv(_RECEIVE_BYTES)
        if not data and appender.is_answered:
            # A server may close a connection that was idle while a message was on its way.
            waiting.unregister(appender.opened.fileno())
            del self._appenders[appender.opened.fileno()]
            appender.opened.close()
            appender.opened = connected(self.port)
            self._join(waiting, appender)
            return
        if not data:
            raise RuntimeError("the server hung up within an append")
        appender.partial += data
        if is_answered(appender.partial):
            appender.is_answered, appender.partial = True, b""

    def _take_events(self, number: int) -> None:
        data = self._tails[number] + self._receive(self._readers[number])
        now_ns = time.perf_counter_ns()
        tally, missing = self.tally, self._missing
        end = 0
        for found in _STAMP.finditer(data):
            stamp = int(found[1])
            end = found.end()
            tally.items += 1
            tally.samples_ns.append(now_ns - stamp)
            missing[stamp] -= 1
            if not missing[stamp]:
                del missing[stamp]
        tally.ended_ns = now_ns
        self._tails[number] = data[max(end, len(data) - KIB) :]

    def _poll(self, waiting: select.epoll, *, is_over: bool = True) -> list[tuple[int, int]]:
        seconds = _SILENCE_SECONDS_MAX
        if self.order.count and not is_over:
            seconds = max(0.0, (self._due_ns - time.perf_counter_ns()) / SECOND_NS)
        ready = waiting.poll(min(seconds, _SILENCE_SECONDS_MAX))
        if not ready and seconds == _SILENCE_SECONDS_MAX:
            raise RuntimeError(f"{len(self._missing)} messages are missing at some readers")
        return ready

    @staticmethod
    def _receive(opened: socket.socket) -> bytes:
        data = opened.recv(_RECEIVE_BYTES)
        if not data:
            raise RuntimeError("the server hung up on a reader")
        return data
