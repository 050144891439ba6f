"""The sources of a topic: queues whose changes it gets."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.gateway.topics.named_topic import present_topic
from queueber.limits import FILTER_CHARS_MAX, QUEUE_NAME_CHARS_MAX
from queueber.model import Source

On = Literal["insert", "update", "delete"]
_Filter = Annotated[str, Meta(max_length=FILTER_CHARS_MAX)]
_Queue = Annotated[str, Meta(pattern=f"^[A-Za-z0-9._-]{{1,{QUEUE_NAME_CHARS_MAX}}}$")]


class SourceFields(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: _Queue
    on: On
    where: _Filter = ""
    """Only changes that this filter matches."""
    partition_by: _Filter = ""
    """Fields that choose the partition, in place of the item's key."""
    payload: Literal["key", "full", "diff"] = "key"
    """What a message holds: the item's key, its contents, or what changed."""


class SourceList(msgspec.Struct):
    sources: list[SourceFields]


class AddSourceAnswer(msgspec.Struct):
    added: bool


class DropSourceQuery(msgspec.Struct, forbid_unknown_fields=True):
    on: On | None = None
    """All kinds of changes if it is left out."""


class DropSourceAnswer(msgspec.Struct):
    dropped: int


async def list_sources(call: Call[NoQuery, None]) -> SourceList:
    info = await present_topic(call).describe()
    return SourceList([_shown(each) for each in info.sources])


def _shown(source: Source) -> SourceFields:
    return SourceFields(
        queue=source.queue,
        on=source.on.value,
        where=source.where,
        partition_by=source.partition_by,
        payload=source.payload.value,
    )


async def add_source(call: Call[NoQuery, SourceFields]) -> Answer:
    body = call.body
    added = await present_topic(call).add_source(
        body.queue,
        on=body.on,
        where=body.where,
        partition_by=body.partition_by,
        payload=body.payload,
    )
    return Answer(AddSourceAnswer(added), 201 if added else 200)


async def drop_source(call: Call[DropSourceQuery, None]) -> DropSourceAnswer:
    queue, on = call.names["queue"], call.query.on
    return DropSourceAnswer(await present_topic(call).drop_source(queue, on=on))


ROUTES = (
    Route(
        "GET", "/v1/topics/{topic}/sources", list_sources,
        "List the queues whose changes a topic gets", "topics",
        answer=SourceList, errors=(errors.NotFound,),
        answer_example={
            "sources": [
                {"queue": "orders", "on": "insert", "where": "total >= 100", "partition_by": "",
                 "payload": "full"},
            ]
        },
    ),
    Route(
        "POST", "/v1/topics/{topic}/sources", add_source,
        "Publish changes of a queue's items to the topic", "topics",
        body=SourceFields, answer=AddSourceAnswer, status=201,
        other_statuses={200: "The same source exists."},
        errors=(
            errors.NotFound, errors.AlreadyExists, errors.FailedPrecondition,
            errors.ResourceExhausted,
        ),
        body_example={"queue": "orders", "on": "insert", "where": "total >= 100"},
        answer_example={"added": True},
    ),
    Route(
        "DELETE", "/v1/topics/{topic}/sources/{queue}", drop_source,
        "Publish changes of a queue no more", "topics",
        query=DropSourceQuery, answer=DropSourceAnswer,
        errors=(errors.NotFound, errors.FailedPrecondition, errors.OutcomeUnknown),
        answer_example={"dropped": 1},
    ),
)  # fmt: skip
