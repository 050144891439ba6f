"""Subscriptions: who gets the messages of which topic, and what wakes them."""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any

from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics import groups
from queueber.engine.topics.group import Group
from queueber.engine.topics.read import start_of
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import FailedPrecondition, InvalidArgument, ResourceExhausted
from queueber.limits import SUBSCRIPTIONS_OF_CONNECTION_MAX
from queueber.model import GroupKind, Position, Settlement, Start, Subscribing
from queueber.service.bound_leases import BoundLeases
from queueber.service.consumers import Consumers
from queueber.service.groups import Groups
from queueber.service.items import Items
from queueber.service.lease_feed import LeaseFeed
from queueber.service.lease_holders import LeaseHolders
from queueber.service.log_feed import LogFeed
from queueber.service.reads import Reads
from queueber.service.result_feed import ResultsFeed
from queueber.service.result_messages import ResultsHandle
from queueber.service.result_topics import ResultTopics
from queueber.service.session import Session
from queueber.service.shell import Shell
from queueber.service.subscription import Feed, Receiver, Subscription
from queueber.service.topic_handle import TopicHandle
from queueber.service.topics import Topics
from queueber.service.validate.topics import check_subscribing


class Subscriptions:
    def __init__(
        self,
        shell: Shell,
        topics: Topics,
        groups: Groups,
        reads: Reads,
        results: ResultTopics,
        consumers: Consumers,
        items: Items,
        bound: BoundLeases,
        holders: LeaseHolders,
    ) -> None:
        self._shell = shell
        self._results = results
        self._items = items
        self._bound = bound
        self._holders = holders
        self._topics = topics
        self._groups = groups
        self._reads = reads
        self._of_session: dict[Session, dict[Subscription, None]] = {}
        self._of_key: dict[Any, dict[Subscription, None]] = {}
        """By their topic, by topic and group, and by the queue of a shared group."""
        self._consumers = consumers
        self._count = 0
        groups.consumers = self.consumers
        groups.changed = self.group_changed
        groups.moved = self.group_moved
        results.consumers = self.consumers

    # --- subscribing ------------------------------------------------------------------------------

    def subscribe(
        self, topic: TopicHandle, asked: Subscribing, receiver: Receiver
    ) -> Awaitable[Subscription]:
        """The subscription, which delivers as soon as there are credits."""
        check_subscribing(asked, self._shell.limits.item_bytes_max)
        self._check_count(topic.session)
        state = self._topics.alive(topic)
        for partition in asked.partitions:
            state.check_partition(partition)
        group = self._group(topic, asked) if asked.group else None
        feed = self._feed(topic, group, asked)
        subscription = self._new(topic.session, receiver, feed, asked)
        keys: list[object] = [state]
        if group is not None:
            keys.append((state, group.name))
            if isinstance(feed, LeaseFeed):
                keys.append(group.queue)
            else:
                has_all = not asked.partitions
                self._consumers.take_over(
                    state, group.name, feed.partitions, subscription, has_all=has_all
                )
        return self._begin(subscription, keys, asked.credits)

    def subscribe_results(
        self, topic: ResultsHandle, asked: Subscribing, receiver: Receiver
    ) -> Awaitable[Subscription]:
        """As `subscribe`, to the results of a queue. Its group is a reader of them."""
        check_subscribing(asked, self._shell.limits.item_bytes_max)
        self._check_count(topic.session)
        topic.queue.check_alive()
        if any(asked.partitions):
            raise InvalidArgument(f"partitions: topic {topic.name!r} has only partition 0")
        if asked.seeks:
            raise InvalidArgument("seeks: a reader of results goes on where it is; reset it first")
        results, name, state = self._results, asked.group, topic.queue.state
        if name and name not in topic.log.readers:
            results.create(topic, name, asked.settings, asked.position)
        position = Position(Start.GROUP) if name else asked.position
        offset, _ = results.start(topic, position, name)
        feed = ResultsFeed(self._shell, results, topic, name, offset)
        subscription = self._new(topic.session, receiver, feed, asked)
        keys: list[object] = [state]
        if name:
            keys.append((state, name))
            self._consumers.take_over(state, name, [0], subscription)
        return self._begin(subscription, keys, asked.credits)

    def _new(
        self, session: Session, receiver: Receiver, feed: Feed, asked: Subscribing
    ) -> Subscription:
        return Subscription(
            self._shell,
            session,
            receiver,
            feed,
            name=asked.consumer or session.name or session.address,
            heartbeat_ms=asked.heartbeat_ms,
            messages_max=asked.batch_messages_max,
            deliveries_max=asked.deliveries_max,
        )

    def _check_count(self, session: Session) -> None:
        own = len(self._of_session.get(session, ()))
        if own >= SUBSCRIPTIONS_OF_CONNECTION_MAX:
            raise ResourceExhausted(
                f"this connection has {own} subscriptions, the limit; close some of them"
            )
        if self._count >= self._shell.limits.waiting_polls_max:
            raise ResourceExhausted(
                f"there are {self._count} subscriptions, the limit; subscribe again later"
            )

    def _group(self, topic: TopicHandle, asked: Subscribing) -> Group:
        """The group, created if there is none. What is refused creates none."""
        state, name = topic.state, asked.group
        known = state.groups.get(name)
        settings = asked.settings if known is None else known.settings
        if settings.kind is GroupKind.QUEUE:
            raise FailedPrecondition(
                f"group {name!r} adds its messages to queue {settings.queue!r}; poll that"
            )
        if settings.kind is GroupKind.SHARED and asked.partitions:
            raise InvalidArgument(
                f"partitions: group {name!r} is shared, and its consumers have all partitions; "
                "give none"
            )
        if settings.kind is GroupKind.SHARED and asked.seeks:
            raise InvalidArgument(
                f"seeks: group {name!r} is shared; only ordered ones are sought in"
            )
        if known is None:
            position = Position() if asked.seeks else asked.position
            self._groups.create(topic, name, asked.settings, position)
        return groups.get_group(state, name)

    def _feed(
        self, topic: TopicHandle, group: Group | None, asked: Subscribing
    ) -> LogFeed | LeaseFeed:
        state = topic.state
        if group is not None and group.kind is GroupKind.SHARED:
            lease_ms = asked.lease_ms or group.settings.leases.lease_ms
            return LeaseFeed(self._shell, self._bound, self._holders, topic, group, lease_ms)
        chosen = sorted(set(asked.partitions))
        partitions = chosen or range(state.partitions)
        if group is None or asked.seeks:
            store = self._shell.engine.store
            starts = {each: start_of(store, state, each, asked.position) for each in partitions}
        else:
            starts = {each: (groups.cursor(state, group, each), 0) for each in partitions}
        return LogFeed(self._shell, self._reads, state, group, chosen, starts)

    def _put(
        self, index: dict[Any, dict[Subscription, None]], key: object, subscription: Subscription
    ) -> None:
        index.setdefault(key, {})[subscription] = None
        subscription.when_over.append(partial(_remove, index, key, subscription))

    def _one_less(self) -> None:
        self._count -= 1

    def _begin(
        self, subscription: Subscription, keys: Sequence[object], credits: int
    ) -> Awaitable[Subscription]:
        self._count += 1
        subscription.when_over.append(self._one_less)
        self._put(self._of_session, subscription.session, subscription)
        for key in keys:
            self._put(self._of_key, key, subscription)
        subscription.grant(credits)
        return self._start(subscription)

    async def _start(self, subscription: Subscription) -> Subscription:
        try:
            # A new group is durable before its consumer has anything of it.
            await self._shell.durable(None)
        except BaseException:
            subscription.drop()  # the caller has given up, and holds nothing that could end it
            raise
        self._shell.loop.create_task(subscription.run())
        return subscription

    # --- one of them ------------------------------------------------------------------------------

    def ack(self, subscription: Subscription, partition: int, offset: int) -> Awaitable[int]:
        """Of an ordered group; where its cursor is."""
        subscription.check_active()
        feed = subscription.feed
        if isinstance(feed, ResultsFeed) and feed.group:
            feed.check_delivered(partition, offset)
            return self._results.acknowledge(feed.topic, feed.group, offset)
        if not isinstance(feed, LogFeed) or feed.group is None:
            raise FailedPrecondition(
                "the subscription has no ordered group; only those acknowledge up to an offset"
            )
        feed.check_delivered(partition, offset)
        return self._groups.acknowledge(
            subscription.session, feed.topic, feed.group, partition, offset
        )

    def settle(self, subscription: Subscription, settlement: Settlement) -> Awaitable[list[bool]]:
        """Of a shared group; for each message whether the lease held it."""
        subscription.check_active()
        feed = subscription.feed
        if not isinstance(feed, LeaseFeed):
            raise FailedPrecondition("the subscription has no shared group; only those have leases")
        return feed.settle(self._items, settlement)

    # --- what happens -----------------------------------------------------------------------------

    def messages_came(self, topic: TopicState) -> None:
        """Messages of the topic are durable, or it is closed or gone."""
        self._wake(topic)

    def queue_changed(self, queue: QueueState) -> None:
        """Messages of a shared group may have become ready. Called after every write of a queue,
        and most have no subscription."""
        if queue in self._of_key:
            self._wake(queue)

    def _wake(self, key: object) -> None:
        for subscription in list(self._of_key.get(key, ())):
            subscription.wake()

    def group_changed(self, topic: TopicState, group: str) -> None:
        """A group was paused, resumed or deleted."""
        self._wake((topic, group))

    def group_moved(self, topic: TopicState, group: str, partition: int | None) -> None:
        """A group was reset, in one partition or in all."""
        for subscription in list(self._of_key.get((topic, group), ())):
            if isinstance(subscription.feed, LogFeed):
                subscription.feed.moved(partition)
            subscription.wake()

    def consumers(self, topic: TopicState | QueueState, group: str) -> list[str]:
        """The names of the consumers of a group."""
        return [each.name for each in self._of_key.get((topic, group), ())]

    def connection_ended(self, session: Session) -> None:
        """Its consumers are gone. Their leases end with the connection."""
        for subscription in list(self._of_session.get(session, ())):
            subscription.lost()

    def server_stops(self) -> None:
        """Have every subscription tell its consumer."""
        for of_session in list(self._of_session.values()):
            for subscription in list(of_session):
                subscription.wake()


def _remove(
    index: dict[Any, dict[Subscription, None]], key: object, subscription: Subscription
) -> None:
    found = index.get(key)
    if found is not None:
        found.pop(subscription, None)
        if not found:
            del index[key]
