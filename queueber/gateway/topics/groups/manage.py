"""The groups of a topic: list, show, create, delete, and operate them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from queueber import errors
from queueber.client import Backoff
from queueber.gateway.calls import Call
from queueber.gateway.problems import invalid, problem_of
from queueber.gateway.queues.fields import QUEUE_NAME_PATTERN, DelayMs, LeaseMs, LongMs
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.named_topic import present_topic
from queueber.limits import ATTEMPTS_CEILING, BACKOFF_STEPS_MAX, SECOND_MS
from queueber.model import GroupInfo

_Kind = Literal["ordered", "shared", "queue"]
_Attempts = Annotated[int, Meta(ge=0, le=ATTEMPTS_CEILING)]
_Steps = Annotated[list[DelayMs], Meta(min_length=1, max_length=BACKOFF_STEPS_MAX)]
_Factor = Annotated[float, Meta(ge=1, le=100)]
_Jitter = Annotated[float, Meta(ge=0, le=1)]
_DEFAULTS = Backoff()


class NewGroup(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How a group works, and where it begins: `from`, `time_ms` or `last`; with the earliest
    message without. What follows `in_flight_max` is for shared groups, and so is that."""

    kind: _Kind = "ordered"
    queue: Annotated[str, Meta(pattern=QUEUE_NAME_PATTERN)] | UnsetType = UNSET
    """Of kind `queue`: the queue that the messages are added to."""
    from_: fields.Place | None = msgspec.field(name="from", default=None)
    time_ms: fields.TimeMs | None = None
    last: fields.Count | None = None
    in_flight_max: fields.Count | UnsetType = UNSET
    """How many messages may be leased at once; 0: no limit."""
    lease_ms: LeaseMs | UnsetType = UNSET
    """The lease of a poll that names none."""
    attempts_max: _Attempts | UnsetType = UNSET
    isolation: bool | UnsetType = UNSET
    backoff_ms: _Steps | UnsetType = UNSET
    """The delays after the first failure, the second, and so on, of which the last one repeats."""
    backoff_base_ms: DelayMs | UnsetType = UNSET
    """Or the first delay, which grows by `backoff_factor` up to `backoff_cap_ms`."""
    backoff_factor: _Factor | UnsetType = UNSET
    backoff_cap_ms: DelayMs | UnsetType = UNSET
    backoff_jitter: _Jitter | UnsetType = UNSET


class LeaseSettings(msgspec.Struct):
    """Of a shared group."""

    in_flight_max: int
    lease_ms: int
    attempts_max: int
    isolation: bool
    backoff_ms: list[int]
    backoff_base_ms: int
    backoff_factor: float
    backoff_cap_ms: int
    backoff_jitter: float


class GroupAnswer(msgspec.Struct):
    name: str
    kind: _Kind
    queue: str | None
    leases: LeaseSettings | None
    """Null unless the group is shared."""
    created_at_ms: int
    paused_until_ms: int
    """0: not paused; 18446744073709551615: until it is resumed."""
    cursors: list[int]
    """For each partition the offset of the oldest message that is not acknowledged."""
    lag: int
    """Messages that are not acknowledged."""
    lag_ms: int
    """The age of the oldest of them."""
    leased: int
    dead: int
    consumers: list[str]


class GroupsAnswer(msgspec.Struct):
    groups: list[GroupAnswer]


class CreateGroupAnswer(msgspec.Struct):
    created: bool


class ResetRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Where the group goes on: `to`, `time_ms` or `last`."""

    to: fields.Place | None = None
    time_ms: fields.TimeMs | None = None
    last: fields.Count | None = None
    partition: fields.Partition | None = None
    """All partitions if it is left out."""


class PauseGroupRequest(msgspec.Struct, forbid_unknown_fields=True):
    pause_ms: LongMs | None = None
    """How long; until it is resumed if it is left out."""


def shown_group(info: GroupInfo) -> GroupAnswer:
    settings = info.settings
    kind: _Kind = settings.kind.value
    leases = None
    if kind == "shared":
        own: dict[str, Any] = {
            name: getattr(settings.leases, name)
            for name in LeaseSettings.__struct_fields__
            if name != "in_flight_max"
        }
        own["backoff_ms"] = list(own["backoff_ms"])
        leases = LeaseSettings(in_flight_max=settings.in_flight_max, **own)
    return GroupAnswer(
        info.name,
        kind,
        settings.queue or None,
        leases,
        info.created_at_ms,
        info.paused_until_ms,
        list(info.cursors),
        info.lag,
        info.lag_ms,
        info.leased,
        info.dead,
        list(info.consumers),
    )


async def list_groups(call: Call[NoQuery, None]) -> GroupsAnswer:
    return GroupsAnswer([shown_group(each) for each in await present_topic(call).groups()])


async def show_group(call: Call[NoQuery, None]) -> GroupAnswer:
    return shown_group(await present_topic(call).describe_group(call.names["group"]))


async def create_group(call: Call[NoQuery, NewGroup]) -> Answer:
    settings = _settings_of(call.body)
    created = await present_topic(call).create_group(call.names["group"], **settings)
    return Answer(CreateGroupAnswer(created), 201 if created else 200)


def _settings_of(body: NewGroup) -> dict[str, Any]:
    settings: dict[str, Any] = {"kind": body.kind}
    start = fields.to_position("from", body.from_, body.time_ms, body.last)
    if start is not None:
        settings["start"] = start
    for name in ("queue", "in_flight_max", "attempts_max", "isolation"):
        if (value := getattr(body, name)) is not UNSET:
            settings[name] = value
    if body.lease_ms is not UNSET:
        settings["lease"] = body.lease_ms / SECOND_MS
    grown = {
        name: value
        for name in ("base_ms", "factor", "cap_ms", "jitter")
        if (value := getattr(body, f"backoff_{name}")) is not UNSET
    }
    if body.backoff_ms is not UNSET:
        if grown:
            raise invalid(f"body: backoff_{next(iter(grown))}: backoff_ms was given, too")
        settings["backoff"] = [each / SECOND_MS for each in body.backoff_ms]
    elif grown:
        settings["backoff"] = Backoff(
            base=grown["base_ms"] / SECOND_MS if "base_ms" in grown else _DEFAULTS.base,
            factor=grown.get("factor", _DEFAULTS.factor),
            cap=grown["cap_ms"] / SECOND_MS if "cap_ms" in grown else _DEFAULTS.cap,
            jitter=grown.get("jitter", _DEFAULTS.jitter),
        )
    return settings


async def delete_group(call: Call[NoQuery, None]) -> None:
    name = call.names["group"]
    if not await present_topic(call).delete_group(name):
        raise problem_of(errors.NotFound(f"group: there is none named {name}"))


async def reset(call: Call[NoQuery, ResetRequest]) -> None:
    body = call.body
    to = fields.needed_position(body.to, body.time_ms, body.last)
    await present_topic(call).reset(call.names["group"], partition=body.partition, start=to)


async def pause_group(call: Call[NoQuery, PauseGroupRequest]) -> None:
    ms = call.body.pause_ms
    await present_topic(call).pause(call.names["group"], None if ms is None else ms / SECOND_MS)


async def resume_group(call: Call[NoQuery, None]) -> None:
    await present_topic(call).resume(call.names["group"])


_GROUP = "/v1/topics/{topic}/groups/{group}"
_ERRORS = (errors.NotFound, errors.FailedPrecondition)

ROUTES = (
    Route(
        "GET", "/v1/topics/{topic}/groups", list_groups, "List the groups of a topic", "groups",
        answer=GroupsAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "GET", _GROUP, show_group, "Show how far a group is", "groups",
        answer=GroupAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "PUT", _GROUP, create_group, "Create a group", "groups",
        description="409 if it exists with other settings.",
        body=NewGroup, answer=CreateGroupAnswer, status=201,
        other_statuses={200: "It exists with these settings."},
        errors=(
            *_ERRORS, errors.AlreadyExists, errors.ResourceExhausted, errors.OutOfRange,
            errors.OutcomeUnknown,
        ),
        body_example={"kind": "shared", "lease_ms": 30000, "attempts_max": 5},
        answer_example={"created": True},
    ),
    Route(
        "DELETE", _GROUP, delete_group, "Forget a group", "groups", status=204,
        errors=(*_ERRORS, errors.OutcomeUnknown),
    ),
    Route(
        "POST", f"{_GROUP}/reset", reset, "Move a group, forward or back", "groups",
        description="A shared group drops what it has leased and is to retry, and keeps its dead "
        "letters.",
        body=ResetRequest, status=204,
        errors=(*_ERRORS, errors.OutOfRange, errors.ResourceExhausted),
        body_example={"to": "earliest"},
    ),
    Route(
        "POST", f"{_GROUP}/pause", pause_group, "Deliver nothing to a group for a while",
        "groups", body=PauseGroupRequest, status=204, errors=_ERRORS,
        body_example={"pause_ms": 60000},
    ),
    Route(
        "POST", f"{_GROUP}/resume", resume_group, "Deliver to a group again", "groups",
        status=204, errors=_ERRORS,
    ),
)  # fmt: skip
