"""Consume, acknowledge and the latest offsets, under the paths of KalamDB and of its first design.

With a group, messages are leased, and come back if nobody acknowledges them in time. A caller that
hangs up gets nothing. The fields of both forms are taken on both paths.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import consuming, errors
from queueber.consuming import Consumed
from queueber.consuming.consume import LIMIT, PARTITIONS_MAX, release
from queueber.consuming.starts import OFFSET_MAX
from queueber.gateway.calls import Call
from queueber.gateway.kalam.errors import kalam_error
from queueber.gateway.kalam.messages import (
    DesignedMessage,
    TopicMessage,
    designed_message,
    topic_message,
)
from queueber.gateway.problems import invalid
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import SECOND_MS, TOPIC_PARTITIONS_MAX

_Name = Annotated[str, Meta(max_length=255)]
_Number = Annotated[int, Meta(ge=0, le=OFFSET_MAX)]
_Partition = Annotated[int, Meta(ge=0, lt=TOPIC_PARTITIONS_MAX)]


class ConsumeTopicRequest(msgspec.Struct):
    topic_id: _Name | None = None
    topic: _Name | None = None
    """Another name of `topic_id`; give one of them. An alias of the topic will do."""
    group_id: _Name | None = None
    """Without one, or if it is blank, the read is stateless."""
    start: str | int | dict[str, int] | None = None
    """`"Latest"`, `"Earliest"` or `{"Offset": n}`, in any letter case: where a group begins that
    has not begun the partition, or where a stateless read begins. The latest if it is left out."""
    limit: _Number | None = None
    """Most messages of the answer: 100 if it is left out."""
    partition_id: _Partition | None = None
    """0 if it is left out."""
    timeout_seconds: _Number | None = None
    """How long to wait for the first message; 0 does not wait. The gateway has a longest wait."""


class ConsumeTopicAnswer(msgspec.Struct):
    messages: list[TopicMessage]
    next_offset: int
    """Behind the last message; without messages where the next ones begin."""
    has_more: bool
    """Whether the partition has messages behind these."""


class DesignedConsumeAnswer(msgspec.Struct):
    messages: list[DesignedMessage]
    next_offset: int
    has_more: bool


class AckTopicRequest(msgspec.Struct):
    upto_offset: Annotated[int, Meta(ge=0, lt=OFFSET_MAX)]
    """The group is done with this message, and with all before it."""
    topic_id: _Name | None = None
    topic: _Name | None = None
    group_id: _Name | None = None
    partition_id: _Partition | None = None


class AckTopicAnswer(msgspec.Struct):
    success: bool
    acknowledged_offset: int
    """Up to which the group is done; never lower than before. -1: with no message."""


class PartitionName(msgspec.Struct):
    topic_id: _Name | None = None
    topic: _Name | None = None
    partition_id: _Partition | None = None


class LatestOffsetsRequest(msgspec.Struct):
    partitions: Annotated[list[PartitionName], Meta(max_length=PARTITIONS_MAX)]


class LatestOffset(msgspec.Struct):
    topic_id: str
    partition_id: int
    next_offset: int
    last_offset: int | None
    """Null if the partition never had a message."""


class LatestOffsetsAnswer(msgspec.Struct):
    """Each partition once, sorted by topic and number."""

    offsets: list[LatestOffset]


def _topic(body: ConsumeTopicRequest | AckTopicRequest | PartitionName) -> str:
    if body.topic_id and body.topic and body.topic_id != body.topic:
        raise invalid("body: topic: topic_id names another one; give one of the two")
    name = body.topic_id or body.topic
    if not name:
        raise invalid("body: topic_id: it is missing; name the topic")
    return name


def _group(body: ConsumeTopicRequest | AckTopicRequest) -> str | None:
    return body.group_id if body.group_id is not None and body.group_id.strip() else None


async def _consumed(call: Call[NoQuery, ConsumeTopicRequest]) -> Consumed:
    body, settings = call.body, call.settings
    topic, group, client = _topic(body), _group(body), call.client
    seconds = settings.consume_wait_ms / SECOND_MS
    if body.timeout_seconds is not None:
        seconds = min(body.timeout_seconds, settings.consume_wait_ms_max / SECOND_MS)
    asked = consuming.consume(
        client,
        topic,
        group,
        consuming.read_start(body.start),
        LIMIT if body.limit is None else body.limit,
        body.partition_id or 0,
        seconds,
        lease_s=settings.consume_lease_ms / SECOND_MS,
    )
    if not seconds:
        return await asked

    async def give_back(consumed: Consumed) -> None:
        if group is not None:
            await release(client, topic, group, consumed)

    return await call.wait(asked, give_back=give_back)


async def consume(call: Call[NoQuery, ConsumeTopicRequest]) -> ConsumeTopicAnswer:
    found, topic = await _consumed(call), _topic(call.body)
    messages = [topic_message(topic, each) for each in found.messages]
    return ConsumeTopicAnswer(messages, found.next_offset, found.has_more)


async def consume_as_designed(call: Call[NoQuery, ConsumeTopicRequest]) -> DesignedConsumeAnswer:
    found, topic = await _consumed(call), _topic(call.body)
    messages = [designed_message(topic, each) for each in found.messages]
    return DesignedConsumeAnswer(messages, found.next_offset, found.has_more)


async def acknowledge(call: Call[NoQuery, AckTopicRequest]) -> AckTopicAnswer:
    body, group = call.body, _group(call.body)
    if group is None:
        raise invalid("body: group_id: it is missing; name the group that is done")
    stored = await consuming.acknowledge(
        call.client,
        _topic(body),
        group,
        body.upto_offset,
        body.partition_id or 0,
        lease_s=call.settings.consume_lease_ms / SECOND_MS,
    )
    return AckTopicAnswer(success=True, acknowledged_offset=stored)


async def latest_offsets(call: Call[NoQuery, LatestOffsetsRequest]) -> LatestOffsetsAnswer:
    wanted = [(_topic(each), each.partition_id or 0) for each in call.body.partitions]
    found = await consuming.latest_offsets(call.client, wanted)
    return LatestOffsetsAnswer(
        [LatestOffset(each.topic, each.partition, each.next_offset, each.last_offset)
         for each in found]
    )  # fmt: skip


_CONSUME = "Waits until there is a message. A caller that hangs up takes nothing. With a group, messages are the caller's for a minute, unless the gateway is set up otherwise."  # noqa: E501
_ERRORS = (errors.NotFound, errors.FailedPrecondition, errors.OutcomeUnknown)
_ASKED = {
    "topic_id": "shop.orders", "group_id": "billing", "start": "Earliest", "limit": 100,
    "partition_id": 0, "timeout_seconds": 0,
}  # fmt: skip
_TAKEN = {
    "topic_id": "shop.orders", "partition_id": 0, "offset": 17, "payload": "aGVsbG8=",
    "op": "Insert", "source_table": "", "payload_mode": "Full", "user": "anonymous",
}  # fmt: skip
_ACK = {"topic_id": "shop.orders", "group_id": "billing", "partition_id": 0, "upto_offset": 17}
_MORE = {"next_offset": 18, "has_more": False}

ROUTES = (
    Route(
        "POST", "/v1/api/topics/consume", consume, "Consume messages, as KalamDB", "kalamdb",
        description=_CONSUME, body=ConsumeTopicRequest, answer=ConsumeTopicAnswer, errors=_ERRORS,
        error_body=kalam_error, body_example=_ASKED,
        answer_example={
            "messages": [_TAKEN | {"key": None, "timestamp_ms": 1794943754592}], **_MORE
        },
    ),
    Route(
        "POST", "/api/topics/consume", consume_as_designed,
        "Consume messages, as the design of KalamDB's topics has it", "kalamdb",
        description=_CONSUME, body=ConsumeTopicRequest, answer=DesignedConsumeAnswer,
        errors=_ERRORS, error_body=kalam_error, body_example=_ASKED,
        answer_example={
            "messages": [
                _TAKEN | {"message_id": "01a1eafc216076309dca1630df78ba81", "ts": 1794943754592}
            ],
            **_MORE,
        },
    ),
    *(
        Route(
            "POST", path, acknowledge, "Acknowledge up to an offset, as KalamDB", "kalamdb",
            description="Covers whatever other consumers of the group have of the messages before.",
            body=AckTopicRequest, answer=AckTopicAnswer, errors=_ERRORS, error_body=kalam_error,
            body_example=_ACK, answer_example={"success": True, "acknowledged_offset": 17},
        )
        for path in ("/v1/api/topics/ack", "/api/topics/ack")
    ),
    Route(
        "POST", "/v1/api/topics/latest-offsets", latest_offsets, "How far partitions reach",
        "kalamdb", body=LatestOffsetsRequest, answer=LatestOffsetsAnswer, errors=_ERRORS,
        error_body=kalam_error,
        body_example={"partitions": [{"topic_id": "shop.orders", "partition_id": 0}]},
        answer_example={
            "offsets": [
                {"topic_id": "shop.orders", "partition_id": 0, "next_offset": 18, "last_offset": 17}
            ]
        },
    ),
)  # fmt: skip
