"""Whether the gateway lives, where clients of KalamDB ask for it."""

import msgspec

from queueber.gateway.calls import Call
from queueber.gateway.kalam.errors import kalam_error
from queueber.gateway.routes import NoQuery, Route
from queueber.version import VERSION


class KalamHealth(msgspec.Struct):
    status: str
    version: str
    api_version: str
    build_date: str | None


async def show_health(call: Call[NoQuery, None]) -> KalamHealth:
    return KalamHealth("healthy", VERSION, "v1", None)


ROUTES = tuple(
    Route(
        "GET", path, show_health, "Whether this process lives, as KalamDB", "kalamdb",
        answer=KalamHealth, uses_client=False, error_body=kalam_error,
        answer_example={
            "status": "healthy", "version": VERSION, "api_version": "v1", "build_date": None,
        },
    )
    for path in ("/v1/api/healthcheck", "/health")
)  # fmt: skip
