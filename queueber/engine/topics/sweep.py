"""Sweep: what is due in topics and groups, beside what is due in queues.

As in queues, what may become due is one table of duties. The kernel's agenda says when to look at
what is in memory. The noted times say when to look at the rest: whatever comes up there is read
from the store, and looked at when its first duty is due.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.noted_times import NotedTime
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.queue import sweep as queue_sweep
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import Queues
from queueber.engine.topics.bridge import (
    bridge_due_ms,
    bridged_queues,
    fill_queues,
    new_stops,
)
from queueber.engine.topics.drop import drop_slice
from queueber.engine.topics.group import Group, Stop
from queueber.engine.topics.groups import acknowledged
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.engine.topics.trim import trim_to_limits
from queueber.errors import StorageCorrupt
from queueber.ids import QueueId
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS, UNREADABLE_RETRY_MS
from queueber.model import Sweep

_NOTED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Swept:
    """What a slice of a sweep was about."""

    queue: QueueState | None = None
    """A queue, or a group that shares messages; `moved` says what was done."""
    moved: Sweep | None = None
    topic: TopicState | None = None
    filled: Sequence[QueueState] = ()
    """Queues that messages of the topic were added to."""
    stops: Sequence[tuple[Group, Stop]] = ()
    """What has stopped bridges of the topic."""
    unreadable: Sequence[StorageCorrupt] = ()
    """What could not be looked at. The rest goes on, and it is tried again later."""


@dataclass(frozen=True, slots=True)
class TopicDuty:
    name: str
    due_ms: Callable[[TopicState, int], int]
    """When the duty is due next in a topic, given the time now; `NEVER_MS`: it is not."""
    run: Callable[[Transaction[Any], Topics, TopicState, int], Done]
    """Do a slice of at most that many entries. Called only when the duty is due."""
    counts: bool = False
    """Whether it changes the counters of the topic."""


def _trim_due_ms(topic: TopicState, now_ms: int) -> int:
    dues = [
        topic.trim_due_ms(each, now_ms, acknowledged=acknowledged(topic, each))
        for each in range(topic.partitions)
    ]
    return min(dues, default=NEVER_MS)


def _trim(tx: Transaction[Any], _topics: Topics, topic: TopicState, _max: int) -> Done:
    return Done(sum([trim_to_limits(tx, topic, each) for each in range(topic.partitions)]))


def _expire(tx: Transaction[Any], topics: Topics, topic: TopicState, _max: int) -> Done:
    topics.delete(tx, topic)
    return Done(1, NEVER_MS)


def _forget(tx: Transaction[Any], _topics: Topics, topic: TopicState, count: int) -> Done:
    return topic.memory.retention.forget(tx, count)


def _compact_due_ms(topic: TopicState, _now_ms: int) -> int:
    return topic.memory.compaction.due_ms if topic.settings.keeps_last_per_key else NEVER_MS


def _compact(tx: Transaction[Any], _topics: Topics, topic: TopicState, count: int) -> Done:
    return Done(topic.memory.compaction.compact(tx, topic.partitions, count))


def _bridge(tx: Transaction[Any], topics: Topics, topic: TopicState, count: int) -> Done:
    return Done(fill_queues(tx, topics, topic, count))


def _drop(tx: Transaction[Any], topics: Topics, topic: TopicState, _max: int) -> Done:
    return Done(1, NEVER_MS if drop_slice(tx, topics, topic) else tx.now_ms)


TOPIC_DUTIES = [
    TopicDuty("expire", lambda topic, _: topic.expires_at_ms, _expire),
    TopicDuty("trim", _trim_due_ms, _trim),
    TopicDuty(
        "forget",
        lambda topic, _: topic.counters.forget_due_ms,
        _forget,
        counts=True,
    ),
    TopicDuty("compact", _compact_due_ms, _compact),
    TopicDuty("bridge", bridge_due_ms, _bridge),
]
"""The work that may become due in a topic, in the order in which a sweep does it."""

_DROP = TopicDuty("drop", lambda _, now_ms: now_ms, _drop)
"""All that is left to do in a topic that is deleted, once no fork needs it."""


def duties_of(topic: TopicState) -> list[TopicDuty]:
    if topic.record.is_deleted:
        return [] if topic.record.forks else [_DROP]
    return TOPIC_DUTIES


def first_due_ms(topic: TopicState, now_ms: int) -> int:
    """When one of the duties is due next."""
    return min([duty.due_ms(topic, now_ms) for duty in duties_of(topic)], default=NEVER_MS)


def schedule(kernel: Kernel, topic: TopicState) -> None:
    """The topic is in memory now: the agenda knows exactly when to look at it."""
    kernel.agenda.schedule(topic.queue_id, first_due_ms(topic, 0))


def next_due_ms(kernel: Kernel, topics: Topics, now_ms: int) -> int:
    """When to sweep next."""
    return min(kernel.agenda.next_ms(), topics.times.next_ms(now_ms))


def sweep(
    kernel: Kernel,
    queues: Queues,
    topics: Topics,
    now_ms: int,
    items_max: int = SWEEP_SLICE_ITEMS,
) -> Swept | None:
    """Do a slice of what is due first; None when nothing is due."""
    number = kernel.agenda.take_due(now_ms)
    if number is None:
        return _look_at_noted(kernel, topics, now_ms)
    queue = queues.by_id.get(number) or topics.loaded_group(number)
    if queue is not None:
        return Swept(queue, queue_sweep.sweep_queue(kernel, queue, now_ms, items_max))
    topic = topics.loaded(number)
    if topic is None:
        return Swept()  # nobody uses it any more; its noted time brings it back
    try:
        filled = bridged_queues(topics, topic)
        sweep_topic(kernel, topics, topic, now_ms, items_max)
    except StorageCorrupt as error:
        kernel.agenda.forget(number)
        kernel.agenda.schedule(number, now_ms + UNREADABLE_RETRY_MS)
        return Swept(unreadable=[error])
    return Swept(topic=topic, filled=filled, stops=new_stops(topic))


def sweep_topic(
    kernel: Kernel,
    topics: Topics,
    topic: TopicState,
    now_ms: int,
    items_max: int = SWEEP_SLICE_ITEMS,
) -> None:
    """Do a slice of each duty that is due in one topic, and schedule the next look."""
    kernel.agenda.forget(topic.queue_id)
    look_again_ms = NEVER_MS
    try:
        for duty in duties_of(topic):
            due_ms = duty.due_ms(topic, now_ms)
            if due_ms <= now_ms:
                tx: Transaction[Any] = Transaction(kernel, now_ms, topic if duty.counts else None)
                done = duty.run(tx, topics, topic, items_max)
                tx.commit()
                again_ms = done.look_again_ms
                due_ms = duty.due_ms(topic, now_ms) if again_ms is None else again_ms
            look_again_ms = min(look_again_ms, due_ms)
            if topic.record.is_deleted:
                break
    except BaseException:
        kernel.agenda.schedule(topic.queue_id, now_ms + STORE_RETRY_MS)
        raise
    kernel.agenda.schedule(topic.queue_id, look_again_ms)


def _look_at_noted(kernel: Kernel, topics: Topics, now_ms: int) -> Swept | None:
    """Read what is noted for now from the store, and note when its first duty is due."""
    due = topics.times.due(now_ms, _NOTED_AT_ONCE)
    if not due:
        return None
    tx = Transaction(kernel, now_ms, None)
    unreadable: list[StorageCorrupt] = []
    for at_ms, number, topic_number in due:
        topics.times.forget(tx, at_ms, number)
        try:
            _note_again(tx, topics, number, topic_number)
        except StorageCorrupt as error:
            unreadable.append(error)
            noted = NotedTime(topics.times, None, number, topic_number)
            noted.note(tx, now_ms + UNREADABLE_RETRY_MS)
    tx.commit()
    return Swept(unreadable=unreadable)


def _note_again(
    tx: Transaction[None], topics: Topics, number: QueueId, topic_number: QueueId
) -> None:
    if number == topic_number:
        topic = topics.load(number)
        if topic is not None:
            topic.noted.clear(tx)
            tx.look_at(topic, first_due_ms(topic, tx.now_ms))
        return
    queue = topics.group_queue(topic_number, number)
    if queue is not None and queue.noted is not None:
        queue.noted.clear(tx)
        tx.look_at(queue, queue_sweep.first_due_ms(queue, tx.now_ms))
