"""The public keys of webhooks, for those who get one."""

import msgspec
from starlette.responses import Response

from queueber.gateway.calls import Call
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.streams.subscriptions import state

_TYPE = "application/jwk-set+json"
_SECONDS = 300


async def show_keys(call: Call[NoQuery, None]) -> Response:
    keys = (await state.of(call).keys()).published()
    headers = {"cache-control": f"public, max-age={_SECONDS}", "content-type": _TYPE}
    return Response(msgspec.json.encode({"keys": keys}), headers=headers)


ROUTES = (
    Route(
        "GET", "/v1/stream/__ds/jwks.json", show_keys, "Show the public keys of webhooks",
        "subscriptions", answer_type=_TYPE, uses_client=False,
    ),
)  # fmt: skip
