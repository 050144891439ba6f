"""`/healthz`: the process lives. `/readyz`: the server answers and takes writes."""

import asyncio
from typing import cast

import msgspec

from queueber.config import split_address
from queueber.errors import Unauthenticated, Unavailable
from queueber.gateway.calls import Call
from queueber.gateway.clients import ClientPool
from queueber.gateway.credentials import credential_of
from queueber.gateway.problems import too_busy
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.settings import GatewaySettings
from queueber.model import Credential

_CONNECT_SECONDS = 2.0
_PROTECTED = "server_is_protected"


class Health(msgspec.Struct):
    status: str


async def healthz(call: Call[NoQuery, None]) -> Health:
    return Health("ok")


async def readyz(call: Call[NoQuery, None]) -> Health:
    """A probe without a credential learns of a protected server only that it can be reached."""
    pool = cast(ClientPool, call.state["pool"])
    await check_ready(pool, call.settings, call.state, credential_of(call.headers))
    return Health("ready")


async def check_ready(
    pool: ClientPool,
    settings: GatewaySettings,
    state: dict[str, object],
    credential: Credential | None,
) -> None:
    """Raise an error unless the server answers and takes writes."""
    if credential is None and state.get(_PROTECTED):
        await _reach(settings.server)
        return
    try:
        async with pool.client_for(credential) as client:
            info = await client.server()
    except Unauthenticated:
        if credential is not None:
            raise
        # From now on it is not asked again, so its log has no refusal for each probe.
        state[_PROTECTED] = True
        return
    if info.refuses_writes:
        raise too_busy(f"the server refuses writes: {info.refuses_writes}")


async def _reach(server: str) -> None:
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(*split_address(server))
    except (OSError, TimeoutError):
        raise Unavailable(f"cannot reach a server at {server}") from None
    writer.close()


ROUTES = (
    Route(
        "GET", "/healthz", healthz, "Whether this process lives", "health",
        answer=Health, uses_client=False, answer_example={"status": "ok"},
    ),
    Route(
        "GET", "/readyz", readyz, "Whether the server answers and takes writes", "health",
        description="503 while it is opening, stopping or refusing writes. Without a credential "
        "the answer for a protected server says only whether it can be reached.",
        answer=Health, uses_client=False, answer_example={"status": "ready"},
    ),
)  # fmt: skip
