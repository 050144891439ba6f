"""A caller of topics: its calls, which the history records."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import repeat
from typing import Any

from faults import records
from faults.history import printed
from faults.simulation.caller import Caller
from faults.simulation.contact import Contact
from faults.topics.settled import ACK_UP_TO
from queueber.engine.topics.groups import cursor, get_group
from queueber.ids import reference
from queueber.model import (
    Bounds,
    Consuming,
    Delivery,
    ForkAt,
    GroupAck,
    GroupSettings,
    MessageSlice,
    NewItems,
    NewMessages,
    On,
    PackedMessages,
    Polled,
    Position,
    Publication,
    Published,
    QueueSettings,
    QueueSteps,
    Source,
    Start,
    Together,
    TopicConfig,
    TopicSchema,
    TopicSettings,
)
from queueber.service.service import Service
from queueber.service.session import QueueHandle, Session
from queueber.service.topic_handle import TopicHandle

Told = dict[str, Any]


def handle(service: Service, session: Session, topic: str) -> TopicHandle:
    shell = service.shell
    return TopicHandle(shell.engine.topics.get(topic, shell.clock.now_ms()), session)


class GroupCaller(Caller):
    """A consumer of a group that shares messages, which is a queue: `topic/group`."""

    def _target(self, service: Service, session: Session) -> QueueHandle:
        topic, _, group = self.queue.partition("/")
        return service.groups.open_group(handle(service, session, topic), group)

    async def consume(self, partition: int, count: int, *, lease_ms: int, wait_ms: int) -> Polled:
        """A window of one partition; without a lease if there is none."""
        topic, _, group = self.queue.partition("/")
        asked = Consuming(group, partition, messages_max=count, lease_ms=lease_ms)
        found: Delivery | None = await self.call(
            "poll",
            {"count": count, "lease_ms": lease_ms, "bound": False, "partition": partition},
            lambda service, queue: service.windows.consume(
                handle(service, queue.session, topic), asked, wait_ms=wait_ms
            ),
            lambda found: records.polled(found.lease, *_window(found)),
        )
        return Polled() if found is None else Polled.of(found.lease, *_window(found))

    async def ack_up_to(self, partition: int, offset: int) -> None:
        topic, _, group = self.queue.partition("/")
        await self.call(
            ACK_UP_TO,
            {"partition": partition, "offset": offset},
            lambda service, queue: service.groups.ack(
                handle(service, queue.session, topic), group, partition, offset
            ),
            lambda offset: {"offset": offset},
        )


def _window(found: Delivery) -> tuple[list[bytes], list[bytes]]:
    """The references and payloads of a delivery."""
    packed, partition = found.slice.packed, found.slice.partition
    ids: list[bytes] = [
        reference(partition, offset)
        for each in packed
        for offset in range(each.offset, each.offset + each.count)
    ]
    return ids, [payload for each in packed for payload in each.split()]


class TopicCaller(Contact):
    """Its `queue` is `TOPICS`, for all topics."""

    def _target(self, service: Service, session: Session) -> Session:
        return session

    async def publish(self, *publications: Publication) -> list[Published] | None:
        found: list[Published] | None = await self.call(
            "publish",
            {"publications": [_publication(each) for each in publications]},
            lambda service, session: service.publishing.publish(session, publications),
            lambda found: {"published": [_published(each) for each in found]},
        )
        return found

    async def read(
        self, topic: str, partition: int, position: Position, count: int, *, wait_ms: int = 0,
        group: str = "",
    ) -> MessageSlice | None:  # fmt: skip
        def ask(service: Service, session: Session) -> Awaitable[MessageSlice]:
            return service.reads.read(
                handle(service, session, topic), partition, position, Bounds(count),
                wait_ms=wait_ms, group=group,
            )  # fmt: skip

        arguments = _at(topic, partition, position) | {"group": group}
        found: MessageSlice | None = await self.call("read", arguments, ask, _slice)
        return found

    async def on_topic(
        self,
        operation: str,
        topic: str,
        arguments: Told,
        ask: Callable[[Service, TopicHandle], Awaitable[Any]],
        tell: Callable[[Any], Told] = lambda _: {},
    ) -> Any:
        return await self.call(
            operation,
            {"topic": topic} | arguments,
            lambda service, session: ask(service, handle(service, session, topic)),
            tell,
        )

    async def trim(self, topic: str, partition: int, offset: int) -> None:
        to = Position(Start.OFFSET, offset)
        await self.on_topic(
            "trim",
            topic,
            {"partition": partition, "offset": offset},
            lambda service, found: service.topics.trim(found, partition, to),
            lambda count: {"count": count},
        )

    async def fork(
        self, topic: str, name: str, at: ForkAt, first: Publication | None = None
    ) -> None:
        await self.on_topic(
            "fork",
            topic,
            {"name": name, "first": first and _publication(first)} | at._asdict(),
            lambda service, found: service.topics.fork(
                found, name, TopicConfig(partitions=0), at, first
            ),
            _made,
        )

    async def close(self, topic: str) -> None:
        await self.on_topic("close", topic, {}, lambda service, found: service.topics.close(found))

    async def set_topic(self, topic: str, settings: TopicSettings) -> None:
        config = TopicConfig(settings, partitions=0)
        await self.on_topic(
            "set_topic",
            topic,
            {},
            lambda service, found: service.topics.configure_topic(topic, config, found.session),
        )

    async def add_source(self, topic: str, source: Source) -> bool:
        """Whether it was answered."""
        told = {
            "queue": source.queue, "on": source.on.value, "where": source.where,
            "partition_by": source.partition_by, "payload": source.payload.value,
            "after": (await self.connected()).last_sequence,
        }  # fmt: skip
        done = await self.on_topic(
            "add_source",
            topic,
            told,
            lambda service, found: service.routes.add_source(found, source),
            lambda done: {"done": [done], "up_to": self._last_sequence()},
        )
        return done is not None

    async def drop_source(self, topic: str, queue: str, on: On | None) -> bool:
        """Whether it was answered."""
        after = (await self.connected()).last_sequence
        count = await self.on_topic(
            "drop_source",
            topic,
            {"queue": queue, "on": on and on.value, "after": after},
            lambda service, found: service.routes.drop_source(found, queue, on),
            lambda count: {"count": count, "up_to": self._last_sequence()},
        )
        return count is not None

    def _last_sequence(self) -> int:
        return 0 if self._connection is None else self._connection.last_sequence

    async def create(
        self, topic: str, config: TopicConfig, first: Publication | None = None,
        schema: bytes = b"",
    ) -> None:  # fmt: skip
        def ask(service: Service, session: Session) -> Awaitable[Published | None]:
            return service.topics.create_topic(topic, config, session, first, schema)

        told = {"topic": topic, "first": first and _publication(first), "schema": printed(schema)}
        await self.call("create_topic", told, ask, _made)

    async def set_schema(
        self,
        topic: str,
        document: bytes,
        expected_version: int | None = None,
        expected_offset: int | None = None,
    ) -> TopicSchema | None:
        expected = (expected_version, expected_offset)
        found: TopicSchema | None = await self.on_topic(
            "set_schema",
            topic,
            {"document": printed(document), "expected": list(expected)},
            lambda service, found: service.schemas.set_schema(found, document, *expected),
            lambda made: {"version": made.version, "from_offset": made.from_offset},
        )
        return found

    async def schemas(self, topic: str) -> list[TopicSchema] | None:
        found: list[TopicSchema] | None = await self.on_topic(
            "schemas",
            topic,
            {},
            lambda service, found: service.schemas.all(found),
            lambda found: {"schemas": [[each.version, each.from_offset] for each in found]},
        )
        return found

    async def delete(self, topic: str) -> None:
        await self.call(
            "delete_topic",
            {"topic": topic},
            lambda service, session: service.topics.delete_topic(topic, session),
            lambda done: {"done": [done]},
        )

    async def ack(self, topic: str, group: str, partition: int, offset: int) -> None:
        await self.on_topic(
            "ack",
            topic,
            {"group": group, "partition": partition, "offset": offset},
            lambda service, found: service.groups.ack(found, group, partition, offset),
            lambda cursor: {"cursor": cursor},
        )

    async def reset(self, topic: str, group: str, partition: int, offset: int) -> None:
        to = Position(Start.OFFSET, offset)
        await self.on_topic(
            "reset",
            topic,
            {"group": group, "partition": partition, "offset": offset},
            lambda service, found: service.groups.reset_group(found, group, partition, to),
        )

    async def create_group(self, topic: str, group: str, settings: GroupSettings) -> None:
        await self.on_topic(
            "create_group",
            topic,
            {"group": group},
            lambda service, found: service.groups.create_group(found, group, settings, Position()),
        )

    async def pause_group(self, topic: str, group: str, for_ms: int) -> None:
        await self.on_topic(
            "pause_group",
            topic,
            {"group": group, "for_ms": for_ms},
            lambda service, found: service.groups.pause_group(found, group, for_ms),
        )

    async def resume_group(self, topic: str, group: str) -> None:
        await self.on_topic(
            "resume_group",
            topic,
            {"group": group},
            lambda service, found: service.groups.resume_group(found, group),
        )

    async def configure(self, queue: str, settings: QueueSettings) -> None:
        await self.call(
            "configure",
            {"of": queue, "item_bytes_max": settings.item_bytes_max},
            lambda service, session: service.queues.configure_queue(queue, settings, session),
            lambda _: {},
        )

    async def cursor(self, topic: str, group: str, partition: int) -> None:
        async def ask(service: Service, found: TopicHandle) -> int:
            at = cursor(found.state, get_group(found.state, group), partition)
            return await service.shell.durable(at)

        told = {"group": group, "partition": partition}
        await self.on_topic("cursor", topic, told, ask, lambda at: {"cursor": at})

    async def together(
        self, topics: Sequence[str], queue: str, payload: bytes, ack: tuple[str, str, int, int]
    ) -> None:
        """Publish to topics, add to a queue and acknowledge, all or nothing."""

        asked = Together(
            [Publication(topic, NewMessages([payload]), 0) for topic in topics],
            [GroupAck(*ack)],
            [QueueSteps(queue, NewItems([payload]))],
        )
        await self.call(
            "together",
            {"topics": list(topics), "into": queue, "contents": printed(payload), "ack": ack},
            lambda service, session: service.together.together(session, asked),
            lambda done: {
                "ids": records.hexes(done.added[0].ids),
                "published": [_published(each) for each in done.published],
            },
        )


def _publication(publication: Publication) -> Told:
    messages, producer = publication.messages, publication.producer
    return {
        "topic": publication.topic,
        "contents": records.all_printed(messages.payloads),
        "keys": list(messages.keys),
        "dedup_ids": list(messages.dedup_ids),
        "partition": publication.partition,
        "producer": [producer.id, producer.epoch, producer.sequence] if producer else None,
        "expected": publication.expected_offset,
        "closes": publication.closes,
        "content_type": publication.content_type,
        "text_sequence": publication.text_sequence,
        "schema_version": publication.schema_version,
        "one_partition": publication.one_partition,
    }


def _made(found: Published | None) -> Told:
    """Where the first messages of a new topic are."""
    return {"published": [_published(found)]} if found is not None else {}


def _published(found: Published) -> Told:
    return {
        "partitions": list(found.partitions),
        "offsets": list(found.offsets),
        "ids": records.hexes(found.ids),
        "sequences": list(found.sequences),
        "duplicates": list(found.duplicates),
        "repeat": found.is_repeat,
    }


def _at(topic: str, partition: int, position: Position) -> Told:
    return {
        "topic": topic,
        "partition": partition,
        "start": position.start.value,
        "value": position.value,
        "moves": position.moves,
    }


def _slice(found: MessageSlice) -> Told:
    messages = [each for packed in found.packed for each in told_messages(packed)]
    return {
        "first": found.first_kept,
        "end": found.end_offset,
        "next": found.next_offset,
        "messages": messages,
    }


def told_messages(packed: PackedMessages) -> list[list[Any]]:
    """Offset, contents, key, id, sequence and time of each message."""
    keys = packed.keys or repeat(b"")
    told = []
    for at, (payload, key) in enumerate(zip(packed.split(), keys, strict=False)):
        message_id = (int.from_bytes(packed.id) + at).to_bytes(16).hex()
        told.append(
            [
                packed.offset + at,
                printed(payload),
                key.decode(),
                message_id,
                packed.sequence + at,
                packed.at_ms,
            ]
        )
    return told
