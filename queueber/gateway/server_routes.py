"""Routes about the server itself."""

import msgspec

from queueber.gateway.calls import Call
from queueber.gateway.routes import NoQuery, Route


class ServerAnswer(msgspec.Struct):
    """The server's version and limits."""

    version: str
    durability: str
    item_bytes_max: int
    message_bytes_max: int
    poll_items_max: int
    poll_wait_ms_max: int
    started_at_ms: int
    is_protected: bool
    """Whether callers must authenticate."""
    refuses_writes: str
    """Why the server refuses writes at the moment; empty: it does not."""


class GrantAnswer(msgspec.Struct):
    role: str
    queues: list[str]
    topics: list[str]


class CallerAnswer(msgspec.Struct):
    """Who the caller is to the server, and what it may do."""

    name: str
    grants: list[GrantAnswer]
    expires_at_ms: int
    """When the credential ends; 0: never."""


async def show_server(call: Call[NoQuery, None]) -> ServerAnswer:
    info = await call.client.server()
    return ServerAnswer(
        info.version,
        info.durability,
        info.item_bytes_max,
        info.message_bytes_max,
        info.poll_items_max,
        info.poll_wait_ms_max,
        info.started_at_ms,
        info.is_protected,
        info.refuses_writes,
    )


async def who_am_i(call: Call[NoQuery, None]) -> CallerAnswer:
    return msgspec.convert(await call.client.who_am_i(), CallerAnswer, from_attributes=True)


ROUTES = (
    Route(
        "GET", "/v1", show_server, "Show the server's version and limits", "server",
        answer=ServerAnswer,
    ),
    Route(
        "GET", "/v1/whoami", who_am_i, "Show who the caller is to the server", "server",
        answer=CallerAnswer,
    ),
)  # fmt: skip
