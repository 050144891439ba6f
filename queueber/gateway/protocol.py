"""A connection with bounds: uvicorn's own protocol has none for slow or endless senders.

Every connection has a deadline for what its peer has to do next: send the head of a request, send
its body, read the answer, or send the next request. One task looks at all of them once a second,
which costs less than a timer for each. A connection that misses its deadline is cut.
"""

import asyncio
import socket
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from queueber.gateway.problems import PROBLEM_TYPE, Problem, too_busy
from queueber.gateway.sending import CONNECTION
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.unread import UnreadAnswers
from queueber.limits import KIB, SECOND_MS

NEVER = float("inf")
_WATCH_SECONDS = 1.0
_URL_BYTES_MAX = 8 * KIB
_BUFFER_BYTES_MAX = 16 * KIB
"""Bytes that a transport keeps for a caller that does not read, before they are counted."""
_KERNEL_BYTES_MAX = 128 * KIB
"""Bytes that the system takes before it has sent those that it took before."""
_NOT_HTTP = Problem(400, "INVALID_ARGUMENT", "this is no request of HTTP/1.1")


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `bounded` makes a class with the settings of a gateway."""

    gateway_settings: GatewaySettings
    unread: UnreadAnswers

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.deadline = NEVER
        """When the caller must have sent what is expected next."""
        self.read_deadline = NEVER
        """When the caller must have read the answer."""
        self._held_bytes = 0
        """Bytes of the answer that are not with the transport yet."""
        self._buffered_bytes = 0
        """Bytes with the transport, counted when it has too many."""
        self._problem: Problem | None = None
        """Why the parser was stopped."""
        self._is_deaf = False
        """Whether what else comes is not read: it follows a request that is not answered yet."""
        self._in_body = False
        self._received_bytes = 0
        """Bytes of the head that is being received, as they came."""
        self._head_bytes = 0
        """Bytes of its address and headers, as they were read."""

    # --- what the peer has to do next -------------------------------------------------------------

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete

    def _expect(self, timeout_ms: int) -> None:
        self.deadline = self.loop.time() + timeout_ms / SECOND_MS

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_BUFFER_BYTES_MAX)
        _keep_little_in_the_kernel(transport.get_extra_info("socket"))
        settings = self.gateway_settings
        self._expect(settings.header_timeout_ms)
        if len(self.connections) > settings.connections_max:
            self._refuse(too_busy(f"the gateway has {settings.connections_max} connections"))

    def data_received(self, data: bytes) -> None:
        if self._is_deaf or self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        if not self._in_body:
            if not self._received_bytes:
                self._expect(self.gateway_settings.header_timeout_ms)
            self._received_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_deaf = True  # the request itself is answered; nothing is upgraded
        except httptools.HttpParserError:
            if not self._is_deaf:
                self._refuse(self._problem or _NOT_HTTP)
        else:
            if self._received_bytes > self.gateway_settings.header_bytes_max and not self._in_body:
                self._refuse(self._head_too_large())

    # --- called by the parser ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(dict[str, object], self.scope)[CONNECTION] = self
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_head(len(url))
        if len(self.url) > _URL_BYTES_MAX:
            detail = f"path: it has more than {_URL_BYTES_MAX} bytes"
            self._stop_with(Problem(414, "INVALID_ARGUMENT", detail))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_head(len(name) + len(value) + 4)

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.gateway_settings.header_bytes_max:
            self._stop_with(self._head_too_large())

    def on_headers_complete(self) -> None:
        if self._is_answering:
            # A second request before the answer to the first: only the first is answered. Reading
            # goes on meanwhile, so a caller that hangs up is noticed.
            self.cycle.keep_alive = False
            self._is_deaf = True
            raise _ParserStopped
        self._in_body = True
        self._expect(self.gateway_settings.body_timeout_ms)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_body = False
        self._received_bytes = 0
        self.deadline = NEVER

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_body:
            self._unset_keepalive_if_required()
            self._expect(self.gateway_settings.idle_timeout_ms)

    # --- what the peer has not read ---------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.read_deadline is NEVER:
            timeout = self.gateway_settings.answer_timeout_ms / SECOND_MS
            self.read_deadline = self.loop.time() + timeout
        self._count_buffered(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._count_buffered(0)
        self._has_read()

    @property
    def is_full(self) -> bool:
        return bool(self.flow.write_paused)

    @property
    def is_gone(self) -> bool:
        return bool(self.transport.is_closing())

    def hold(self, size: int) -> None:
        """So many bytes more, or fewer, of an answer are kept until the transport takes them."""
        self._held_bytes += size
        self.unread.change(self, size)
        self._has_read()

    def _count_buffered(self, size: int) -> None:
        change, self._buffered_bytes = size - self._buffered_bytes, size
        self.unread.change(self, change)

    def _has_read(self) -> None:
        """The deadline is one for the whole answer, of which there is more to send or not."""
        if not self._held_bytes and not self.flow.write_paused:
            self.read_deadline = NEVER

    def hang_up(self) -> None:
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.unread.forget(self)

    # --- refusing ---------------------------------------------------------------------------------

    def _head_too_large(self) -> Problem:
        limit = self.gateway_settings.header_bytes_max
        return Problem(431, "INVALID_ARGUMENT", f"headers: they have more than {limit} bytes")

    def _stop_with(self, problem: Problem) -> None:
        self._problem = problem
        raise _ParserStopped

    def _refuse(self, problem: Problem) -> None:
        """Answer, and hang up: what follows is not read."""
        if self._is_answering:
            self.transport.abort()
            return
        body = problem.body()
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"content-type: {PROBLEM_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
        )
        head += "".join(f"{name}: {value}\r\n" for name, value in problem.headers.items())
        self.transport.write(head.encode() + b"\r\n" + body)
        self.transport.close()


def _keep_little_in_the_kernel(opened: socket.socket | None) -> None:
    """Have the system take so much, and not megabytes, for a caller that does not read: nobody
    could count those."""
    if opened is not None and opened.family in (socket.AF_INET, socket.AF_INET6):
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_BYTES_MAX)


class _ParserStopped(Exception):
    """Raised inside a callback of the parser, which then raises an error of its own."""


def bounded(settings: GatewaySettings, unread: UnreadAnswers) -> type[BoundedProtocol]:
    """The protocol with these bounds."""
    members = {"gateway_settings": settings, "unread": unread}
    return type("Bounded", (BoundedProtocol,), members)


async def watch(state: ServerState) -> None:
    """Cut connections that missed their deadline, until it is cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        now = loop.time()
        for connection in list(state.connections):
            assert isinstance(connection, BoundedProtocol)
            if now > connection.deadline or now > connection.read_deadline:
                connection.transport.abort()
