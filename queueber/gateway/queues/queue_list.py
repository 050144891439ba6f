"""Queues themselves: list, show, create, configure, delete."""

from dataclasses import replace
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.limits import (
    ATTEMPTS_CEILING,
    BACKOFF_STEPS_MAX,
    BATCH_KEEP_MS_MAX,
    BATCH_NUMBER_MAX,
    CAP_BY_BYTES_MAX,
    CAP_ITEMS_MAX,
    DEAD_AGE_MS_MAX,
    DEDUP_WINDOW_MS_MAX,
    DELAY_MS_MAX,
    HOUR_MS,
    ITEM_WIRE_BYTES,
    MESSAGE_BYTES_CEILING,
    MESSAGE_OVERHEAD_BYTES,
    MINUTE_MS,
    QUEUES_MAX,
    RATE_MS_MAX,
    RESULT_AGE_MS_MAX,
    SECOND_MS,
)
from queueber.model import QueueSettings, Stats

_Attempts = Annotated[int, Meta(ge=0, le=ATTEMPTS_CEILING)]
_Backoff = Annotated[
    list[Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]], Meta(max_length=BACKOFF_STEPS_MAX)
]
_Factor = Annotated[float, Meta(ge=1, le=100)]
_Jitter = Annotated[float, Meta(ge=0, le=1)]
_Window = Annotated[int, Meta(ge=0, le=DEDUP_WINDOW_MS_MAX)]
_ResultAge = Annotated[int, Meta(ge=0, le=RESULT_AGE_MS_MAX)]
_Batches = Annotated[int, Meta(ge=0, le=BATCH_NUMBER_MAX)]
_BatchKeep = Annotated[int, Meta(ge=1, le=BATCH_KEEP_MS_MAX)]
_ItemBytes = Annotated[
    int, Meta(ge=0, le=MESSAGE_BYTES_CEILING - MESSAGE_OVERHEAD_BYTES - ITEM_WIRE_BYTES)
]
_CapItems = Annotated[int, Meta(ge=0, le=CAP_ITEMS_MAX)]
_CapBy = Annotated[str, Meta(max_length=CAP_BY_BYTES_MAX // 4)]
_RateMs = Annotated[int, Meta(ge=0, le=RATE_MS_MAX)]
_DeadAge = Annotated[int, Meta(ge=0, le=DEAD_AGE_MS_MAX)]
_DEFAULTS = QueueSettings()


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """The settings of a queue. A limit of 0 means no limit of the queue's own."""

    items_max: fields.Count = 0
    bytes_max: fields.Count = 0
    item_bytes_max: _ItemBytes = 0
    lease_ms: fields.LeaseMs = MINUTE_MS
    attempts_max: _Attempts = _DEFAULTS.attempts_max
    backoff_ms: _Backoff = msgspec.field(default_factory=list)
    backoff_base_ms: fields.DelayMs = SECOND_MS
    backoff_factor: _Factor = _DEFAULTS.backoff_factor
    backoff_cap_ms: fields.DelayMs = HOUR_MS
    backoff_jitter: _Jitter = _DEFAULTS.backoff_jitter
    dedup_window_ms: _Window = _DEFAULTS.dedup_window_ms
    result_age_ms: _ResultAge = _DEFAULTS.result_age_ms
    result_bytes_max: fields.Count = 0
    isolation: bool = True
    concurrency_max: _CapItems = 0
    rate_items: _CapItems = 0
    rate_ms: _RateMs = 0
    batches_max: _Batches = _DEFAULTS.batches_max
    batch_keep_ms: _BatchKeep = _DEFAULTS.batch_keep_ms
    cap_by: _CapBy = ""
    cap_by_concurrency_max: _CapItems = 0
    cap_by_rate_items: _CapItems = 0
    cap_by_rate_ms: _RateMs = 0
    dead_age_ms: _DeadAge = 0
    """Dead letters that died longer ago are deleted; 0: no limit."""


class SettingsChanges(msgspec.Struct, forbid_unknown_fields=True):
    """The settings to change; the others stay as they are."""

    items_max: fields.Count | UnsetType = UNSET
    bytes_max: fields.Count | UnsetType = UNSET
    item_bytes_max: _ItemBytes | UnsetType = UNSET
    lease_ms: fields.LeaseMs | UnsetType = UNSET
    attempts_max: _Attempts | UnsetType = UNSET
    backoff_ms: _Backoff | UnsetType = UNSET
    backoff_base_ms: fields.DelayMs | UnsetType = UNSET
    backoff_factor: _Factor | UnsetType = UNSET
    backoff_cap_ms: fields.DelayMs | UnsetType = UNSET
    backoff_jitter: _Jitter | UnsetType = UNSET
    dedup_window_ms: _Window | UnsetType = UNSET
    result_age_ms: _ResultAge | UnsetType = UNSET
    result_bytes_max: fields.Count | UnsetType = UNSET
    isolation: bool | UnsetType = UNSET
    concurrency_max: _CapItems | UnsetType = UNSET
    rate_items: _CapItems | UnsetType = UNSET
    rate_ms: _RateMs | UnsetType = UNSET
    batches_max: _Batches | UnsetType = UNSET
    batch_keep_ms: _BatchKeep | UnsetType = UNSET
    cap_by: _CapBy | UnsetType = UNSET
    cap_by_concurrency_max: _CapItems | UnsetType = UNSET
    cap_by_rate_items: _CapItems | UnsetType = UNSET
    cap_by_rate_ms: _RateMs | UnsetType = UNSET
    dead_age_ms: _DeadAge | UnsetType = UNSET


class QueueAnswer(msgspec.Struct):
    """A queue: its settings and its numbers."""

    name: str
    settings: Settings
    created_at_ms: int
    ready: int
    delayed: int
    leased: int
    dead: int
    leases: int
    contents_bytes: int
    oldest_claimable_age_ms: int
    waiting_polls: int
    added_total: int
    polled_total: int
    removed_total: int
    completed_total: int
    failed_total: int
    released_total: int
    expired_total: int
    extended_total: int
    died_total: int
    redriven_total: int
    cancelled_total: int
    duplicates_total: int
    paused_until_ms: int
    """0: not paused; 18446744073709551615: until it is resumed."""
    results: int
    result_bytes: int
    batches: int
    parked: int
    """Those of `ready` that wait for a lease of their cap key to end."""
    callbacks: int
    """Callbacks of batches whose item was not added yet."""
    waiting: int
    """Those of `delayed` that wait for other items or a batch."""
    dead_dropped_total: int
    """Dead letters that were deleted because of `dead_age_ms`."""
    unclaimed_total: int
    """Those of `died_total` that nobody leased in time: they expired."""


class QueuePage(msgspec.Struct):
    queues: list[QueueAnswer]
    more: bool
    """Whether there are further ones: pass the last name as `after`."""


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    after: str = ""
    limit: Annotated[int, Meta(ge=1, le=QUEUES_MAX)] = 100


class CreateAnswer(msgspec.Struct):
    created: bool


def shown_queue(stats: Stats) -> QueueAnswer:
    return msgspec.convert(stats, QueueAnswer, from_attributes=True)


async def list_queues(call: Call[ListQuery, None]) -> QueuePage:
    found = [each for each in await call.client.queues() if each.name > call.query.after]
    page = found[: call.query.limit]
    return QueuePage([shown_queue(each) for each in page], more=len(found) > len(page))


async def show_queue(call: Call[NoQuery, None]) -> QueueAnswer:
    return shown_queue(await present_queue(call).stats())


async def create_queue(call: Call[NoQuery, Settings]) -> Answer:
    given = msgspec.structs.asdict(call.body)
    settings = QueueSettings(**given | {"backoff_ms": tuple(call.body.backoff_ms)})
    created = await call.client.create_queue(call.names["queue"], settings)
    return Answer(CreateAnswer(created), 201 if created else 200)


async def configure_queue(call: Call[NoQuery, SettingsChanges]) -> QueueAnswer:
    name = call.names["queue"]
    queue = present_queue(call)
    given = msgspec.structs.asdict(call.body)
    changes = {field: value for field, value in given.items() if value is not UNSET}
    if "backoff_ms" in changes:
        changes["backoff_ms"] = tuple(changes["backoff_ms"])
    present = (await queue.stats()).settings
    await call.client.configure_queue(name, replace(present, **changes))
    return shown_queue(await queue.stats())


async def delete_queue(call: Call[NoQuery, None]) -> None:
    name = call.names["queue"]
    if not await call.client.delete_queue(name):
        raise problem_of(errors.NotFound(f"queue: there is none named {name}"))


ROUTES = (
    Route(
        "GET", "/v1/queues", list_queues, "List queues, in order of name", "queues",
        query=ListQuery, answer=QueuePage,
    ),
    Route(
        "GET", "/v1/queues/{queue}", show_queue, "Show a queue's settings and numbers", "queues",
        answer=QueueAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "PUT", "/v1/queues/{queue}", create_queue, "Create a queue", "queues",
        description="409 if it exists with other settings.",
        body=Settings, answer=CreateAnswer, status=201,
        other_statuses={200: "It exists with these settings."},
        errors=(errors.AlreadyExists, errors.ResourceExhausted),
        body_example={"lease_ms": 30000, "attempts_max": 5}, answer_example={"created": True},
    ),
    Route(
        "PATCH", "/v1/queues/{queue}", configure_queue, "Change settings of a queue", "queues",
        body=SettingsChanges, answer=QueueAnswer, errors=(errors.NotFound,),
        body_example={"attempts_max": 3},
    ),
    Route(
        "DELETE", "/v1/queues/{queue}", delete_queue, "Delete a queue with all its items", "queues",
        status=204, errors=(errors.NotFound,),
    ),
)  # fmt: skip
