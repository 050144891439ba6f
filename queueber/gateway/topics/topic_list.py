"""Topics themselves: list, show, create, configure, delete."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.routes import Answer, NoQuery, Route
from queueber.gateway.topics.named_topic import present_topic
from queueber.gateway.topics.settings import (
    NewTopicSettings,
    TopicChanges,
    shown_settings,
    to_topic_arguments,
)
from queueber.limits import TOPIC_LIST_MAX, TOPIC_NAME_BYTES_MAX
from queueber.model import TopicInfo

_Start = Annotated[str, Meta(pattern=f"^[A-Za-z0-9._/-]{{0,{TOPIC_NAME_BYTES_MAX}}}$")]


class TopicsQuery(msgspec.Struct, forbid_unknown_fields=True):
    prefix: _Start = ""
    """Only names that begin with it."""
    after: _Start = ""
    """The last name of the page before."""
    limit: Annotated[int, Meta(ge=1, le=TOPIC_LIST_MAX)] = 100


class TopicPage(msgspec.Struct):
    topics: list[str]
    """Names, in order."""
    more: bool
    """Whether there are further ones: pass the last name as `after`."""


class PartitionAnswer(msgspec.Struct):
    first_offset: int
    next_offset: int
    bytes: int
    oldest_ms: int
    last_ms: int


class TopicAnswer(msgspec.Struct):
    """A topic: its settings, and how far its partitions reach."""

    name: str
    settings: NewTopicSettings
    created_at_ms: int
    partitions: list[PartitionAnswer]
    is_closed: bool
    is_deleted: bool
    """Whether only its forks keep it."""
    forks: int
    parent: str | None
    """The topic that it is a fork of."""
    groups: list[str]
    expires_at_ms: int
    """When it is deleted unless it is used; 0: never."""


class CreateTopicAnswer(msgspec.Struct):
    created: bool


def shown_topic(info: TopicInfo) -> TopicAnswer:
    return TopicAnswer(
        info.name,
        shown_settings(info.config),
        info.created_at_ms,
        [msgspec.convert(each, PartitionAnswer, from_attributes=True) for each in info.partitions],
        info.is_closed,
        info.is_deleted,
        info.forks,
        info.parent or None,
        list(info.groups),
        info.expires_at_ms,
    )


async def list_topics(call: Call[TopicsQuery, None]) -> TopicPage:
    query, names = call.query, list[str]()
    async for name in call.client.topics(query.prefix, after=query.after):
        if len(names) == query.limit:
            return TopicPage(names, more=True)
        names.append(name)
    return TopicPage(names, more=False)


async def show_topic(call: Call[NoQuery, None]) -> TopicAnswer:
    return shown_topic(await present_topic(call).describe())


async def create_topic(call: Call[NoQuery, NewTopicSettings]) -> Answer:
    settings = to_topic_arguments(call.body)
    created = await call.client.create_topic(call.names["topic"], **settings) is not None
    return Answer(CreateTopicAnswer(created), 201 if created else 200)


async def configure_topic(call: Call[NoQuery, TopicChanges]) -> TopicAnswer:
    await call.client.configure_topic(call.names["topic"], **to_topic_arguments(call.body))
    return shown_topic(await present_topic(call).describe())


async def delete_topic(call: Call[NoQuery, None]) -> None:
    name = call.names["topic"]
    if not await call.client.delete_topic(name):
        raise problem_of(errors.NotFound(f"topic: there is none named {name}"))


ROUTES = (
    Route(
        "GET", "/v1/topics", list_topics, "List the names of topics", "topics",
        query=TopicsQuery, answer=TopicPage,
        answer_example={"topics": ["orders", "orders/audit"], "more": False},
    ),
    Route(
        "GET", "/v1/topics/{topic}", show_topic, "Show a topic's settings and partitions",
        "topics", answer=TopicAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "PUT", "/v1/topics/{topic}", create_topic, "Create a topic", "topics",
        description="409 if it exists with other settings.",
        body=NewTopicSettings, answer=CreateTopicAnswer, status=201,
        other_statuses={200: "It exists with these settings."},
        errors=(errors.AlreadyExists, errors.ResourceExhausted, errors.OutcomeUnknown),
        body_example={"partitions": 4, "retention_ms": 604800000},
        answer_example={"created": True},
    ),
    Route(
        "PATCH", "/v1/topics/{topic}", configure_topic, "Change settings of a topic", "topics",
        body=TopicChanges, answer=TopicAnswer,
        errors=(errors.NotFound, errors.AlreadyExists, errors.FailedPrecondition),
        body_example={"retention_messages": 100000},
    ),
    Route(
        "DELETE", "/v1/topics/{topic}", delete_topic,
        "Delete a topic with all its messages and groups", "topics",
        status=204, errors=(errors.NotFound, errors.FailedPrecondition, errors.OutcomeUnknown),
    ),
)  # fmt: skip
