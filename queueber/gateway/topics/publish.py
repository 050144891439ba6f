"""Publishing: to one topic, and to many in one step."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.client import NewMessage
from queueber.gateway.calls import Call
from queueber.gateway.queues.items import ProducerRef
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.messages import (
    MessageHeaders,
    MessageToPublish,
    PublishAnswer,
    message_of,
    new_messages,
    producer_of,
    producer_of_headers,
    shown_published,
)
from queueber.gateway.topics.named_topic import new_topic
from queueber.limits import PUBLISH_MESSAGES_MAX, PUBLISH_TOPICS_MAX


class PublishRequest(msgspec.Struct, forbid_unknown_fields=True):
    messages: Annotated[list[MessageToPublish], Meta(min_length=1, max_length=PUBLISH_MESSAGES_MAX)]
    partition: fields.Partition | None = None
    """The partition of all messages; if it is left out, their keys decide."""
    producer: ProducerRef | None = None
    expected_offset: fields.Offset | None = None
    """The offset that the first message must get, else 412."""
    close: bool = False
    """Whether the topic takes no message after these."""


class TopicPublication(PublishRequest, forbid_unknown_fields=True, kw_only=True):
    """What is published to one of several topics."""

    topic: fields.TopicName


class PublishManyRequest(msgspec.Struct, forbid_unknown_fields=True):
    publications: Annotated[
        list[TopicPublication], Meta(min_length=1, max_length=PUBLISH_TOPICS_MAX)
    ]


class PublishManyAnswer(msgspec.Struct):
    """For each publication in order, where its messages are."""

    published: list[PublishAnswer]


def options_of(request: PublishRequest) -> dict[str, Any]:
    return {
        "partition": request.partition,
        "producer": producer_of(request.producer),
        "expected_offset": request.expected_offset,
        "close": request.close,
    }


async def publish(call: Call[NoQuery, PublishRequest | MessageHeaders]) -> PublishAnswer:
    body = call.body
    if isinstance(body, MessageHeaders):
        body = _request_of(body, call.raw or b"")
    messages: list[bytes] | list[NewMessage] = [each.payload for each in body.messages]
    if body.messages != [MessageToPublish(each.payload) for each in body.messages]:
        messages = new_messages(body.messages)
    return shown_published(await new_topic(call).publish(messages, **options_of(body)))


def _request_of(headers: MessageHeaders, payload: bytes) -> PublishRequest:
    return PublishRequest(
        [message_of(headers, payload)],
        headers.partition,
        producer_of_headers(headers),
        headers.expected_offset,
        headers.close,
    )


async def publish_many(call: Call[NoQuery, PublishManyRequest]) -> PublishManyAnswer:
    async with call.client.together() as step:
        for each in call.body.publications:
            step.publish(each.topic, new_messages(each.messages), **options_of(each))
    return PublishManyAnswer([shown_published(each) for each in step.done.published])


_PUBLISHED = {
    "published_at_ms": 1730000000000,
    "partitions": [0],
    "offsets": [17],
    "ids": ["0192f0c1a2b37c4d8e5f60718293a4b5"],
    "sequences": [170],
    "duplicates": [],
    "is_repeat": False,
}
_ERRORS = (
    errors.NotFound, errors.ResourceExhausted, errors.Aborted, errors.FailedPrecondition,
    errors.OutcomeUnknown,
)  # fmt: skip

ROUTES = (
    Route(
        "POST", "/v1/topics/{topic}/messages", publish, "Publish messages", "messages",
        description="Stores all messages or none. Raw bytes (`application/octet-stream`) are one "
        "message, whose other fields are headers such as `Queueber-Key`. The topic is created if "
        "it does not exist and the server is set to do so.",
        body=PublishRequest, raw_headers=MessageHeaders, answer=PublishAnswer, status=201,
        errors=_ERRORS,
        body_example={"messages": [{"payload": "aGVsbG8=", "key": "order-17"}]},
        answer_example=_PUBLISHED,
    ),
    Route(
        "POST", "/v1/publish", publish_many, "Publish to several topics, all or none", "messages",
        body=PublishManyRequest, answer=PublishManyAnswer, status=201, errors=_ERRORS,
        body_example={
            "publications": [
                {"topic": "orders", "messages": [{"payload": "aGVsbG8="}]},
                {"topic": "audit", "messages": [{"payload": "aGVsbG8=", "key": "order-17"}]},
            ]
        },
        answer_example={"published": [_PUBLISHED, _PUBLISHED]},
    ),
)  # fmt: skip
