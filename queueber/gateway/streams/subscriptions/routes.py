"""The routes of subscriptions. A worker has the token of a wake instead of a credential."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from queueber import errors
from queueber.gateway.routes import Route
from queueber.gateway.streams.subscriptions import jwks, manage, work
from queueber.gateway.streams.subscriptions.requests import (
    StreamsRequest,
    SubscriptionRequest,
    WakeAckRequest,
    WakeClaimRequest,
    WakeReleaseRequest,
    taking,
)

_ROOT = "/v1/stream/__ds/subscriptions/{subscription}"
_TAG = "subscriptions"
_ERRORS = (errors.NotFound, errors.AlreadyExists, errors.PermissionDenied, errors.Unavailable)


def _taking(
    path: str,
    asked: type[msgspec.Struct],
    handle: Callable[[Any], Awaitable[Any]],
    summary: str,
    *,
    method: str = "POST",
    **named: Any,
) -> Route:
    """A route with a body, whose errors are those of the protocol."""
    return Route(
        method, _ROOT + path, taking(asked, handle), summary, _TAG,
        is_plain=True, takes_bytes=True, body=asked, errors=_ERRORS, **named,
    )  # fmt: skip


_SUBSCRIPTION = {
    "id": "billing", "subscription_id": "billing", "type": "pull-wake", "pattern": "events/*",
    "streams": [{
        "path": "events/a", "link_type": "glob",
        "acked_offset": "0000000000000017_0000000000000042",
    }],
    "webhook": None, "wake_stream": "wake/pool", "lease_ttl_ms": 30000,
    "created_at": "2027-01-01T00:00:00.000Z", "status": "active", "description": None,
}  # fmt: skip
_WAKE = {"wake_id": "w_0123456789abcdef01234567", "generation": 7}
_OFFSET = "0000000000000017_0000000000000084"
_ACK = {**_WAKE, "acks": [{"stream": "events/a", "offset": _OFFSET}], "done": True}
_ACKED = {"ok": True, "next_wake": False}
_CLAIMED = {
    **_WAKE, "token": "dsw_7_...", "lease_ttl_ms": 30000,
    "streams": [{
        "path": "events/a", "link_type": "glob", "has_pending": True, "tail_offset": _OFFSET,
        "acked_offset": "0000000000000017_0000000000000042",
    }],
}  # fmt: skip

ROUTES = (
    *jwks.ROUTES,
    _taking(
        "", SubscriptionRequest, manage.create, "Create a subscription", method="PUT",
        description="Streams that exist are linked at their ends; what comes later is pending.",
        answer=manage.SubscriptionAnswer, status=201,
        other_statuses={200: "There is one like this already."},
        body_example={
            "type": "pull-wake", "pattern": "events/*", "wake_stream": "wake/pool",
            "lease_ttl_ms": 30000,
        },
        answer_example=_SUBSCRIPTION,
    ),
    Route(
        "GET", _ROOT, manage.show, "Show a subscription", _TAG,
        answer=manage.SubscriptionAnswer, errors=_ERRORS, answer_example=_SUBSCRIPTION,
    ),
    Route(
        "DELETE", _ROOT, manage.delete, "Delete a subscription", _TAG,
        description="May be repeated.", status=204, errors=_ERRORS,
    ),
    _taking(
        "/streams", StreamsRequest, manage.add_streams, "Link streams by name", status=204,
        body_example={"streams": ["events/x"]},
    ),
    Route(
        "DELETE", _ROOT + "/streams/{path*}", manage.drop_stream, "Drop the link to a stream", _TAG,
        description="What the pattern matches stays linked.", status=204, errors=_ERRORS,
    ),
    _taking(
        "/claim", WakeClaimRequest, work.claim, "Claim the work of a pull-wake subscription",
        answer=work.WakeClaimAnswer, body_example={"worker": "worker-1"}, answer_example=_CLAIMED,
    ),
    _taking(
        "/ack", WakeAckRequest, work.ack, "Acknowledge streams, or extend a lease",
        description="With the token of the claim. Without `done` the lease is extended.",
        answer=work.WakeAckAnswer, body_example=_ACK, answer_example=_ACKED, uses_client=False,
    ),
    _taking(
        "/callback", WakeAckRequest, work.callback, "Acknowledge streams of a webhook",
        description="With the token of the webhook. Without `done` the lease is extended.",
        answer=work.WakeAckAnswer, body_example=_ACK, answer_example=_ACKED, uses_client=False,
    ),
    _taking(
        "/release", WakeReleaseRequest, work.release, "Give back a claim", uses_client=False,
        description="With the token of the claim. What is pending wakes another worker.",
        status=204, body_example=_WAKE,
    ),
)  # fmt: skip
