"""The messages that a shared group leases, as a subscription gets them."""

import contextlib
from collections.abc import Awaitable
from functools import partial
from itertools import groupby

from queueber.db.store.contract import Reads
from queueber.engine.queue.poll import poll
from queueber.engine.queue.release import release_lease
from queueber.engine.topics.group import Group
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import Unavailable
from queueber.ids import reference, split_reference
from queueber.model import (
    Bounds,
    Delivery,
    FailOutcome,
    MessageSlice,
    Outcome,
    PackedMessages,
    Polled,
    Settlement,
)
from queueber.service.bound_leases import BoundLeases
from queueber.service.items import Items
from queueber.service.lease_holders import LeaseHolders
from queueber.service.log_feed import check_group_alive
from queueber.service.polls import ready_count
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle, check_topic_alive
from queueber.service.validate.arguments import one_for_each
from queueber.service.validate.items import BACKOFF_DELAY_MS
from queueber.service.validate.topics import check_settlement

_REFUSED_RETRY_MS = 1000
"""When to look again for messages that its connection holds too much for."""
_LOOK_AFTER = 100
"""So many leases are remembered before the first look which of them have ended."""


class LeaseFeed:
    """Messages that a shared group leases to this consumer; the leases end with its connection."""

    def __init__(
        self,
        shell: Shell,
        bound: BoundLeases,
        holders: LeaseHolders,
        topic: TopicHandle,
        group: Group,
        lease_ms: int,
    ) -> None:
        self._shell = shell
        self._bound = bound
        self._holders = holders
        self._session = topic.session
        self.topic = topic.state
        self.group = group
        self._queue = QueueHandle(group.queue, topic.session)
        self._lease_ms = lease_ms
        self._left: dict[bytes, int] = {}
        """How many messages of each lease are not settled."""
        self._look_at = _LOOK_AFTER
        self._is_refused = False
        """There are messages, but none for this consumer now."""

    def check_alive(self) -> None:
        check_topic_alive(self.topic, self._shell.clock.now_ms())
        check_group_alive(self.topic, self.group)

    async def next(self, messages_max: int, bytes_max: int) -> list[Delivery]:
        shell, queue = self._shell, self._queue.state
        self._is_refused = False
        if not ready_count(queue, shell.clock) or queue.is_paused(shell.clock.now_ms()):
            return []
        shell.write_gathered(queue)
        lease = partial(
            poll,
            lease_ms=self._lease_ms,
            answer_bytes_max=shell.limits.slice_bytes_max,
            holder=self._bound.held_together(queue, self._session),
        )
        (polled,) = shell.run(queue, lease, [messages_max])
        if not polled.packed:
            self._is_refused = True
            return []
        self._left[polled.lease_id] = polled.count
        if len(self._left) > self._look_at:
            self._drop_ended()
        self._bound.add(self._session, queue, [polled.lease_id])
        self._holders.remember([polled.lease_id], self._session.holder)
        shell.wake_sweeper_for(shell.engine.agenda.next_ms())
        if self.topic.use(shell.clock.now_ms()):
            shell.run(None, self.topic.note_use)
        deliveries = deliveries_of(shell.engine.store, self.topic, polled)
        await shell.durable(None)
        return deliveries

    def _drop_ended(self) -> None:
        """Nobody tells when a lease expires, so now and then look which are left."""
        leases = list(self._left)
        held_of = self._queue.state.leases.read(leases)
        pairs = zip(leases, held_of, strict=True)
        self._left = {each: self._left[each] for each, (_, held) in pairs if held}
        self._look_at = 2 * len(self._left) + _LOOK_AFTER

    def settle(self, items: Items, settlement: Settlement) -> Awaitable[list[bool]]:
        s, queue = settlement, self._queue
        check_group_alive(self.topic, self.group)
        check_settlement(s)
        if s.outcome is Outcome.EXTENDED:
            lease_ms = self._lease_ms if s.delay_ms is None else s.delay_ms
            return items.extend(queue, [s.lease], [lease_ms])
        partitions = one_for_each("partitions", s.partitions, len(s.offsets))
        ids = [reference(p, o) for p, o in zip(partitions, s.offsets, strict=True)]
        if s.outcome is Outcome.ACKNOWLEDGED:
            settled = items.remove(queue, ids, [s.lease])
        elif s.outcome is Outcome.RELEASED:
            settled = items.release(queue, ids, [s.lease])
        else:
            delay_ms = BACKOFF_DELAY_MS if s.delay_ms is None else s.delay_ms
            failed = items.fail(queue, ids, [s.lease], [s.error], [delay_ms])
            settled = _are_held(failed)
        return self._count(settled, s.lease)

    async def _count(self, settled: Awaitable[list[bool]], lease: bytes) -> list[bool]:
        done = await settled
        left = self._left.get(lease, 0) - sum(done)
        if left > 0:
            self._left[lease] = left
        else:
            self._left.pop(lease, None)
        return done

    # --- as a feed --------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """All messages of a closed topic are acknowledged, or dead letters."""
        queue = self._queue.state
        counters = queue.counters
        is_busy = ready_count(queue, self._shell.clock) or counters.leased or counters.delayed
        return self.topic.record.is_closed and not is_busy

    @property
    def look_again_ms(self) -> int | None:
        return self._shell.clock.now_ms() + _REFUSED_RETRY_MS if self._is_refused else None

    def give_back(self) -> None:
        queue = self._queue.state
        leases, self._left = self._left, {}
        if not leases or self.topic.groups.get(self.group.name) is not self.group:
            return
        for lease in leases:
            # If the disk is full, the lease ends when it expires.
            with contextlib.suppress(Unavailable):
                self._shell.run(queue, release_lease, lease)
        self._shell.after_write(queue)


async def _are_held(failed: Awaitable[list[FailOutcome]]) -> list[bool]:
    return [each is not FailOutcome.REFUSED for each in await failed]


def deliveries_of(reads: Reads, topic: TopicState, polled: Polled) -> list[Delivery]:
    """What a poll of a shared group got, as deliveries: one for each partition. Messages that the
    topic has deleted since are left out."""
    attempts = polled.details.attempts
    deliveries = []
    at = 0
    for partition, runs in groupby(polled.packed, lambda run: split_reference(run.last)[0]):
        pieces: list[PackedMessages] = []
        tried: list[int] = []
        for run in runs:
            end = split_reference(run.last)[1] + 1
            start = max(end - run.count, topic.first_offset(partition))
            bounds = Bounds(run.count, end_offset=end)
            pieces += read(reads, topic, partition, start, bounds).packed if start < end else []
            tried += attempts[at + start - end + run.count : at + run.count]
            at += run.count
        end = pieces[-1].offset + pieces[-1].count if pieces else topic.first_offset(partition)
        first, last = topic.first_offset(partition), topic.next_offset(partition)
        found = MessageSlice(partition, pieces, end, first, last)
        deliveries.append(Delivery(found, polled.lease_id, tried))
    return deliveries
