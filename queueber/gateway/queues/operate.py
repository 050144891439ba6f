"""What operators do with a queue: cancel, reschedule, purge, redrive, pause, resume."""

from typing import Literal

import msgspec

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import invalid
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import SECOND_MS


class CancelRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One of the three."""

    ids: fields.Ids | None = None
    key: fields.Key | None = None
    """That of the item that was added last with it."""
    batch: fields.Batch | None = None
    """All its items; the whole queue is looked through."""


class CancelAnswer(msgspec.Struct):
    done: list[bool]
    """For each id in order, whether the item was there; of a key or a batch there are none."""
    items: int
    """How many are gone."""


class RescheduleRequest(msgspec.Struct, forbid_unknown_fields=True):
    ids: fields.Ids
    delay_ms: fields.DelayMs = 0
    """In how long they become ready; 0: now."""


class RescheduleAnswer(msgspec.Struct):
    done: list[bool]
    """For each id in order, whether the item was ready or delayed, and has the new time. Not those
    that wait for others, nor those that would expire by then."""
    items: int
    """How many have it."""


class PurgeRequest(msgspec.Struct, forbid_unknown_fields=True):
    state: Literal["ready", "delayed", "leased", "dead"]


class RedriveRequest(msgspec.Struct, forbid_unknown_fields=True):
    ids: fields.Ids | None = None
    """The dead letters to try again; all of them if it is left out."""


class PauseRequest(msgspec.Struct, forbid_unknown_fields=True):
    pause_ms: fields.LongMs | None = None
    """How long; until it is resumed if it is left out."""


_CHOICES = 3


class CountAnswer(msgspec.Struct):
    items: int


async def cancel(call: Call[NoQuery, CancelRequest]) -> CancelAnswer:
    queue, asked = present_queue(call), call.body
    if [asked.ids, asked.key, asked.batch].count(None) != _CHOICES - 1:
        raise invalid("ids: give ids, a key or a batch, and one of them only")
    if asked.key is not None:
        return CancelAnswer([], int(await queue.cancel_key(asked.key)))
    if asked.batch is not None:
        return CancelAnswer([], await queue.cancel_batch(asked.batch))
    done = await queue.cancel(asked.ids or [])
    return CancelAnswer(done, sum(done))


async def reschedule(call: Call[NoQuery, RescheduleRequest]) -> RescheduleAnswer:
    asked = call.body
    done = await present_queue(call).reschedule(asked.ids, delay=asked.delay_ms / SECOND_MS)
    return RescheduleAnswer(done, sum(done))


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
        body_example={"ids": [_ID]}, answer_example={"done": [True], "items": 1},
    ),
    Route(
        "POST", "/v1/queues/{queue}/reschedule", reschedule, "Have items become ready at another "
        "time", "operate", body=RescheduleRequest, answer=RescheduleAnswer, errors=_ERRORS,
        body_example={"ids": [_ID], "delay_ms": 60000},
        answer_example={"done": [True], "items": 1},
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
