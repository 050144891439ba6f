"""What consumers of a group do: acknowledge; and of a shared group poll, fail, release, extend."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from starlette.responses import Response

from queueber import errors
from queueber.client import AsyncLease, Item
from queueber.gateway.bodies import RAW_TYPE
from queueber.gateway.calls import Call
from queueber.gateway.problems import invalid
from queueber.gateway.queues.fields import DelayMs, Id, LeaseMs
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.settings import WAIT_MS
from queueber.gateway.topics import fields
from queueber.gateway.topics.groups.references import References, ids_of, reference_of
from queueber.gateway.topics.messages import encoded_texts, raw_message
from queueber.gateway.topics.named_topic import present_topic, shared_group
from queueber.limits import POLL_ITEMS_CEILING, SECOND_MS

# --- poll -----------------------------------------------------------------------------------------


class GroupPollRequest(msgspec.Struct, forbid_unknown_fields=True):
    messages_max: Annotated[int, Meta(ge=1, le=POLL_ITEMS_CEILING)] = 1
    lease_ms: LeaseMs | None = None
    """How long the messages are the caller's; the group's setting if it is left out."""
    wait_ms: fields.WaitMs = WAIT_MS
    """How long to wait for the first message."""


class LeasedMessage(msgspec.Struct):
    partition: int
    offset: int
    payload: fields.Payload
    attempt: int
    key: str | None
    attributes: dict[str, str]


class GroupPollAnswer(msgspec.Struct):
    lease: Id | None
    """What `ack`, `fail`, `release` and `extend` take; null if there was no message."""
    messages: list[LeasedMessage]


async def poll_group(call: Call[NoQuery, GroupPollRequest]) -> GroupPollAnswer | Response:
    body = call.body
    is_raw = call.headers.get(b"accept") == RAW_TYPE.encode()
    polling = shared_group(call).poll(
        1 if is_raw else body.messages_max,
        lease=None if body.lease_ms is None else body.lease_ms / SECOND_MS,
        wait=body.wait_ms / SECOND_MS,
    )
    if body.wait_ms:
        lease = await call.wait(polling, give_back=AsyncLease.release)
    else:
        lease = await polling
    if is_raw:
        return _raw(lease)
    return GroupPollAnswer(lease.id.hex() or None, [_shown(item) for item in lease])


def _shown(item: Item) -> LeasedMessage:
    place = reference_of(item.id)
    return LeasedMessage(
        place.partition,
        place.offset,
        item.contents,
        item.attempt,
        item.key or None,
        dict(item.attributes),
    )


def _raw(lease: AsyncLease) -> Response:
    if not lease:
        return Response(status_code=204)
    item = lease.items[0]
    place = reference_of(item.id)
    told = {
        "lease": lease.id.hex(),
        "partition": place.partition,
        "offset": place.offset,
        "attempt": item.attempt,
    }
    return raw_message(item.contents, told, encoded_texts(item.key, item.attributes))


# --- what becomes of messages ---------------------------------------------------------------------


class AckGroupRequest(msgspec.Struct, forbid_unknown_fields=True):
    """An ordered group is done with all messages of a partition before `offset`. A shared group is
    done with `messages` of a `lease`."""

    offset: fields.Offset | None = None
    partition: fields.Partition | None = None
    """Of the offset; 0 if it is left out."""
    lease: Id | None = None
    messages: References | None = None


class AckGroupAnswer(msgspec.Struct):
    offset: int | None
    """Of an ordered group: where its cursor is, which never goes back."""
    done: list[bool] | None
    """Of a shared group, for each message: false if the lease does not hold it any more."""


class GroupFailRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: Id
    messages: References
    error: str = ""
    """Why; it is kept with the messages, cut to 16 KiB."""
    delay_ms: DelayMs | None = None
    """How long the messages are held back; the group's backoff if it is left out."""


class GroupFailAnswer(msgspec.Struct):
    """For each message in order: it is tried again, is a dead letter, or was not held."""

    outcomes: list[Literal["retried", "died", "refused"]]


class GroupReleaseRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: Id
    messages: References


class GroupReleaseAnswer(msgspec.Struct):
    """For each message in order: false if the lease does not hold it any more."""

    done: list[bool]


class GroupExtendRequest(msgspec.Struct, forbid_unknown_fields=True):
    lease: Id
    lease_ms: LeaseMs
    """When the lease ends instead, from now."""


class GroupExtendAnswer(msgspec.Struct):
    extended: bool
    """False when the lease has ended already."""


async def ack(call: Call[NoQuery, AckGroupRequest]) -> AckGroupAnswer:
    body = call.body
    if body.offset is not None:
        if body.lease is not None or body.messages is not None:
            raise invalid("body: lease: an offset was given, too; give one of the two")
        topic, group = present_topic(call), call.names["group"]
        return AckGroupAnswer(
            await topic.ack(group, body.offset, partition=body.partition or 0), None
        )
    if body.lease is None or body.messages is None:
        raise invalid("body: offset: it is missing; give offset, or lease and messages")
    if body.partition is not None:
        raise invalid("body: partition: it goes with an offset; messages have their own")
    return AckGroupAnswer(
        None, await shared_group(call).remove(ids_of(body.messages), lease=body.lease)
    )


async def fail_messages(call: Call[NoQuery, GroupFailRequest]) -> GroupFailAnswer:
    body = call.body
    delay = None if body.delay_ms is None else body.delay_ms / SECOND_MS
    failed = await shared_group(call).fail(
        ids_of(body.messages), body.error, lease=body.lease, delay=delay
    )
    return GroupFailAnswer([outcome.value for outcome in failed])


async def release_messages(call: Call[NoQuery, GroupReleaseRequest]) -> GroupReleaseAnswer:
    body = call.body
    released = await shared_group(call).release(ids_of(body.messages), lease=body.lease)
    return GroupReleaseAnswer(released)


async def extend_lease(call: Call[NoQuery, GroupExtendRequest]) -> GroupExtendAnswer:
    body = call.body
    extended = await shared_group(call).extend(body.lease_ms / SECOND_MS, lease=body.lease)
    return GroupExtendAnswer(extended)


_GROUP = "/v1/topics/{topic}/groups/{group}"
_LEASE = "0192f0c1a2b37c4d8e5f60718293a4c7"
_PLACE = {"partition": 0, "offset": 17}
_HELD = {"lease": _LEASE, "messages": [_PLACE]}
_ERRORS = (errors.NotFound, errors.FailedPrecondition, errors.OutcomeUnknown)

ROUTES = (
    Route(
        "POST", f"{_GROUP}/poll", poll_group, "Lease messages of a shared group", "groups",
        description="Waits until there is a message. A caller that hangs up takes nothing. With "
        "`Accept: application/octet-stream` the answer is the first message's bytes, and its "
        "lease is in `Queueber-Lease`; 204 if there is none.",
        body=GroupPollRequest, answer=GroupPollAnswer, is_raw_answer_possible=True,
        errors=(errors.NotFound, errors.FailedPrecondition),
        body_example={"messages_max": 1, "lease_ms": 30000, "wait_ms": 0},
        answer_example={
            "lease": _LEASE,
            "messages": [
                {**_PLACE, "payload": "aGVsbG8=", "attempt": 1, "key": None, "attributes": {}}
            ],
        },
    ),
    Route(
        "POST", f"{_GROUP}/ack", ack, "Acknowledge messages", "groups",
        description="With `offset` for an ordered group, with `lease` and `messages` for a shared "
        "one.",
        body=AckGroupRequest, answer=AckGroupAnswer,
        errors=(*_ERRORS, errors.Aborted, errors.OutOfRange),
        body_example={"offset": 18}, answer_example={"offset": 18, "done": None},
    ),
    Route(
        "POST", f"{_GROUP}/fail", fail_messages, "Report that messages failed", "groups",
        description="They are tried again after a delay, or become dead letters.",
        body=GroupFailRequest, answer=GroupFailAnswer, errors=_ERRORS,
        body_example={**_HELD, "error": "no such file"},
        answer_example={"outcomes": ["retried"]},
    ),
    Route(
        "POST", f"{_GROUP}/release", release_messages,
        "Give messages back without an attempt being counted", "groups",
        body=GroupReleaseRequest, answer=GroupReleaseAnswer, errors=_ERRORS,
        body_example=_HELD, answer_example={"done": [True]},
    ),
    Route(
        "POST", f"{_GROUP}/extend", extend_lease, "Give a lease of messages more time", "groups",
        body=GroupExtendRequest, answer=GroupExtendAnswer, errors=_ERRORS,
        body_example={"lease": _LEASE, "lease_ms": 30000}, answer_example={"extended": True},
    ),
)  # fmt: skip
