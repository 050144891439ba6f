"""One POST to an address that was checked. Redirects and proxies of the environment do not count.

`h11` reads the answer: it knows HTTP, and leaves the connection to us.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass
from functools import cache

import h11

from queueber.gateway.streams.subscriptions.webhooks.targets import Target
from queueber.limits import KIB

ANSWER_BYTES_MAX = 64 * KIB
_HEAD_BYTES_MAX = 16 * KIB
_READ_BYTES = 16 * KIB


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    """Empty if it was larger than `ANSWER_BYTES_MAX`."""


async def post(
    target: Target,
    address: str,
    headers: dict[str, str],
    body: bytes,
    *,
    tls: ssl.SSLContext | None = None,
) -> Reply:
    """Send the body to the address, for the host that the target names.

    Raises `OSError`, also if the answer is not HTTP. It takes as long as the other side does:
    whoever calls ends it.
    """
    reader, writer = await asyncio.open_connection(
        address,
        target.port,
        ssl=(tls or _public_authorities()) if target.is_https else None,
        server_hostname=target.host if target.is_https else None,
        limit=_READ_BYTES,
    )
    try:
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES_MAX)
        request = h11.Request(
            method="POST",
            target=target.path,
            headers=[
                ("host", target.host_header),
                ("content-length", str(len(body))),
                ("connection", "close"),
                *headers.items(),
            ],
        )
        for event in (request, h11.Data(body), h11.EndOfMessage()):
            writer.write(http.send(event) or b"")
        await writer.drain()
        return await _answer(http, reader)
    except h11.ProtocolError as error:
        raise ConnectionAbortedError(str(error)) from None
    finally:
        writer.close()
        with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(writer.wait_closed(), 1.0)


async def _answer(http: h11.Connection, reader: asyncio.StreamReader) -> Reply:
    status, parts, size = 0, [], 0
    while True:
        match http.next_event():
            case h11.NEED_DATA:
                http.receive_data(await reader.read(_READ_BYTES))
            case h11.Response() as response:
                status = response.status_code
            case h11.Data() as data:
                size += len(data.data)
                if size > ANSWER_BYTES_MAX:
                    return Reply(status, b"")
                parts.append(bytes(data.data))
            case h11.EndOfMessage():
                return Reply(status, b"".join(parts))
            case h11.ConnectionClosed() | h11.PAUSED:
                raise ConnectionAbortedError("the connection was closed before the answer")


@cache
def _public_authorities() -> ssl.SSLContext:
    return ssl.create_default_context()
