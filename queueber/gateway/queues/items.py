"""Adding items, leasing them, and looking at them."""

from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, quote, unquote

import msgspec
from msgspec import Meta
from starlette.responses import Response

from queueber import errors
from queueber.client import AddedIds, AsyncLease, AsyncQueue
from queueber.client.arguments.new_items import AddOptions
from queueber.gateway.bodies import RAW_TYPE
from queueber.gateway.calls import Call
from queueber.gateway.problems import invalid
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import in_new_queue, present_queue
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.settings import WAIT_MS, WAIT_MS_MAX
from queueber.ids import made_at_ms
from queueber.limits import (
    ADD_ITEMS_MAX,
    AFTER_MAX,
    FILTER_CHARS_MAX,
    PEEK_ITEMS_MAX,
    POLL_ITEMS_CEILING,
    PRIORITY_DEFAULT,
    PRODUCER_ID_BYTES_MAX,
    SECOND_MS,
)

# --- add ------------------------------------------------------------------------------------------
from queueber.model import ItemInfo


class NewItem(msgspec.Struct, forbid_unknown_fields=True):
    contents: fields.Contents
    delay_ms: fields.DelayMs = 0
    priority: fields.Priority = PRIORITY_DEFAULT
    key: fields.Key | None = None
    attributes: fields.Attributes = msgspec.field(default_factory=dict)
    attempts: fields.Attempts | None = None
    backoff_ms: fields.ItemBackoff = msgspec.field(default_factory=list)
    timeout_ms: fields.TimeoutMs | None = None
    expires_ms: fields.ExpiresMs | None = None


class ProducerRef(msgspec.Struct, forbid_unknown_fields=True):
    """Who sends the call, and its number: a call that is sent again is not stored again."""

    id: Annotated[str, Meta(min_length=1, max_length=PRODUCER_ID_BYTES_MAX)]
    epoch: fields.Count
    sequence: Annotated[int, Meta(ge=1, le=fields.COUNT_MAX)]


class AddRequest(msgspec.Struct, forbid_unknown_fields=True):
    items: Annotated[list[NewItem], Meta(min_length=1, max_length=ADD_ITEMS_MAX)]
    batch: fields.Batch | None = None
    producer: ProducerRef | None = None
    after: fields.AwaitedIds = msgspec.field(default_factory=list)
    """Items of the queue that all of these wait for."""
    after_batch: fields.Batch | None = None
    """A batch of the queue that all of these wait for."""


class AddHeaders(msgspec.Struct, forbid_unknown_fields=True):
    """Headers of an add of raw bytes, each beginning with `Queueber-`. Text is percent-encoded."""

    delay_ms: fields.DelayMs = 0
    priority: fields.Priority = PRIORITY_DEFAULT
    key: str | None = None
    attributes: Annotated[str, Meta(description="As in a form: `name=value&other=value`.")] = ""
    batch: str | None = None
    producer: Annotated[str | None, Meta(description="The producer's id.")] = None
    epoch: fields.Count = 0
    sequence: Annotated[int, Meta(ge=1, le=fields.COUNT_MAX)] = 1
    attempts: fields.Attempts | None = None
    timeout_ms: fields.TimeoutMs | None = None
    expires_ms: fields.ExpiresMs | None = None
    backoff_ms: Annotated[
        str,
        Meta(
            pattern=r"^([0-9]{1,15}(, ?[0-9]{1,15})*)?$",
            description="Its delays after each failure, with commas between: `1000, 60000`.",
        ),
    ] = ""
    after: Annotated[
        str,
        Meta(
            pattern="^([0-9a-fA-F]{32}(, ?[0-9a-fA-F]{32})*)?$",
            description=f"Ids of up to {AFTER_MAX} items of the queue that it waits for, with "
            "commas between.",
        ),
    ] = ""
    after_batch: Annotated[
        str | None, Meta(description="A batch of the queue that it waits for.")
    ] = None


class AddAnswer(msgspec.Struct):
    ids: list[fields.Id]
    """In the order of the items."""
    duplicates: list[bool] = msgspec.field(default_factory=list)
    """For each item, whether its key was there already. Empty when there was no duplicate."""
    is_repeat: bool = False
    """Whether this call of the producer had been stored before."""


async def add(call: Call[NoQuery, AddRequest | AddHeaders]) -> AddAnswer:
    body = call.body
    if isinstance(body, AddHeaders):
        body = _request_of(body, call.raw or b"")
    added = await in_new_queue(call, partial(_add, body))
    return AddAnswer([each.hex() for each in added], list(added.duplicates), added.is_repeat)


async def _add(body: AddRequest, queue: AsyncQueue) -> AddedIds:
    items, producer = body.items, body.producer
    contents = [item.contents for item in items]
    is_plain = producer is None and not (body.batch or body.after or body.after_batch)
    if is_plain and items == [NewItem(each) for each in contents]:
        return await queue.add(contents)
    keys = [item.key for item in items]
    options: AddOptions = {
        "delay": [item.delay_ms / SECOND_MS for item in items],
        "priority": [item.priority for item in items],
        "key": keys if any(keys) else None,
        "attributes": [item.attributes for item in items],
        "batch": body.batch,
        "attempts": [item.attempts for item in items],
        "backoff": [_seconds(item.backoff_ms) or None for item in items],
        "timeout": [_seconds_of(item.timeout_ms) for item in items],
        "expires": [_seconds_of(item.expires_ms) for item in items],
        "after": body.after,
        "after_batch": body.after_batch,
    }
    if producer is None:
        return await queue.add(contents, **options)
    numbered = queue.producer(producer.id, producer.epoch)
    return await numbered.add(contents, sequence=producer.sequence, **options)


def _seconds(times_ms: list[int]) -> list[float]:
    return [each / SECOND_MS for each in times_ms]


def _seconds_of(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / SECOND_MS


def _request_of(headers: AddHeaders, contents: bytes) -> AddRequest:
    try:
        attributes = dict(
            parse_qsl(
                headers.attributes, keep_blank_values=True, strict_parsing=True, errors="strict"
            )
            if headers.attributes
            else ()
        )
        key, batch, producer, after_batch = (
            None if text is None else unquote(text, errors="strict")
            for text in (headers.key, headers.batch, headers.producer, headers.after_batch)
        )
    except ValueError as error:
        raise invalid(f"headers: text is percent-encoded UTF-8: {error}") from None
    return AddRequest(
        [
            NewItem(
                contents,
                headers.delay_ms,
                headers.priority,
                key,
                attributes,
                headers.attempts,
                _listed("backoff_ms", headers.backoff_ms, fields.ItemBackoff),
                headers.timeout_ms,
                headers.expires_ms,
            )
        ],
        batch,
        None if producer is None else ProducerRef(producer, headers.epoch, headers.sequence),
        _listed("after", headers.after, fields.AwaitedIds),
        after_batch,
    )


def _listed(name: str, text: str, kind: Any) -> Any:
    """The values of a header that are separated by commas."""
    values = [each.strip() for each in text.split(",")] if text else []
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(f"headers: {name}: {error}") from None


# --- poll -----------------------------------------------------------------------------------------


class PollRequest(msgspec.Struct, forbid_unknown_fields=True):
    items_max: Annotated[int, Meta(ge=1, le=POLL_ITEMS_CEILING)] = 1
    lease_ms: fields.LeaseMs | None = None
    """How long the items are the caller's; the queue's setting if it is left out."""
    wait_ms: Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)] = WAIT_MS
    """How long to wait for the first item."""


class LeasedItem(msgspec.Struct):
    id: fields.Id
    contents: fields.Contents
    added_at_ms: int
    attempt: int
    deliveries: int
    """How often it was leased, this time included."""
    key: str | None
    batch: str | None
    attributes: dict[str, str]
    timeout_ms: int | None
    """How long a worker may take with it, if it has a time limit of its own."""


class PollAnswer(msgspec.Struct):
    lease: fields.Id | None
    """What `complete`, `fail`, `release`, `remove` and `extend` take; null if no item was ready."""
    items: list[LeasedItem]


async def poll(call: Call[NoQuery, PollRequest]) -> PollAnswer | Response:
    is_raw = call.headers.get(b"accept") == RAW_TYPE.encode()
    if is_raw and call.body.items_max > 1:
        raise invalid("items_max: raw bytes are one item; give 1, or accept application/json")
    lease = await in_new_queue(call, partial(_poll, call))
    if is_raw:
        return _raw_item(lease)
    items = [
        LeasedItem(
            item.id.hex(),
            item.contents,
            made_at_ms(item.id),
            item.attempt,
            item.deliveries,
            item.key or None,
            item.batch or None,
            dict(item.attributes),
            None if item.timeout is None else round(item.timeout * SECOND_MS),
        )
        for item in lease
    ]
    return PollAnswer(lease.id.hex() or None, items)


async def _poll(call: Call[NoQuery, PollRequest], queue: AsyncQueue) -> AsyncLease:
    body = call.body
    polling = queue.poll(
        body.items_max,
        lease=None if body.lease_ms is None else body.lease_ms / SECOND_MS,
        wait=body.wait_ms / SECOND_MS,
    )
    return await (call.wait(polling, give_back=AsyncLease.release) if body.wait_ms else polling)


def _raw_item(lease: AsyncLease) -> Response:
    """One item as it was added; what else is known of it is in headers."""
    if not lease:
        return Response(status_code=204)
    item = lease.items[0]
    told = {"lease": lease.id.hex(), "id": item.id.hex(), "attempt": str(item.attempt)}
    told["deliveries"] = str(item.deliveries)
    if item.timeout is not None:
        told["timeout-ms"] = str(round(item.timeout * SECOND_MS))
    texts = {"key": item.key, "batch": item.batch}
    told |= {name: quote(text, safe="") for name, text in texts.items() if text}
    headers = {f"queueber-{name}": value for name, value in told.items()}
    return Response(item.contents, media_type=RAW_TYPE, headers=headers)


# --- peek -----------------------------------------------------------------------------------------


class PeekQuery(msgspec.Struct, forbid_unknown_fields=True):
    state: Literal["ready", "delayed", "leased", "dead"] = "ready"
    after: Annotated[str, Meta(pattern="^([0-9a-fA-F]{2}){0,200}$")] = ""
    """`next` of another page."""
    limit: Annotated[int, Meta(ge=1, le=PEEK_ITEMS_MAX)] = PEEK_ITEMS_MAX
    where: Annotated[str, Meta(max_length=FILTER_CHARS_MAX)] = ""
    """A condition as in SQL: `item.error LIKE '%timeout%' AND attributes.region = 'eu'`. A page may
    then be empty though it has a `next`."""


class PeekedItem(msgspec.Struct):
    id: fields.Id
    contents: fields.Contents
    added_at_ms: int
    key: str | None
    batch: str | None
    attributes: dict[str, str]
    priority: int
    attempts: int
    deliveries: int
    at_ms: int
    """Ready: since when. Delayed: until when. Leased: the end of the lease. Dead: since when."""
    lease: fields.Id | None
    reason: str | None
    last_error: str | None
    attempt_times_ms: list[int]
    after: list[fields.Id]
    """Items that it waits for; until then `at_ms` is the end of the year 9999."""
    after_batch: str | None
    """The batch that it waits for."""
    attempts_max: int | None
    """Failures that make it a dead letter, if it has a limit of its own; 0: no limit."""
    backoff_ms: list[int]
    """Its delays after failures, if it has some of its own."""
    timeout_ms: int | None
    """How long a worker may take with it, if it has a time limit of its own."""
    expires_at_ms: int | None
    """It dies then, unless it is leased before; null: it does not, or it was leased."""


class PeekAnswer(msgspec.Struct):
    items: list[PeekedItem]
    next: str | None
    """Pass it as `after` to get the next page; null on the last page."""


async def peek(call: Call[PeekQuery, None]) -> PeekAnswer:
    query = call.query
    queue = present_queue(call)
    await call.take_turn()
    after = bytes.fromhex(query.after)
    page = await queue.peek(query.state, limit=query.limit, after=after, where=query.where)
    return PeekAnswer(list(map(shown_item, page.items)), page.next.hex() or None)


def shown_item(item: ItemInfo) -> PeekedItem:
    return PeekedItem(
        item.id.hex(),
        item.contents,
        item.added_at_ms,
        item.key or None,
        item.batch or None,
        dict(item.attributes),
        item.priority,
        item.attempts,
        item.deliveries,
        item.at_ms,
        item.lease_id.hex() or None,
        item.reason or None,
        item.last_error or None,
        list(item.attempt_times_ms),
        [each.hex() for each in item.after],
        item.after_batch or None,
        item.attempts_max,
        list(item.backoff_ms),
        item.timeout_ms or None,
        item.expires_at_ms or None,
    )


_ID = "0192f0c1a2b37c4d8e5f60718293a4b5"
_LEASE = "0192f0c1a2b37c4d8e5f60718293a4c7"

ROUTES = (
    Route(
        "POST", "/v1/queues/{queue}/items", add, "Add items", "items",
        description="Stores all items or none. Raw bytes (`application/octet-stream`) are one "
        "item, whose other fields are headers such as `Queueber-Key`. The queue is created if it "
        "does not exist.",
        body=AddRequest, raw_headers=AddHeaders, answer=AddAnswer, status=201,
        errors=(
            errors.NotFound, errors.FailedPrecondition, errors.ResourceExhausted, errors.Aborted,
            errors.OutcomeUnknown,
        ),
        body_example={"items": [{"contents": "aGVsbG8=", "key": "order-17"}]},
        answer_example={"ids": [_ID], "duplicates": [], "is_repeat": False},
    ),
    Route(
        "POST", "/v1/queues/{queue}/poll", poll, "Lease items", "items",
        description="Waits until an item is ready. A caller that hangs up takes nothing. With "
        "`Accept: application/octet-stream` the answer is the first item's bytes, and its lease "
        "is in `Queueber-Lease`; 204 if there is none.",
        body=PollRequest, answer=PollAnswer, is_raw_answer_possible=True,
        body_example={"items_max": 1, "lease_ms": 30000, "wait_ms": 0},
        answer_example={
            "lease": _LEASE,
            "items": [
                {
                    "id": _ID, "contents": "aGVsbG8=", "added_at_ms": 1730000000000, "attempt": 1,
                    "deliveries": 1, "key": "order-17", "batch": None, "attributes": {},
                    "timeout_ms": None,
                }
            ],
        },
    ),
    Route(
        "GET", "/v1/queues/{queue}/items", peek, "Look at items without leasing them", "items",
        query=PeekQuery, answer=PeekAnswer, errors=(errors.NotFound,),
    ),
)  # fmt: skip
