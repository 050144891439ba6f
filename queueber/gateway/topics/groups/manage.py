"""The groups of a topic: list, show, create, delete, and operate them."""

import msgspec

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.queues.fields import LongMs
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.groups.settings import (
    OrderedGroup,
    QueueGroup,
    SharedGroup,
    shown_group_settings,
    to_group_arguments,
)
from queueber.gateway.topics.named_topic import present_topic
from queueber.limits import SECOND_MS
from queueber.model import GroupInfo

_GroupSettings = OrderedGroup | SharedGroup | QueueGroup


class NewGroup(msgspec.Struct, forbid_unknown_fields=True):
    """How a group works, and where it begins."""

    settings: _GroupSettings = msgspec.field(default_factory=OrderedGroup)
    from_: fields.Place = msgspec.field(name="from", default="earliest")


class GroupAnswer(msgspec.Struct):
    name: str
    settings: _GroupSettings
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
    to: fields.Place
    """Where the group goes on."""
    partition: fields.Partition | None = None
    """All partitions if it is left out."""


class PauseGroupRequest(msgspec.Struct, forbid_unknown_fields=True):
    pause_ms: LongMs | None = None
    """How long; until it is resumed if it is left out."""


def shown_group(info: GroupInfo) -> GroupAnswer:
    return GroupAnswer(
        info.name,
        shown_group_settings(info.settings),
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
    body, name = call.body, call.names["group"]
    created = await present_topic(call).create_group(
        name, start=fields.to_position(body.from_), **to_group_arguments(body.settings)
    )
    return Answer(CreateGroupAnswer(created), 201 if created else 200)


async def delete_group(call: Call[NoQuery, None]) -> None:
    name = call.names["group"]
    if not await present_topic(call).delete_group(name):
        raise problem_of(errors.NotFound(f"group: there is none named {name}"))


async def reset(call: Call[NoQuery, ResetRequest]) -> None:
    body, to = call.body, fields.to_position(call.body.to)
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
        body_example={"settings": {"kind": "shared", "lease_ms": 30000, "attempts_max": 5}},
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
