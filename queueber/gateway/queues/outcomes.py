"""What becomes of leased items: complete, fail, release, remove; and extending their lease."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import POLL_ITEMS_CEILING, SECOND_MS

# --- requests and answers -------------------------------------------------------------------------


class Completed(msgspec.Struct, forbid_unknown_fields=True):
    id: fields.Id
    result: fields.Contents = b""


class CompleteRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: fields.Id
    items: Annotated[list[Completed], Meta(min_length=1, max_length=POLL_ITEMS_CEILING)]


class FailRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: fields.Id
    ids: fields.Ids
    error: str = ""
    """Why; it is kept with the items, cut to 16 KiB."""
    delay_ms: fields.DelayMs | None = None
    """How long the items stay hidden; the queue's backoff if it is left out."""


class HeldRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: fields.Id
    ids: fields.Ids


class ExtendRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: fields.Id
    lease_ms: fields.LeaseMs
    """When the lease ends instead, from now."""


class OutcomesAnswer(msgspec.Struct):
    """For each item in order: false if the lease does not hold it any more."""

    done: list[bool]


class FailAnswer(msgspec.Struct):
    """For each item in order: it is tried again, is a dead letter, or was not held."""

    outcomes: list[Literal["retried", "died", "refused"]]


class ExtendAnswer(msgspec.Struct):
    extended: bool
    """False when the lease has ended already."""


# --- handlers -------------------------------------------------------------------------------------


async def complete(call: Call[NoQuery, CompleteRequest]) -> OutcomesAnswer:
    body = call.body
    ids = [item.id for item in body.items]
    results = [item.result for item in body.items]
    return OutcomesAnswer(await present_queue(call).complete(ids, results, lease=body.lease))


async def fail(call: Call[NoQuery, FailRequest]) -> FailAnswer:
    body = call.body
    delay = None if body.delay_ms is None else body.delay_ms / SECOND_MS
    ids = body.ids
    failed = await present_queue(call).fail(ids, body.error, lease=body.lease, delay=delay)
    return FailAnswer([outcome.value for outcome in failed])


async def release(call: Call[NoQuery, HeldRequest]) -> OutcomesAnswer:
    ids = call.body.ids
    return OutcomesAnswer(await present_queue(call).release(ids, lease=call.body.lease))


async def remove(call: Call[NoQuery, HeldRequest]) -> OutcomesAnswer:
    ids = call.body.ids
    return OutcomesAnswer(await present_queue(call).remove(ids, lease=call.body.lease))


async def extend(call: Call[NoQuery, ExtendRequest]) -> ExtendAnswer:
    seconds = call.body.lease_ms / SECOND_MS
    return ExtendAnswer(await present_queue(call).extend(seconds, lease=call.body.lease))


_ID = "0192f0c1a2b37c4d8e5f60718293a4b5"
_LEASE = "0192f0c1a2b37c4d8e5f60718293a4c7"
_ERRORS = (errors.NotFound, errors.OutcomeUnknown)

ROUTES = (
    Route(
        "POST", "/v1/queues/{queue}/complete", complete,
        "Delete items that are done, and keep their results", "leases",
        body=CompleteRequest, answer=OutcomesAnswer,
        errors=(*_ERRORS, errors.ResourceExhausted),
        body_example={"lease": _LEASE, "items": [{"id": _ID, "result": "aGVsbG8="}]},
        answer_example={"done": [True]},
    ),
    Route(
        "POST", "/v1/queues/{queue}/fail", fail, "Report that items failed", "leases",
        description="They are tried again after a delay, or become dead letters.",
        body=FailRequest, answer=FailAnswer, errors=_ERRORS,
        body_example={"lease": _LEASE, "ids": [_ID], "error": "no such file"},
        answer_example={"outcomes": ["retried"]},
    ),
    Route(
        "POST", "/v1/queues/{queue}/release", release,
        "Give items back without an attempt being counted", "leases",
        body=HeldRequest, answer=OutcomesAnswer, errors=_ERRORS,
        body_example={"lease": _LEASE, "ids": [_ID]}, answer_example={"done": [True]},
    ),
    Route(
        "POST", "/v1/queues/{queue}/remove", remove, "Delete items that are done", "leases",
        body=HeldRequest, answer=OutcomesAnswer, errors=_ERRORS,
        body_example={"lease": _LEASE, "ids": [_ID]}, answer_example={"done": [True]},
    ),
    Route(
        "POST", "/v1/queues/{queue}/extend", extend, "Give a lease more time", "leases",
        body=ExtendRequest, answer=ExtendAnswer, errors=_ERRORS,
        body_example={"lease": _LEASE, "lease_ms": 30000}, answer_example={"extended": True},
    ),
)  # fmt: skip
