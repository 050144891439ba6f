"""A topic: publish messages, read them, subscribe to them, operate it and its groups."""

from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Future
from typing import Unpack

from queueber import model
from queueber.client.api.async_deliveries import AsyncDeliveries
from queueber.client.api.async_queue import AsyncQueue
from queueber.client.api.async_subscription import AsyncSubscription
from queueber.client.api.async_topic_producer import AsyncTopicProducer
from queueber.client.api.message import ConsumedPage, Message, MessagePage
from queueber.client.arguments import values
from queueber.client.arguments.new_messages import (
    AnyMessages,
    PublishOptions,
    to_partition,
    to_publication,
)
from queueber.client.arguments.positions import StartOptions, to_position
from queueber.client.arguments.queue_settings import SettingsArguments
from queueber.client.arguments.sources import AnyOn, AnyPayload
from queueber.client.arguments.topic_names import to_group_name
from queueber.client.arguments.topic_settings import (
    Kind,
    NewGroupArguments,
    TopicArguments,
    split_start,
    to_group_settings,
)
from queueber.client.arguments.values import Id, Seconds
from queueber.client.calls.client_calls import ClientCalls
from queueber.client.calls.deliveries import DeliveryCalls
from queueber.client.calls.reads import ReadTopicOptions, to_read
from queueber.client.calls.subscribing import to_seeking_terms, to_terms
from queueber.client.calls.subscriptions import Feed
from queueber.client.calls.topics import TopicCalls
from queueber.client.transport.futures import wait_for_async
from queueber.limits import POLL_ITEMS_CEILING


class AsyncTopic:
    """A topic of a server; `AsyncClient.topic` makes one.

    Where a method takes a start, it is one of: `start` (an offset, a `datetime`, "earliest" or
    "latest"), `time` (a `datetime` or seconds since 1970) or `last` (so many messages before the
    end). An offset that is not in the log is `OutOfRange`, unless `moves` is true.
    """

    def __init__(self, client: ClientCalls, calls: TopicCalls) -> None:
        self._client = client
        self._calls = calls

    def __repr__(self) -> str:
        return f"<AsyncTopic {self.name!r} at {self._calls.address}>"

    @property
    def name(self) -> str:
        return self._calls.name

    # --- messages ---------------------------------------------------------------------------------

    async def publish(
        self, messages: AnyMessages, **options: Unpack[PublishOptions]
    ) -> model.Published:
        """Store messages, all or none, and return where they are.

        Each is bytes, `(bytes, key)` or a `NewMessage`. Messages of one key go to one partition,
        unless `partition` names one. `producer` is an id, an epoch and the number of the call: a
        repeated call is recognised, and so the client repeats it after a lost connection; other
        publishes raise `OutcomeUnknown` then. `expected_offset` is the one that the first message
        must get, else `FailedPrecondition`. `close`: the topic takes no message after these.

        Further conditions, each `FailedPrecondition` if it does not hold: `content_type` must be
        that of the topic; `text_sequence` must be greater, byte by byte, than that of the last
        publish that had one; `schema_version` must be that of the topic, and `topic_number` its
        number (`TopicInfo.number`); with `one_partition` it must have only one. With
        `number_decides` a call of a producer whose number is known is a repeat, whatever its
        messages are.
        """
        return await wait_for_async(self.publish_soon(messages, **options))

    def publish_soon(
        self, messages: AnyMessages, **options: Unpack[PublishOptions]
    ) -> "Future[model.Published]":
        """As `publish`, but returns at once: several calls may be under way."""
        return self._calls.publish(to_publication(self.name, messages, **options))

    def producer(self, id: str, epoch: int) -> AsyncTopicProducer:
        """A producer, whose publishes are safe to repeat: it numbers its calls.

        When two use the same `id`, the one with the greater `epoch` shuts out the other.
        """
        return AsyncTopicProducer(self.name, self._calls.numbered_publishes(id, epoch))

    async def read(
        self, partition: int = 0, *, wait: Seconds = 0, **options: Unpack[ReadTopicOptions]
    ) -> MessagePage:
        """A page of messages of a partition, from a start on or from where `group` goes on.

        At most `limit` messages and `bytes`, only those before `end_offset` and `end_time`. When
        there is none, wait up to `wait` seconds. `without` names columns that the server leaves
        out: "contents", "keys" or "attributes". With `tells_topic` the page has the content type,
        origin and number of the topic.
        """
        asked = to_read(partition, **options)
        return MessagePage(await wait_for_async(self._calls.reads.read(asked, wait)))

    async def pages(
        self, partition: int = 0, *, wait: Seconds = 0, **options: Unpack[ReadTopicOptions]
    ) -> AsyncIterator[MessagePage]:
        """The pages of a partition from a start on, each as `read` gives it.

        Ends at the end of the partition, when no message came for `wait` seconds; `limit` is that
        of a page. Messages are read ahead: the next are on their way while the program goes through
        a page, and small pages come from one call, up to 1,000 messages or a megabyte.
        """
        asked = to_read(partition, **options).ahead()
        found = await wait_for_async(self._calls.reads.read(asked, wait))
        while found.columns.count:
            ahead = self._calls.reads.read(asked.goes_on(found.next_offset), wait)
            try:
                for page in found.parts(options.get("limit")):
                    yield MessagePage(page)
            except BaseException:
                ahead.cancel()
                raise
            found = await wait_for_async(ahead)

    async def messages(
        self, partition: int = 0, *, wait: Seconds = 0, **options: Unpack[ReadTopicOptions]
    ) -> AsyncIterator[Message]:
        """Every message of a partition from a start on, as `pages` finds them."""
        async for page in self.pages(partition, wait=wait, **options):
            for message in page:
                yield message

    def subscribe(
        self,
        *,
        group: str | None = None,
        kind: Kind = "ordered",
        credits: int = 100,
        partitions: Iterable[int] = (),
        heartbeat: Seconds = 0,
        lease: Seconds | None = None,
        consumer: str = "",
        **start: Unpack[StartOptions],
    ) -> AsyncSubscription:
        """Messages as they are published, and those that wait; see `AsyncSubscription`.

        At most `credits` messages are under way; more are asked for when half of them are used. A
        `group` that does not exist is created, with that `kind`, and begins at the start, which is
        the earliest message unless you say otherwise. In an "ordered" group one consumer at a time
        gets the messages of a partition in order; in a "shared" one each message is leased to one
        of many consumers, for `lease` seconds. Without a group nothing is acknowledged.
        """
        terms = to_terms(
            group, kind, credits, partitions, heartbeat, lease, consumer, to_position(**start)
        )
        is_shared = terms.settings.kind is model.GroupKind.SHARED
        leases = self._client.group(self._calls.ref, terms.group).leases if is_shared else None
        return AsyncSubscription(self._calls.topic, Feed(self._calls.topic, terms, leases))

    def deliveries(
        self, group: str, *, consumer: str = "", **start: Unpack[StartOptions]
    ) -> AsyncDeliveries:
        """Messages of an ordered group as the program grants credits; see `AsyncDeliveries`.

        A group that does not exist is created, at the earliest message. With a start the deliveries
        begin there, wherever the group is; its cursor moves when messages are acknowledged.
        """
        terms = to_seeking_terms(group, consumer, to_position(**start) if start else None)
        return AsyncDeliveries(DeliveryCalls(self._calls.topic, terms))

    async def find(
        self, id: Id | None = None, *, sequence: int | None = None
    ) -> tuple[int, int] | None:
        """Partition and offset of the message with an id; or of the first one of partition 0 with
        that sequence or a greater one. None if there is none."""
        return await wait_for_async(self._calls.reads.find(id, sequence))

    # --- operating --------------------------------------------------------------------------------

    async def describe(self) -> model.TopicInfo:
        """The topic's settings, and how far its partitions reach."""
        return await wait_for_async(self._calls.describe())

    async def trim(self, *, partition: int | None = None, **to: Unpack[StartOptions]) -> int:
        """Delete the messages before a place, of one partition or all; returns how many."""
        return await wait_for_async(self._calls.trim(partition, to_position(**to)))

    async def close(self) -> None:
        """Take no more messages. Final; may be repeated."""
        await wait_for_async(self._calls.close())

    async def fork(
        self,
        name: str,
        offset: int | None = None,
        *,
        partition: int | None = None,
        cut_bytes: int = 0,
        messages: AnyMessages = (),
        close: bool = False,
        **settings: Unpack[TopicArguments],
    ) -> bool:
        """Create a topic that shares the messages of this one before `offset`, without a copy;
        False when the same fork exists.

        Without an offset it shares all that there are. `partition` is that of the offset (0). With
        `cut_bytes` the fork's own first message is that many bytes of the message at the offset.
        `messages` follow, and with `close` the fork takes no others.
        """
        return await wait_for_async(
            self._calls.fork(
                name,
                offset,
                partition,
                settings,
                cut_bytes=cut_bytes,
                messages=messages,
                close=close,
            )
        )

    # --- schemas ----------------------------------------------------------------------------------

    async def set_schema(
        self,
        document: bytes,
        *,
        expected_version: int | None = None,
        expected_offset: int | None = None,
        topic_number: int = 0,
    ) -> model.TopicSchema:
        """Put a further version of the topic's schema in force: for all messages from here on.

        The server keeps the document as it is, and refuses messages that do not come with the
        number of the version in force (`publish(schema_version=...)`): so publishers check them.
        `FailedPrecondition` if the version in force, the offset at which the topic goes on or its
        number is not the expected one. Only a topic of one partition can have schemas.
        """
        calls = self._calls.schemas
        made = calls.set_schema(document, expected_version, expected_offset, topic_number)
        return await wait_for_async(made)

    async def schema(self, version: int | None = None) -> model.TopicSchema:
        """A version of the schema with its document, or the one in force; `NotFound` if there is
        none."""
        return await wait_for_async(self._calls.schemas.find(version))

    async def schemas(self) -> list[model.TopicSchema]:
        """All versions that were set, without their documents."""
        return await wait_for_async(self._calls.schemas.all())

    # --- sources ----------------------------------------------------------------------------------

    async def add_source(
        self,
        queue: str,
        *,
        on: AnyOn,
        where: str = "",
        partition_by: str = "",
        payload: AnyPayload = "key",
    ) -> bool:
        """Publish changes of a queue's items to this topic, each in the write that makes it. False
        when the same source exists.

        `on` is "insert" (added), "update" (failed, released, expired, redriven) or "delete"
        (completed, removed, dead, cancelled, purged). `where` is a filter such as
        "item.attempt > 1 AND attributes.region = 'eu' AND total >= 100", where a bare name is a
        field of JSON contents. `partition_by` names fields that choose the partition, in place of
        the item's key. `payload` is "key", "full" (the item's contents) or "diff" (what changed).
        """
        added = self._calls.routes.add(queue, on, where, partition_by, payload)
        return await wait_for_async(added)

    async def drop_source(self, queue: str, *, on: AnyOn | None = None) -> int:
        """Publish changes of the queue no more, or only those of other kinds. Returns how many
        sources went."""
        return await wait_for_async(self._calls.routes.drop(queue, on))

    # --- groups -----------------------------------------------------------------------------------

    async def create_group(self, name: str, **options: Unpack[NewGroupArguments]) -> bool:
        """Create a group; False when it exists with these settings.

        `kind` is "ordered", "shared" or "queue". It begins at a start, which is the earliest
        message unless you say otherwise.
        """
        at, settings = split_start(options)
        return await wait_for_async(self._calls.groups.create(name, settings, at))

    def group(self, name: str) -> AsyncQueue:
        """A shared group as a queue: poll, remove (which acknowledges), fail, peek, stats.

        The id of an item is 6 zero bytes, then its partition (2) and offset (8).
        """
        return AsyncQueue(self._client.group(self._calls.ref, name))

    async def groups(self) -> list[model.GroupInfo]:
        """All groups, with their lag."""
        return await wait_for_async(self._calls.groups.all())

    async def describe_group(self, name: str) -> model.GroupInfo:
        """One group: its settings, cursors and lag."""
        return await wait_for_async(self._calls.groups.describe(name))

    async def consume(
        self,
        group: str,
        *,
        partition: int = 0,
        limit: int = 100,
        wait: Seconds = 0,
        lease: Seconds | None = None,
        settings: SettingsArguments | None = None,
        **start: Unpack[StartOptions],
    ) -> ConsumedPage:
        """Lease a window of one partition of a shared group: up to `limit` messages in order, and
        no more than the server allows, with none between them that another consumer has.

        When there is none, wait up to `wait` seconds. A group that does not exist is created with
        `settings`, and a partition that it has not begun begins at the start. `ack` is done with
        all messages before an offset, whoever has them; calls of `topic.group(name)` with the
        `lease` of the page settle messages one by one.
        """
        given = {"kind": model.GroupKind.SHARED, **(settings or {})}
        asked = model.Consuming(
            to_group_name(group),
            to_partition(partition),
            to_position(**start),
            to_group_settings(given),
            values.to_number("limit", limit, least=1, limit=POLL_ITEMS_CEILING),
            values.to_lease_ms(lease),
        )
        consumes, leases = self._client.consumes, self._client.group(self._calls.ref, group).leases
        future = consumes.consume(self._calls.topic, leases, asked, wait)
        try:
            return ConsumedPage(await wait_for_async(future))
        except BaseException:
            consumes.give_back(leases, future)
            raise

    async def ack(self, group: str, offset: int, *, partition: int = 0) -> int:
        """A group is done with the messages of a partition before `offset`. Returns where it is:
        it never goes back.

        A shared group is done with all that its consumers have of them, and with what none has had,
        but for dead letters.
        """
        return await wait_for_async(self._calls.groups.ack(group, offset, partition))

    async def reset(
        self, group: str, *, partition: int | None = None, **to: Unpack[StartOptions]
    ) -> None:
        """Move the cursor of a group, forward or back, in one partition or all."""
        await wait_for_async(self._calls.groups.reset(group, partition, to_position(**to)))

    async def delete_group(self, name: str) -> bool:
        """Forget a group; False when there is none."""
        return await wait_for_async(self._calls.groups.delete(name))

    async def pause(self, group: str, seconds: Seconds | None = None) -> None:
        """Deliver nothing to the group's consumers for so long, or until `resume`."""
        await wait_for_async(self._calls.groups.pause(group, seconds))

    async def resume(self, group: str) -> None:
        """Deliver again."""
        await wait_for_async(self._calls.groups.resume(group))
