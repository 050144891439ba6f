"""All calls of one topic, and those that create, list and delete topics."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any

from queueber.client.arguments import values
from queueber.client.arguments.new_messages import AnyMessages, to_first, to_partition
from queueber.client.arguments.topic_names import to_topic_name
from queueber.client.arguments.topic_settings import to_topic_config
from queueber.client.calls.groups import GroupCalls, to_partitions
from queueber.client.calls.publishes import (
    NumberedPublishes,
    Publishes,
    check_size,
    is_plain,
    to_existing,
)
from queueber.client.calls.reads import ReadCalls
from queueber.client.calls.routes import RouteCalls
from queueber.client.calls.schemas import SchemaCalls, to_document
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link, TopicRef
from queueber.client.transport.remote_queue import RemoteQueue, filled
from queueber.errors import InvalidArgument
from queueber.limits import TOPIC_LIST_MAX
from queueber.model import Position, Publication, Published, TopicConfig, TopicInfo
from queueber.wire.messages import read_published, write_publication
from queueber.wire.topics import read_topic_info, write_config, write_position

_AS_IT_IS = 0
"""In place of the number of partitions."""


class TopicCalls:
    """The calls of one topic."""

    def __init__(self, connection: Connection, ref: TopicRef, publishes: Publishes) -> None:
        self.topic = topic = RemoteQueue(connection, ref)
        self.ref = ref
        self.name = ref.name
        self.address = connection.target.address
        self._publishes = publishes
        self.reads = ReadCalls(topic)
        self.groups = GroupCalls(topic)
        self.schemas = SchemaCalls(topic)
        self.routes = RouteCalls(topic)

    def publish(self, publication: Publication) -> "Future[Published]":
        publication.may_create = not self.ref.must_exist
        if publication.may_create or is_plain(publication):
            return self._publishes.publish(publication)
        check_size(self.topic.connection, [publication])
        return self.topic.ask(
            to_existing(publication),
            lambda response: read_published(response.published),
            is_repeatable=publication.producer is not None,
        )

    def numbered_publishes(self, producer_id: str, epoch: int) -> NumberedPublishes:
        """Publishes of one producer. Producers share nothing."""
        return NumberedPublishes(self.topic, producer_id, epoch)

    def describe(self) -> "Future[TopicInfo]":
        return self.topic.ask(
            methodcaller("describe"), lambda response: read_topic_info(response.topic)
        )

    def trim(self, partition: int | None, to: Position) -> "Future[int]":
        def send(topic: Any) -> Any:
            request = topic.trim_request()
            request.partition = to_partitions(partition)
            write_position(request.init("to"), to)
            return request.send()

        to_partitions(partition)
        return self.topic.ask(send, lambda response: int(response.deleted), is_repeatable=False)

    def close(self) -> "Future[None]":
        return self.topic.ask(methodcaller("close"), lambda _: None)

    def fork(
        self,
        name: str,
        offset: int | None,
        partition: int | None,
        given: Mapping[str, Any],
        *,
        cut_bytes: int = 0,
        messages: AnyMessages = (),
        close: bool = False,
    ) -> "Future[bool]":
        to_topic_name(name, "name")
        values.to_number("cut_bytes", cut_bytes)
        config = replace(to_topic_config(TopicConfig(), given), partitions=_AS_IT_IS)
        if offset is not None:
            values.to_number("offset", offset, what="an offset")
            partition = 0 if partition is None else to_partition(partition)
        elif partition is not None:
            raise InvalidArgument("offset: a partition was given without one; give both")
        elif cut_bytes:
            raise InvalidArgument("offset: cut_bytes was given without one; give both")
        version = config.settings.schema_version
        first = to_first(name, messages, close=close, schema_version=version)
        if first is not None:
            check_size(self.topic.connection, [first])

        def write(request: Any) -> None:
            request.name = name
            write_config(request.init("config"), config)
            request.partition = to_partitions(partition)
            request.offset = offset or 0
            request.cutBytes = cut_bytes
            if first is not None:
                write_publication(request.init("first"), first)

        return self.topic.ask(
            filled("fork", write), lambda response: bool(response.created), is_repeatable=False
        )


class TopicList:
    """The calls that create, configure, delete and list topics."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(
        self,
        name: str,
        given: Mapping[str, Any],
        messages: AnyMessages = (),
        *,
        close: bool = False,
        schema: object = None,
    ) -> "Future[Published | None]":
        document = b"" if schema is None else to_document(schema)
        config = to_topic_config(
            TopicConfig(), {**given, "schema_version": 1} if document else given
        )
        to_topic_name(name, "name")
        version = config.settings.schema_version
        first = to_first(name, messages, close=close, schema_version=version)
        if first is not None:
            check_size(self._connection, [first])
        send = partial(_send_config, "createTopic", name, config, first=first, schema=document)

        def read(response: Any) -> Published | None:
            return read_published(response.published) if response.created else None

        return self._connection.ask(send, read, is_repeatable=False)

    def configure(self, name: str, given: Mapping[str, Any]) -> "Future[None]":
        # Wrong settings are refused before any call.
        to_topic_config(TopicConfig(), given)
        ref = TopicRef(to_topic_name(name, "name"), True)

        async def configure() -> None:
            response = await self._connection.call(
                methodcaller("describe"), is_repeatable=True, of=ref
            )
            present = replace(read_topic_info(response.topic).config, partitions=_AS_IT_IS)
            config = to_topic_config(present, given)
            send = partial(_send_config, "configureTopic", name, config)
            await self._connection.call(send, is_repeatable=True)

        return self._connection.submit(configure)

    def describe(self, name: str) -> "Future[TopicInfo]":
        to_topic_name(name, "name")
        return self._connection.ask(
            lambda link: link.service.describeTopic(name),
            lambda response: read_topic_info(response.topic),
        )

    def delete(self, name: str) -> "Future[bool]":
        to_topic_name(name, "name")

        def send(link: Link) -> Any:
            link.forget_topic(name)
            return link.service.deleteTopic(name)

        return self._connection.ask(
            send, lambda response: bool(response.deleted), is_repeatable=False
        )

    def page(
        self, prefix: str, after: str, limit: int, *, tells_times: bool = False
    ) -> "Future[tuple[list[str], list[int], bool]]":
        """Names of topics, when each was created if that is asked for, and whether there are
        more."""
        if prefix != "":
            to_topic_name(prefix, "prefix")
        if after:
            to_topic_name(after, "after")
        count = values.to_number("limit", limit, least=1, limit=TOPIC_LIST_MAX)
        return self._connection.ask(
            lambda link: link.service.listTopics(prefix, after, count, tells_times),
            lambda response: (
                list(response.names),
                list(response.createdAtMs),
                bool(response.more),
            ),
        )


def _send_config(
    method: str,
    name: str,
    config: TopicConfig,
    link: Link,
    *,
    first: Publication | None = None,
    schema: bytes = b"",
) -> Any:
    request = getattr(link.service, method + "_request")()
    request.name = name
    write_config(request.init("config"), config)
    if first is not None:
        write_publication(request.init("first"), first)
    if schema:
        request.firstSchema = schema
    return request.send()
