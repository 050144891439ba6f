"""What operators do with a queue: cancel, purge, redrive, pause, resume."""

from typing import Literal

import msgspec

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import SECOND_MS


class CancelRequest(msgspec.Struct, forbid_unknown_fields=True):
    ids: fields.Ids


class CancelAnswer(msgspec.Struct):
    """For each id in order, whether the item was there."""

    done: list[bool]


class PurgeRequest(msgspec.Struct, forbid_unknown_fields=True):
    state: Literal["ready", "delayed", "leased", "dead"]


class RedriveRequest(msgspec.Struct, forbid_unknown_fields=True):
    ids: fields.Ids | None = None
    """The dead letters to try again; all of them if it is left out."""


class PauseRequest(msgspec.Struct, forbid_unknown_fields=True):
    pause_ms: fields.LongMs | None = None
    """How long; until it is resumed if it is left out."""


class CountAnswer(msgspec.Struct):
    items: int


async def cancel(call: Call[NoQuery, CancelRequest]) -> CancelAnswer:
    return CancelAnswer(await present_queue(call).cancel(call.body.ids))


async def purge(call: Call[NoQuery, PurgeRequest]) -> CountAnswer:
    return CountAnswer(await present_queue(call).purge(call.body.state))


async def redrive(call: Call[NoQuery, RedriveRequest]) -> CountAnswer:
    return CountAnswer(await present_queue(call).redrive(call.body.ids))


async def pause(call: Call[NoQuery, PauseRequest]) -> None:
    ms = call.body.pause_ms
    await present_queue(call).pause(None if ms is None else ms / SECOND_MS)


async def resume(call: Call[NoQuery, None]) -> None:
    await present_queue(call).resume()


_ID = "0192f0c1a2b37c4d8e5f60718293a4b5"
_ERRORS = (errors.NotFound, errors.OutcomeUnknown)

ROUTES = (
    Route(
        "POST", "/v1/queues/{queue}/cancel", cancel, "Delete items, whatever their state",
        "operate", body=CancelRequest, answer=CancelAnswer, errors=_ERRORS,
        body_example={"ids": [_ID]}, answer_example={"done": [True]},
    ),
    Route(
        "POST", "/v1/queues/{queue}/purge", purge, "Delete all items in a state", "operate",
        body=PurgeRequest, answer=CountAnswer, errors=_ERRORS,
        body_example={"state": "dead"}, answer_example={"items": 3},
    ),
    Route(
        "POST", "/v1/queues/{queue}/redrive", redrive, "Make dead letters ready again", "operate",
        body=RedriveRequest, answer=CountAnswer, errors=_ERRORS,
        body_example={}, answer_example={"items": 3},
    ),
    Route(
        "POST", "/v1/queues/{queue}/pause", pause, "Answer polls with nothing", "operate",
        body=PauseRequest, status=204, errors=(errors.NotFound,), body_example={"pause_ms": 60000},
    ),
    Route(
        "POST", "/v1/queues/{queue}/resume", resume, "Answer polls again", "operate",
        status=204, errors=(errors.NotFound,),
    ),
)  # fmt: skip
