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


async def show_server(call: Call[NoQuery, None]) -> ServerAnswer:
    info = await call.client.server()
    return ServerAnswer(
        info.version,
        info.durability,
        info.item_bytes_max,
        info.message_bytes_max,
        info.poll_items_max,
        info.poll_wait_ms_max,
    )


ROUTES = (
    Route(
        "GET", "/v1", show_server, "Show the server's version and limits", "server",
        answer=ServerAnswer,
    ),
)  # fmt: skip
