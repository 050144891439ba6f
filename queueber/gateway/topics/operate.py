"""What operators do with a topic: trim, close, fork."""

from urllib.parse import quote

import msgspec

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.named_topic import present_topic
from queueber.gateway.topics.settings import Keeping, to_topic_arguments


class TrimRequest(msgspec.Struct, forbid_unknown_fields=True):
    to: fields.Place
    """Messages before this place are deleted."""
    partition: fields.Partition | None = None
    """All partitions if it is left out."""


class TrimAnswer(msgspec.Struct):
    deleted: int


class ForkPoint(msgspec.Struct, forbid_unknown_fields=True):
    offset: fields.Offset
    partition: fields.Partition = 0


class ForkRequest(Keeping, forbid_unknown_fields=True, kw_only=True):
    """A topic that shares the messages of this one, and has settings of its own."""

    name: fields.TopicName
    before: ForkPoint | None = None
    """It shares the messages before this one; all that there are if it is left out."""


class ForkAnswer(msgspec.Struct):
    name: str


async def trim(call: Call[NoQuery, TrimRequest]) -> TrimAnswer:
    body, to = call.body, fields.to_position(call.body.to)
    return TrimAnswer(await present_topic(call).trim(partition=body.partition, start=to))


async def close(call: Call[NoQuery, None]) -> None:
    await present_topic(call).close()


async def fork(call: Call[NoQuery, ForkRequest]) -> Answer:
    body = call.body
    settings, at = to_topic_arguments(body), body.before
    offset, partition = (None, None) if at is None else (at.offset, at.partition)
    await present_topic(call).fork(body.name, offset, partition=partition, **settings)
    where = f"/v1/topics/{quote(body.name, safe='')}"
    return Answer(ForkAnswer(body.name), 201, {"location": where})


_ERRORS = (errors.NotFound, errors.FailedPrecondition, errors.OutcomeUnknown)

ROUTES = (
    Route(
        "POST", "/v1/topics/{topic}/trim", trim, "Delete old messages", "topics",
        body=TrimRequest, answer=TrimAnswer, errors=(*_ERRORS, errors.OutOfRange),
        body_example={"to": "last:1000"}, answer_example={"deleted": 17},
    ),
    Route(
        "POST", "/v1/topics/{topic}/close", close, "Take no more messages", "topics",
        description="Final; may be repeated.",
        status=204, errors=(errors.NotFound, errors.FailedPrecondition),
    ),
    Route(
        "POST", "/v1/topics/{topic}/fork", fork,
        "Create a topic that shares the messages of this one", "topics",
        body=ForkRequest, answer=ForkAnswer, status=201,
        errors=(*_ERRORS, errors.AlreadyExists, errors.OutOfRange, errors.ResourceExhausted),
        body_example={"name": "orders-again", "before": {"offset": 17}},
        answer_example={"name": "orders-again"},
    ),
)  # fmt: skip
