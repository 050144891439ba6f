"""Callbacks of batches: an item that is added once a batch is complete."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.queues.own_options import OwnFields
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import CallbackInfo


class CallbackRequest(OwnFields, kw_only=True, forbid_unknown_fields=True):
    """The item, and the queue that gets it: by default that of the batch."""

    contents: fields.Contents
    to: Annotated[str, Meta(pattern=fields.QUEUE_NAME_PATTERN)] | None = None
    key: fields.Key | None = None
    priority: fields.Priority = PRIORITY_DEFAULT
    attributes: fields.Attributes = msgspec.field(default_factory=dict)


class CallbackAnswer(msgspec.Struct):
    batch: str
    to: str
    created_at_ms: int
    item: fields.Id | None
    """The item that was added; null: it was not."""
    problem: str | None
    """Why the queue did not take the item; the server tries again."""


async def put_callback(call: Call[NoQuery, CallbackRequest]) -> CallbackAnswer:
    body = call.body
    stored = await present_queue(call).when_complete(
        call.names["batch"],
        body.contents,
        to=body.to,
        key=body.key,
        priority=body.priority,
        attributes=body.attributes,
        **body.own(),
    )
    return _shown(stored)


async def show_callback(call: Call[NoQuery, None]) -> CallbackAnswer:
    return _shown(await present_queue(call).callback(call.names["batch"]))


def _shown(found: CallbackInfo) -> CallbackAnswer:
    return CallbackAnswer(
        found.batch,
        found.to,
        found.created_at_ms,
        found.item_id.hex() or None,
        found.problem or None,
    )


ROUTES = (
    Route(
        "PUT", "/v1/queues/{queue}/batches/{batch}/callback", put_callback,
        "Add an item once a batch is complete", "results",
        description="The item is added exactly once, at once if the batch is complete. A request "
        "that is repeated changes nothing; until the item was added, another one takes its place. "
        "The attributes of the item that begin with `queueber.` are the receipt of the batch.",
        body=CallbackRequest, answer=CallbackAnswer,
        errors=(errors.NotFound, errors.FailedPrecondition, errors.ResourceExhausted),
        body_example={"contents": "aGVsbG8=", "to": "reports"},
    ),
    Route(
        "GET", "/v1/queues/{queue}/batches/{batch}/callback", show_callback,
        "Show a batch's callback", "results", answer=CallbackAnswer, errors=(errors.NotFound,),
    ),
)  # fmt: skip
