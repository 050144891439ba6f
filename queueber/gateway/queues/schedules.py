"""Schedules: items that the server adds to queues at given times."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.queues import fields
from queueber.gateway.queues.own_options import OwnFields
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.limits import (
    PRIORITY_DEFAULT,
    SCHEDULE_NAME_CHARS_MAX,
    SCHEDULES_MAX,
    WHEN_CHARS_MAX,
)
from queueber.model import ScheduleInfo, Stored

_When = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=WHEN_CHARS_MAX,
        description="The five fields of cron, `@daily` and the like, or `@every 90s`.",
        examples=["0 3 * * *"],
    ),
]
_Zone = Annotated[str, Meta(min_length=1, description="A time zone, such as Europe/Berlin.")]
_Missed = Literal["once", "skip", "all"]
_NamePart = Annotated[str, Meta(max_length=SCHEDULE_NAME_CHARS_MAX)]


class ScheduleRequest(OwnFields, kw_only=True, forbid_unknown_fields=True):
    """When to add what to which queue, which is created if there is none."""

    when: _When
    queue: Annotated[str, Meta(pattern=fields.QUEUE_NAME_PATTERN)]
    contents: fields.Contents = b""
    zone: _Zone = "UTC"
    missed: _Missed = "once"
    """What becomes of runs that were missed: one item for all of them, none, or one for each."""
    priority: fields.Priority = PRIORITY_DEFAULT
    attributes: fields.Attributes = msgspec.field(default_factory=dict)


class ListedSchedule(msgspec.Struct):
    """A schedule and how far it is, without contents."""

    name: str
    when: str
    queue: str
    zone: str
    missed: _Missed
    priority: int
    attributes: dict[str, str]
    attempts: int | None
    """What its items have of their own, as the next three; null: nothing."""
    backoff_ms: list[int]
    timeout_ms: int | None
    expires_ms: int | None
    contents_bytes: int
    created_at_ms: int
    next_at_ms: int | None
    """Null: it is paused, or there is no further time."""
    last_at_ms: int | None
    runs: int
    """How many items it has added."""
    is_paused: bool
    problem: str | None
    """Why the queue did not take the item that is due; the server tries again."""


class ScheduleAnswer(ListedSchedule, kw_only=True):
    """A schedule with its contents, and how far it is."""

    contents: fields.Contents


class SchedulePage(msgspec.Struct):
    schedules: list[ListedSchedule]
    more: bool
    """Whether there are further ones: pass the last name as `after`."""


class SchedulesQuery(msgspec.Struct, forbid_unknown_fields=True):
    after: _NamePart = ""
    limit: Annotated[int, Meta(ge=1, le=SCHEDULES_MAX)] = 100


class StoredAnswer(msgspec.Struct):
    stored: Literal["created", "changed", "unchanged"]


class PausedAnswer(msgspec.Struct):
    paused: bool
    """False: it was paused before."""


class ResumedAnswer(msgspec.Struct):
    resumed: bool
    """False: it was not paused."""


class RunAnswer(msgspec.Struct):
    id: fields.Id
    """The item that was added."""


async def list_schedules(call: Call[SchedulesQuery, None]) -> SchedulePage:
    query = call.query
    found = [each for each in await call.client.schedules() if each.name > query.after]
    page = [ListedSchedule(**_shown(each)) for each in found[: query.limit]]
    return SchedulePage(page, more=len(found) > len(page))


async def show_schedule(call: Call[NoQuery, None]) -> ScheduleAnswer:
    found = await call.client.describe_schedule(call.names["schedule"])
    return ScheduleAnswer(**_shown(found), contents=found.contents)


async def put_schedule(call: Call[NoQuery, ScheduleRequest]) -> Answer:
    body = call.body
    stored = await call.client.schedule(
        call.names["schedule"],
        body.when,
        queue=body.queue,
        contents=body.contents,
        zone=body.zone,
        missed=body.missed,
        priority=body.priority,
        attributes=body.attributes,
        **body.own(),
    )
    return Answer(StoredAnswer(stored.value), 201 if stored is Stored.CREATED else 200)


async def remove_schedule(call: Call[NoQuery, None]) -> None:
    name = call.names["schedule"]
    if not await call.client.remove_schedule(name):
        raise problem_of(errors.NotFound(f"schedule: there is none named {name}"))


async def pause_schedule(call: Call[NoQuery, None]) -> PausedAnswer:
    return PausedAnswer(await call.client.pause_schedule(call.names["schedule"]))


async def resume_schedule(call: Call[NoQuery, None]) -> ResumedAnswer:
    return ResumedAnswer(await call.client.resume_schedule(call.names["schedule"]))


async def run_schedule(call: Call[NoQuery, None]) -> RunAnswer:
    return RunAnswer((await call.client.run_schedule(call.names["schedule"])).hex())


def _shown(info: ScheduleInfo) -> dict[str, Any]:
    own = info.options
    return {
        "name": info.name,
        "when": info.when,
        "queue": info.queue,
        "zone": info.zone,
        "missed": info.missed.value,
        "priority": info.priority,
        "attributes": dict(info.attributes),
        "attempts": own.attempts_max,
        "backoff_ms": list(own.backoff_ms),
        "timeout_ms": own.timeout_ms or None,
        "expires_ms": own.expires_ms or None,
        "contents_bytes": info.contents_bytes,
        "created_at_ms": info.created_at_ms,
        "next_at_ms": info.next_at_ms or None,
        "last_at_ms": info.last_at_ms or None,
        "runs": info.runs,
        "is_paused": info.is_paused,
        "problem": info.problem or None,
    }


_ONE = "/v1/schedules/{schedule}"
_ERRORS = (errors.NotFound, errors.OutcomeUnknown)

ROUTES = (
    Route(
        "GET", "/v1/schedules", list_schedules, "List schedules, in order of name", "schedules",
        query=SchedulesQuery, answer=SchedulePage,
    ),
    Route(
        "GET", _ONE, show_schedule, "Show a schedule with its contents", "schedules",
        answer=ScheduleAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "PUT", _ONE, put_schedule, "Create a schedule, or change it", "schedules",
        description="A name is used once in the whole server. With the same `when` and `zone` the "
        "next time of a schedule that exists stays.",
        body=ScheduleRequest, answer=StoredAnswer, status=201,
        other_statuses={200: "It existed, and was changed, or is so already."},
        errors=(errors.ResourceExhausted,),
        body_example={"when": "0 3 * * *", "queue": "cleaning", "contents": "Y2xlYW4gdXA="},
        answer_example={"stored": "created"},
    ),
    Route(
        "DELETE", _ONE, remove_schedule, "Remove a schedule; its items stay", "schedules",
        status=204, errors=_ERRORS,
    ),
    Route(
        "POST", f"{_ONE}/pause", pause_schedule, "Run a schedule no more until it is resumed",
        "schedules", answer=PausedAnswer, errors=_ERRORS,
    ),
    Route(
        "POST", f"{_ONE}/resume", resume_schedule, "Run a schedule again from its next time on",
        "schedules", answer=ResumedAnswer, errors=_ERRORS,
    ),
    Route(
        "POST", f"{_ONE}/run", run_schedule, "Add the item of a schedule now", "schedules",
        description="Also if it is paused. Its next time stays.",
        answer=RunAnswer, errors=(*_ERRORS, errors.ResourceExhausted),
    ),
)  # fmt: skip
