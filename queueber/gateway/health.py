"""`/healthz`: the process lives. `/readyz`: the server answers and takes writes."""

import msgspec

from queueber.gateway.calls import Call
from queueber.gateway.problems import too_busy
from queueber.gateway.routes import NoQuery, Route


class Health(msgspec.Struct):
    status: str


async def healthz(call: Call[NoQuery, None]) -> Health:
    return Health("ok")


async def readyz(call: Call[NoQuery, None]) -> Health:
    info = await call.client.server()
    if info.refuses_writes:
        raise too_busy(f"the server refuses writes: {info.refuses_writes}")
    return Health("ready")


ROUTES = (
    Route(
        "GET", "/healthz", healthz, "Whether this process lives", "health",
        answer=Health, uses_client=False, answer_example={"status": "ok"},
    ),
    Route(
        "GET", "/readyz", readyz, "Whether the server answers and takes writes", "health",
        answer=Health, answer_example={"status": "ready"},
    ),
)  # fmt: skip
