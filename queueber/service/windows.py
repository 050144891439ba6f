"""Consuming one partition of a shared group: a window of messages under a lease.

Whoever consumes so acknowledges up to an offset (`Groups.ack`). The group is created by its first
consumer, and begins a partition where the first consumer of that partition says.
"""

from collections.abc import Coroutine, Hashable
from typing import Any

from queueber.engine.topics.group import Group
from queueber.engine.topics.group_ack import begin
from queueber.engine.topics.groups import get_group
from queueber.engine.topics.shared_groups import shared
from queueber.errors import FailedPrecondition, InvalidArgument
from queueber.limits import LEASE_MS_MAX
from queueber.model import Consuming, Delivery, GroupKind, MessageSlice, Polled, Start
from queueber.service.groups import Groups
from queueber.service.lease_feed import deliveries_of
from queueber.service.polls import Polls
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle
from queueber.service.topics import Topics
from queueber.service.unread_answers import AnswerMemory
from queueber.service.validate.settings import check_range
from queueber.service.validate.topics import check_group_name, check_group_settings


class Windows:
    def __init__(self, shell: Shell, topics: Topics, groups: Groups, polls: Polls) -> None:
        self._shell = shell
        self._topics = topics
        self._groups = groups
        self._polls = polls

    def consume(
        self,
        topic: TopicHandle,
        asked: Consuming,
        *,
        wait_ms: int,
        name: Hashable | None = None,
        memory: AnswerMemory | None = None,
    ) -> Coroutine[Any, Any, Delivery]:
        """Lease a window of a partition; with no message there, wait for one up to `wait_ms`. As a
        poll, it can be withdrawn by its `name`, and cancelling it gives the messages back."""
        check_group_name(asked.group)
        check_group_settings(asked.settings, self._shell.limits.item_bytes_max)
        if asked.position.start is Start.GROUP:
            raise InvalidArgument("from: a group goes on where it is; give where a new one begins")
        if asked.lease_ms:
            check_range("leaseMs", asked.lease_ms, 1, LEASE_MS_MAX)
        state = self._topics.alive(topic)
        state.check_partition(asked.partition)
        group = self._group(topic, asked)
        if asked.partition not in shared(group).messages.positions:
            place = (state, group, asked.partition, asked.position)
            self._shell.run(group.queue, begin, *place)
        queue = self._groups.open_group(topic, asked.group)
        polled = self._polls.poll(
            queue,
            asked.messages_max,
            lease_ms=asked.lease_ms,
            wait_ms=wait_ms,
            name=name,
            memory=memory,
            partition=asked.partition,
        )
        return self._delivered(topic, queue, asked.partition, polled)

    def _group(self, topic: TopicHandle, asked: Consuming) -> Group:
        """The group, created if there is none."""
        known = topic.state.groups.get(asked.group)
        settings = asked.settings if known is None else known.settings
        if settings.kind is not GroupKind.SHARED:
            raise FailedPrecondition(
                f"group {asked.group!r} is of kind {settings.kind.value!r}; only groups of kind "
                "'shared' are consumed by many at once"
            )
        if known is None:
            self._groups.create(topic, asked.group, settings, asked.position, asked.partition)
        return get_group(topic.state, asked.group)

    async def _delivered(
        self,
        topic: TopicHandle,
        queue: QueueHandle,
        partition: int,
        polling: Coroutine[Any, Any, Polled],
    ) -> Delivery:
        polled, state = await polling, topic.state
        if polled.packed:
            return deliveries_of(self._shell.engine.store, state, polled)[0]
        undelivered = queue.state.undelivered
        first, end = state.first_offset(partition), state.next_offset(partition)
        left = 0 if undelivered is None else undelivered.count(partition)
        return Delivery(MessageSlice(partition, [], end - left, first, end))
