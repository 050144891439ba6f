"""The methods about topics: those of the bootstrap object, and those of one topic."""

from collections.abc import Awaitable
from typing import Any

from queueber.auth.roles import Action
from queueber.model import ForkAt, Publication, Published, TopicConfig
from queueber.rpc.calls import Answer, Methods, answer_with, call, check_may_hold, respond_with
from queueber.rpc.group_handlers import GroupMethods
from queueber.rpc.results_topic_handlers import ResultsTopicHandler
from queueber.rpc.rights import rights_of
from queueber.rpc.route_handlers import RouteMethods
from queueber.rpc.schema_handlers import SchemaMethods
from queueber.rpc.topic_reads import answer_read
from queueber.schema import wire
from queueber.service.result_messages import queue_of
from queueber.service.rights import check_any_right, check_right
from queueber.service.service import Service
from queueber.service.session import Session
from queueber.service.topic_handle import TopicHandle
from queueber.wire.messages import (
    read_publication,
    read_publications,
    write_published,
)
from queueber.wire.together import read_together, write_together_done
from queueber.wire.topics import read_config, read_partition, read_position, write_topic_info


class TopicsMethods(Methods):
    """The methods of the bootstrap object."""

    @call
    def topic_context(self, context: Any) -> Answer:
        params = context.params
        check_may_hold(self._session)
        queue = queue_of(params.name)
        if queue is not None:
            check_any_right(self._session, "queue", queue)
            results = self._service.result_topics.open(queue, self._session)
            return _give(context, ResultsTopicHandler(self._service, results))
        found = self._service.topics.open_topic(
            params.name, self._session, must_exist=params.mustExist
        )

        async def answer() -> None:
            context.results.topic = TopicHandler(self._service, await found)

        return answer()

    @call
    def createTopic_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        config = read_config(params.config)
        check_alias(self._session, config)
        first = _read_first(params, params.name)
        made = self._service.topics.create_topic(
            params.name, config, self._session, first, bytes(params.firstSchema)
        )
        return _write_made(context, made)

    @call
    def configureTopic_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        config = read_config(params.config)
        check_alias(self._session, config)
        return self._service.topics.configure_topic(params.name, config, self._session)

    @call
    def deleteTopic_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        deleted = self._service.topics.delete_topic(context.params.name, self._session)
        return answer_with(context, "deleted", deleted)

    @call
    def describeTopic_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        self._session.answers.check()
        found = self._service.topics.describe_topic(context.params.name, self._session)
        return respond_with(context, "topic", found, write_topic_info)

    @call
    async def listTopics_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        params, results = context.params, context.results
        names, more = self._service.topics.list_topics(
            params.prefix, params.after, params.limit, self._session
        )
        results.names = names
        results.more = more
        if params.tellsTimes:
            results.createdAtMs = self._service.topics.created_at_ms(names)
        self._count(context)

    @call
    def publish_context(self, context: Any) -> Answer:
        published = self._service.publishing.publish(
            self._session, read_publications(context.params.publications)
        )

        async def answer() -> None:
            done = await published
            listed = context.results.init("published", len(done))
            for at, each in enumerate(done):
                write_published(listed[at], each)

        return answer()

    @call
    def together_context(self, context: Any) -> Answer:
        done = self._service.together.together(self._session, read_together(context.params.req))
        return respond_with(context, "resp", done, write_together_done)


class TopicHandler(GroupMethods, SchemaMethods, RouteMethods, wire.Topic.Server):  # type: ignore[misc]  # capnp is untyped
    """The capability of one topic, for one connection. Ends when its caller lets go of it."""

    def __init__(self, service: Service, topic: TopicHandle) -> None:
        rights = rights_of(service, topic.session, ("Topic",), "topic", topic.name)
        super().__init__(service, topic.session, rights)
        self._topic = topic
        topic.session.queues += 1

    def __del__(self) -> None:
        self._session.queues -= 1

    @call
    def publish_context(self, context: Any) -> Answer:
        publication = read_publication(context.params.publication)
        published = self._service.publishing.publish_to(self._topic, publication)
        return _write_first(context, published)

    @call
    def read_context(self, context: Any) -> Answer:
        return answer_read(context, self._session, self._topic, self._service.reads.read)

    @call
    async def describe_context(self, context: Any) -> None:
        self._session.answers.check()
        write_topic_info(context.results.init("topic"), self._service.topics.describe(self._topic))
        self._count(context)

    @call
    def trim_context(self, context: Any) -> Answer:
        params = context.params
        deleted = self._service.topics.trim(
            self._topic, read_partition(params.partition), read_position(params.to)
        )
        return answer_with(context, "deleted", deleted)

    @call
    def fork_context(self, context: Any) -> Answer:
        request = context.params.req
        config = read_config(request.config)
        check_right(self._session, Action.ADMINISTER, "topic", request.name)
        check_alias(self._session, config)
        at = ForkAt(read_partition(request.partition), request.offset, request.cutBytes)
        first = _read_first(request, request.name)
        made = self._service.topics.fork(self._topic, request.name, config, at, first)
        return _write_made(context, made)

    @call
    def close_context(self, context: Any) -> Answer:
        return self._service.topics.close(self._topic)

    @call
    async def find_context(self, context: Any) -> None:
        params, results = context.params, context.results
        found = self._service.topics.find(self._topic, params.id, params.sequence)
        if found is not None:
            results.found = True
            results.partition, results.offset = found


def check_alias(session: Session, config: TopicConfig) -> None:
    """An alias is a name, too: it must be one that the caller may administer."""
    if config.alias:
        check_right(session, Action.ADMINISTER, "topic", config.alias)


async def _give(context: Any, topic: object) -> None:
    context.results.topic = topic


def _read_first(source: Any, name: str) -> Publication | None:
    """What a new topic begins with."""
    if not source._has("first"):
        return None
    first = read_publication(source.first)
    first.topic = name
    return first


async def _write_made(context: Any, made: Awaitable[Published | None]) -> None:
    published = await made
    if published is not None:
        context.results.created = True
        write_published(context.results.init("published"), published)


async def _write_first(context: Any, published: Awaitable[list[Published]]) -> None:
    (own,) = await published
    write_published(context.results.init("published"), own)
