"""The dead letters of a shared group."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.groups.references import References, ids_of, reference_of
from queueber.gateway.topics.named_topic import shared_group
from queueber.limits import PEEK_ITEMS_MAX


class DeadQuery(msgspec.Struct, forbid_unknown_fields=True):
    after: Annotated[str, Meta(pattern="^([0-9a-fA-F]{2}){0,200}$")] = ""
    """`next` of another page."""
    limit: Annotated[int, Meta(ge=1, le=PEEK_ITEMS_MAX)] = PEEK_ITEMS_MAX


class DeadMessage(msgspec.Struct):
    partition: int
    offset: int
    payload: fields.Payload
    key: str | None
    attributes: dict[str, str]
    attempts: int
    died_at_ms: int
    reason: str | None
    last_error: str | None
    attempt_times_ms: list[int]


class DeadAnswer(msgspec.Struct):
    messages: list[DeadMessage]
    next: str | None
    """Pass it as `after` to get the next page; null on the last page."""


class RedriveGroupRequest(msgspec.Struct, forbid_unknown_fields=True):
    messages: References | None = None
    """The dead letters to try again; all of them if it is left out."""


class RedriveGroupAnswer(msgspec.Struct):
    messages: int


async def list_dead(call: Call[DeadQuery, None]) -> DeadAnswer:
    query = call.query
    page = await shared_group(call).peek(
        "dead", limit=query.limit, after=bytes.fromhex(query.after)
    )
    messages = []
    for item in page.items:
        place = reference_of(item.id)
        messages.append(
            DeadMessage(
                place.partition,
                place.offset,
                item.contents,
                item.key or None,
                dict(item.attributes),
                item.attempts,
                item.at_ms,
                item.reason or None,
                item.last_error or None,
                list(item.attempt_times_ms),
            )
        )
    return DeadAnswer(messages, page.next.hex() or None)


async def redrive(call: Call[NoQuery, RedriveGroupRequest]) -> RedriveGroupAnswer:
    named = call.body.messages
    ids = None if named is None else ids_of(named)
    return RedriveGroupAnswer(await shared_group(call).redrive(ids))


_GROUP = "/v1/topics/{topic}/groups/{group}"
_ERRORS = (errors.NotFound, errors.FailedPrecondition)

ROUTES = (
    Route(
        "GET", f"{_GROUP}/dead", list_dead, "List the dead letters of a shared group", "groups",
        query=DeadQuery, answer=DeadAnswer, errors=_ERRORS,
    ),
    Route(
        "POST", f"{_GROUP}/redrive", redrive, "Try dead letters again", "groups",
        body=RedriveGroupRequest, answer=RedriveGroupAnswer,
        errors=(*_ERRORS, errors.OutcomeUnknown),
        body_example={"messages": [{"partition": 0, "offset": 17}]},
        answer_example={"messages": 1},
    ),
)  # fmt: skip
