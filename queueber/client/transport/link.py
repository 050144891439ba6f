"""One live RPC connection: the server, its limits, and capabilities of queues and topics."""

import asyncio
import contextlib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

import capnp

from queueber.client.transport.client_stream import ClientStream, connect_stream
from queueber.client.transport.identity import NOBODY, Identity
from queueber.client.transport.tls_failures import (
    HANDSHAKE_FAILURES,
    handshake_failure,
    hung_up,
)
from queueber.config import split_address
from queueber.errors import Internal, InvalidArgument, QueueberError, Unavailable, from_wire
from queueber.limits import CLIENT_NAME_BYTES_MAX, MESSAGE_BYTES_CEILING, QUEUES_MAX
from queueber.model import Credential, ServerInfo
from queueber.schema import wire
from queueber.tls import TlsOptions, client_context
from queueber.wire.callers import write_credential
from queueber.wire.queues import read_server_info

_CLOSE_SECONDS_MAX = 1.0
"""How long a connection whose credential was refused may take to close."""
_TRAVERSAL_WORDS = 4 * MESSAGE_BYTES_CEILING // 8


@dataclass(frozen=True, slots=True)
class Target:
    """Where the server is, how long to try, and how its log names this client.

    A call that certainly had no effect is retried for `retry_seconds`.
    """

    address: str
    connect_seconds: float
    retry_seconds: float
    name: str
    identity: Identity = NOBODY
    tls: TlsOptions | None = None


@dataclass(frozen=True, slots=True)
class QueueRef:
    """A queue by name. Unless it `must_exist`, asking for its capability creates it."""

    name: str
    must_exist: bool

    def ask(self, service: Any) -> Any:
        """Its capability. Usable at once: calls are pipelined behind the request for it."""
        return service.queue(self.name, self.must_exist).queue


@dataclass(frozen=True, slots=True)
class TopicRef:
    """A topic by name; as for queues."""

    name: str
    must_exist: bool

    def ask(self, service: Any) -> Any:
        return service.topic(self.name, self.must_exist).topic


@dataclass(frozen=True, slots=True)
class GroupRef:
    """A shared group of a topic, which is used as a queue."""

    topic: TopicRef
    name: str

    def ask(self, service: Any) -> Any:
        return self.topic.ask(service).group(self.name).queue


Ref = QueueRef | TopicRef | GroupRef
"""What names the object that a call is sent to."""


class Link:
    def __init__(self, stream: Any, socket: ClientStream) -> None:
        self._stream = stream
        self.socket = socket
        self._client = capnp.TwoPartyClient(stream, traversal_limit_in_words=_TRAVERSAL_WORDS)
        self.service = self._client.bootstrap().cast_as(wire.Service)
        self._capabilities: dict[Ref, Any] = {}
        self.server = ServerInfo("", "", 0, 0, 0, 0)
        self.is_lost = asyncio.Event()

    def authenticate(self, credential: Credential) -> Any:
        """Say who we are; from now on, calls go to the service that the server answers with."""
        request = self.service.authenticate_request()
        write_credential(request.init("credential"), credential)
        answer = request.send()
        self.service = answer.service
        return answer

    def capability(self, ref: Ref) -> Any:
        """The capability of a queue, a topic or a group."""
        found = self._capabilities.get(ref)
        if found is None:
            if len(self._capabilities) >= QUEUES_MAX:
                self._capabilities.clear()
            found = self._capabilities[ref] = ref.ask(self.service)
        return found

    def forget(self, ref: Ref) -> None:
        """Request the capability again next time: the request for it may have failed."""
        self._capabilities.pop(ref, None)

    def forget_queue(self, name: str) -> None:
        """The queue is deleted."""
        self.forget(QueueRef(name, False))
        self.forget(QueueRef(name, True))

    def forget_topic(self, name: str) -> None:
        """The topic is deleted, and its groups with it."""
        topics = (TopicRef(name, False), TopicRef(name, True))
        for ref in list(self._capabilities):
            if (ref.topic if isinstance(ref, GroupRef) else ref) in topics:
                self.forget(ref)

    async def wait_lost(self) -> None:
        """Return once the connection has ended."""
        with contextlib.suppress(capnp.KjException):
            await self._client.on_disconnect()
        self.is_lost.set()

    def close(self) -> None:
        self._capabilities.clear()
        self.is_lost.set()
        self._stream.close()

    async def wait_closed(self) -> None:
        """Return once the server knows, too: with TLS that takes a round trip."""
        await self.socket.is_over.wait()


async def open_link(target: Target) -> Link:
    """Connect, say who we are, and ask the server to describe itself.

    Raises `Unavailable` when none answers.
    """
    address, tls = target.address, target.tls
    host, port = split_address(address)
    server_name = tls.server_name if tls is not None else None
    context = client_context(tls) if tls is not None else None
    try:
        stream, socket = await connect_stream(host, port, context, server_name)
    except OSError as error:
        if tls is not None and isinstance(error, HANDSHAKE_FAILURES):
            raise handshake_failure(address, server_name or host, error) from None
        raise Unavailable(
            f"cannot reach a server at {address} ({_reason(error)}); "
            "start one with 'queueber serve', or check the address"
        ) from None
    except UnicodeError:
        raise InvalidArgument(f"address: {host!r} is not a host name") from None
    link = Link(stream, socket)
    try:
        credential = await target.identity.credential()
        answers = [] if credential is None else [link.authenticate(credential)]
        # The question follows at once, without waiting for the answer to the first.
        described = link.service.describe()
        for answer in answers:
            await answer
        link.server = read_server_info((await described).server)
        await _say_hello(link, target.name or program_name())
    except capnp.KjException as failure:
        link.close()
        if tls is not None:
            # Else the loop may end before the socket is closed, and leave it open.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(link.wait_closed(), _CLOSE_SECONDS_MAX)
        if failure.type == "DISCONNECTED":
            raise hung_up(address, is_tls=tls is not None, failure=socket.failure) from None
        raise _refusal(address, failure) from None
    except BaseException:
        link.close()
        raise
    return link


def _reason(error: OSError) -> str:
    """The operating system's words: asyncio replaces them with its own."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def program_name() -> str:
    """What a client is called that was given no name."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    return name if _is_usable(name) and name not in ("", "-c", "-m", "-") else "python"


def _is_usable(name: str) -> bool:
    """Whether a server takes it. A name that is not UTF-8 cannot be printed."""
    return name.isprintable() and len(name.encode()) <= CLIENT_NAME_BYTES_MAX


async def _say_hello(link: Link, name: str) -> None:
    try:
        host = gethostname()
        await link.service.hello(name, host if _is_usable(host) else "", os.getpid())
    except capnp.KjException as failure:
        if failure.type != "UNIMPLEMENTED":  # a server of an earlier version
            raise


def _refusal(address: str, failure: Any) -> QueueberError:
    error = error_of(failure.description)
    if isinstance(error, Internal):
        return Internal(f"{address} does not speak Queueber: {failure.description}")
    return error


# --- what a server refuses, in the words of the Python API ----------------------------------------

_FIELD = re.compile(r"[A-Za-z.]+(?=: )")
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")

_ARGUMENTS = {
    "numItems": "count",
    "leaseValidity": "lease",
    "visibilityTimeout": "delay",
    "delaysMs": "delay",
    "errors": "error",
    "items": "contents",
    "forMs": "seconds",
    "timeoutMs": "timeout",
    "producer.id": "producer",
    "producer.epoch": "epoch",
    "producer.sequence": "sequence",
    "leases": "lease",
}
"""Other fields have the same name in Python, written with underscores."""


def error_of(wire_text: str) -> QueueberError:
    """The error that a server sent.

    Servers name the fields of the wire schema. Callers know arguments, so the field at the
    beginning of a message is replaced by the argument that it came from.
    """
    error = from_wire(wire_text)
    text = str(error)
    field = _FIELD.match(text)
    if field is None or isinstance(error, Internal):
        return error
    argument = _ARGUMENTS.get(field[0]) or _CAPITAL.sub(r"_\1", field[0]).lower()
    return type(error)(argument + text[field.end() :])
