"""Publishes. Concurrent small ones are sent as one call, as adds are."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from queueber.client.arguments.new_messages import AnyMessages, to_publication
from queueber.client.calls.numbered import NumberedCalls
from queueber.client.calls.sizes import columns_bytes
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link, TopicRef
from queueber.client.transport.remote_queue import Batcher, Operation, filled
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ITEM_WIRE_BYTES,
    MESSAGE_OVERHEAD_BYTES,
    PUBLISH_MESSAGES_MAX,
    PUBLISH_TOPICS_MAX,
)
from queueber.model import NewMessages, Publication, Published
from queueber.model.joined import join_publications
from queueber.wire.messages import read_published, write_publication


class Publishes:
    """The publishes of a client. Small ones are sent together, to whichever topics they go."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.batcher: Batcher[Publication] = Batcher(connection, self._send)

    def publish(self, publication: Publication) -> "Future[Published]":
        # What has a condition is a call of its own.
        group: Hashable = None if is_plain(publication) else object()
        messages = publication.messages
        return self.batcher.submit(
            publication, len(messages.payloads) or 1, size=size_of(messages), group=group
        )

    async def _send(self, operations: list[Operation[Publication]]) -> None:
        together: dict[tuple[object, ...], list[Operation[Publication]]] = {}
        for operation in operations:
            of = operation.payload
            place = (
                of.topic, of.partition, of.content_type, of.schema_version, of.topic_number,
                of.may_create, of.one_partition,
            )  # fmt: skip
            together.setdefault(place, []).append(operation)
        parts = list(together.values())
        publications = [join_publications([each.payload for each in part]) for part in parts]
        check_size(self._connection, publications)
        # The server recognises what a producer repeats, and other messages it would store twice.
        is_repeatable = publications[0].producer is not None
        response = await self._connection.call(
            partial(_send_publications, publications), is_repeatable=is_repeatable
        )
        for part, answer in zip(parts, response.published, strict=True):
            _answer(part, read_published(answer))


class NumberedPublishes(NumberedCalls[Publication, Published]):
    """The publishes of one producer to one topic."""

    def _size(self, call: Publication) -> tuple[int, int]:
        return len(call.messages.payloads), size_of(call.messages)

    async def _send(self, link: Link, call: Publication) -> Published:
        check_size(self._connection, [call])
        ref = self._to.ref
        if isinstance(ref, TopicRef) and ref.must_exist:
            answer = await self._connection.answer(
                link, to_existing(call), is_repeatable=False, of=ref
            )
            return read_published(answer.published)
        send = partial(_send_publications, [call])
        answer = await self._connection.answer(link, send, is_repeatable=False)
        return read_published(answer.published[0])


def is_plain(publication: Publication) -> bool:
    """Whether it may be sent together with others."""
    return (
        publication.producer is None
        and publication.expected_offset is None
        and not publication.closes
        and not publication.text_sequence
        and not any(publication.messages.dedup_ids)
    )


def to_existing(publication: Publication) -> Callable[[Any], Awaitable[Any]]:
    """Sends a publication to a topic that must exist: by its name it would be created."""
    return filled("publish", partial(_write, publication), "publication")


def _write(publication: Publication, target: Any) -> None:
    write_publication(target, publication)


def _answer(operations: list[Operation[Publication]], published: Published) -> None:
    """Give each operation its part of an answer."""
    if len(operations) == 1:
        operations[0].answer(published)
        return
    start = 0
    for operation in operations:
        end = start + len(operation.payload.messages.payloads)
        operation.answer(part_of(published, start, end))
        start = end


def _send_publications(publications: list[Publication], link: Link) -> Any:
    request = link.service.publish_request()
    listed = request.init("publications", len(publications))
    for at, publication in enumerate(publications):
        write_publication(listed[at], publication)
    return request.send()


def part_of(published: Published, start: int, end: int) -> Published:
    """The part of an answer that belongs to one operation."""
    duplicates = published.duplicates[start:end]
    has_end = published.end_offset and end > start
    return Published(
        published.at_ms,
        published.partitions[start:end],
        published.offsets[start:end],
        published.ids[start:end],
        published.sequences[start:end],
        duplicates if any(duplicates) else (),
        published.is_repeat,
        published.offsets[end - 1] + 1 if has_end else published.end_offset,
        published.last_number,
        published.is_closed,
        published.origin,
    )


def size_of(messages: NewMessages) -> int:
    """The bytes of payloads, keys, dedup ids and attributes."""
    texts = [messages.keys, messages.dedup_ids]
    return columns_bytes(messages.payloads, texts, messages.attributes)


# --- to several topics ----------------------------------------------------------------------------


def to_publications(messages: Mapping[str, AnyMessages]) -> list[Publication]:
    if not isinstance(messages, Mapping):
        raise InvalidArgument(
            f"messages: {messages!r} is not a mapping from topics to their messages"
        )
    publications = [to_publication(topic, each) for topic, each in messages.items()]
    check_publications(publications)
    if not publications:
        raise InvalidArgument("messages: there are none; name at least one topic")
    return publications


def check_publications(publications: list[Publication]) -> None:
    if len(publications) > PUBLISH_TOPICS_MAX:
        raise InvalidArgument(
            f"messages: the call is about {len(publications)} topics; the limit is "
            f"{PUBLISH_TOPICS_MAX}"
        )
    count = sum(len(each.messages.payloads) for each in publications)
    if count > PUBLISH_MESSAGES_MAX:
        raise InvalidArgument(
            f"messages: the call has {count}; the limit is {PUBLISH_MESSAGES_MAX}, publish in "
            "several calls"
        )


def check_size(connection: Connection, publications: list[Publication]) -> None:
    count = sum(len(each.messages.payloads) for each in publications)
    size = sum(size_of(each.messages) for each in publications)
    size += (count + len(publications)) * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
    limit = connection.server.message_bytes_max
    if size > limit:
        raise ResourceExhausted(
            f"messages: the call has {size} bytes; the limit is {limit}, send several calls"
        )


def publish_many(
    connection: Connection, messages: Mapping[str, AnyMessages]
) -> "Future[dict[str, Published]]":
    publications = to_publications(messages)
    check_size(connection, publications)

    def read(response: Any) -> dict[str, Published]:
        names = [publication.topic for publication in publications]
        return dict(zip(names, map(read_published, response.published), strict=True))

    send = partial(_send_publications, publications)
    return connection.ask(send, read, is_repeatable=False)
