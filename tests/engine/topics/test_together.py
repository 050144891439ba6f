"""Together: steps over queues and topics that happen all or not at all."""

import pytest

from queueber.engine.queue.add import add
from queueber.engine.queue.poll import poll
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.engine.queue.results import results_of
from queueber.engine.queue.settle import Outcomes
from queueber.engine.topics.groups import acknowledge, cursor
from queueber.engine.topics.together import Acknowledgement, QueueStep, together
from queueber.errors import Aborted, FailedPrecondition, QueueberError
from queueber.ids import reference, split_reference
from queueber.limits import MIB
from queueber.model import (
    FailOutcome,
    GroupKind,
    NewItems,
    NewMessages,
    Polled,
    Publication,
    QueueSettings,
)
from tests.support.topic_rig import TOPIC, TopicRig


def new_queue(rig: TopicRig, name: str = "q") -> QueueState:
    rig.run(rig.queues.create, name, QueueSettings())
    return rig.queues.get(name)


def lease(rig: TopicRig, queue: QueueState, count: int) -> Polled:
    return rig.run_on(queue, lambda tx: poll(tx, [count], lease_ms=1000, answer_bytes_max=MIB)[0])


def test_items_are_completed_failed_and_added_with_messages_acknowledged_and_published(
    rig: TopicRig,
) -> None:
    queue, other = new_queue(rig), new_queue(rig, "other")
    rig.run_on(queue, add, NewItems([b"a", b"b", b"c"]))
    polled = lease(rig, queue, 3)
    rig.publish(b"m0", b"m1", partition=0)
    ordered = rig.create_group("ordered")
    shared = rig.create_group("shared", GroupKind.SHARED)
    leased = lease(rig, shared.queue, 2)
    a, b, c = polled.ids
    outcomes = Outcomes(
        [a, c], [polled.lease_id] * 2, [b"A", b"C"], [b], [polled.lease_id], ["no"], [None]
    )

    done = rig.run(
        together,
        rig.topics,
        [(rig.topic, Publication(TOPIC, NewMessages([b"out"]), 1))],
        [
            Acknowledgement(rig.topic, ordered, 0, offset=1),
            Acknowledgement(rig.topic, shared, 0, lease=leased.lease_id, offsets=[1]),
        ],
        [
            QueueStep(queue, NewItems([b"next"]), outcomes),
            QueueStep(other, NewItems([b"elsewhere"])),
        ],
    )

    assert done.failed == [[FailOutcome.RETRIED], []]
    assert [len(each.ids) if each else 0 for each in done.added] == [1, 1]
    assert [list(each.offsets) for each in done.published] == [[0]]
    assert rig.read(1) == [(0, b"out")]
    assert cursor(rig.topic, ordered, 0) == 1
    assert shared.queue.counters.leased == 1
    counters = queue.counters
    assert (counters.ready, counters.delayed, counters.leased) == (1, 1, 0)
    assert (counters.completed_total, counters.failed_total) == (2, 1)
    found = results_of(live_view(rig.store, queue), 0, 10, MIB)
    assert [(each.id, each.result) for each in found.results] == [(a, b"A"), (c, b"C")]
    assert other.counters.ready == 1


def check_nothing_happens(rig: TopicRig, error: type[QueueberError], *steps: object) -> str:
    before, sequence = rig.dump(), rig.topics.sequences.last
    with pytest.raises(error) as caught:
        rig.run(together, rig.topics, *steps)
    assert rig.dump() == before
    assert rig.topics.sequences.last == sequence
    return str(caught.value)


def test_an_item_that_its_lease_does_not_hold_refuses_everything(rig: TopicRig) -> None:
    queue = new_queue(rig)
    rig.run_on(queue, add, NewItems([b"a"]))
    polled = lease(rig, queue, 1)
    rig.now_ms += 1000

    text = check_nothing_happens(
        rig,
        FailedPrecondition,
        [(rig.topic, Publication(TOPIC, NewMessages([b"out"]), 1))],
        [],
        [QueueStep(queue, NewItems([b"next"]), Outcomes(polled.ids, [polled.lease_id], [b"A"]))],
    )

    assert polled.ids[0].hex() in text


def test_an_item_that_is_named_twice_refuses_everything(rig: TopicRig) -> None:
    queue = new_queue(rig)
    rig.run_on(queue, add, NewItems([b"a"]))
    polled = lease(rig, queue, 1)
    twice = Outcomes(
        polled.ids, [polled.lease_id], [b"A"], polled.ids, [polled.lease_id], [""], [None]
    )

    check_nothing_happens(rig, FailedPrecondition, [], [], [QueueStep(queue, None, twice)])


def test_a_message_that_its_lease_does_not_hold_refuses_everything(rig: TopicRig) -> None:
    rig.publish(b"m0", partition=0)
    shared = rig.create_group("shared", GroupKind.SHARED)
    leased = lease(rig, shared.queue, 1)
    assert leased.ids == [reference(0, 0)]

    text = check_nothing_happens(
        rig,
        FailedPrecondition,
        [],
        [Acknowledgement(rig.topic, shared, 0, lease=leased.lease_id, offsets=[0, 1])],
        [],
    )

    assert "offset 1 of partition 0" in text


def test_messages_of_several_partitions_and_leases_of_a_group_are_acknowledged(
    rig: TopicRig,
) -> None:
    rig.publish(b"m0", b"m1", partition=0)
    rig.publish(b"n0", b"n1", partition=1)
    shared = rig.create_group("shared", GroupKind.SHARED)
    first, second = lease(rig, shared.queue, 3), lease(rig, shared.queue, 1)
    acks = [
        Acknowledgement(rig.topic, shared, partition, lease=each.lease_id, offsets=[offset])
        for each in (first, second)
        for partition, offset in map(split_reference, each.ids)
    ]

    check_nothing_happens(rig, FailedPrecondition, [], [*acks, acks[0]], [])
    rig.run(together, rig.topics, [], acks, [])

    counters = shared.queue.counters
    assert (counters.leased, counters.removed_total) == (0, 4)
    assert [cursor(rig.topic, shared, each) for each in range(2)] == [2, 2]


def test_a_publish_that_is_refused_leaves_the_cursor_where_it_was(rig: TopicRig) -> None:
    rig.publish(b"m0", partition=0)
    ordered = rig.create_group("ordered")
    rig.run(rig.topics.close, rig.topic)

    check_nothing_happens(
        rig,
        FailedPrecondition,
        [(rig.topic, Publication(TOPIC, NewMessages([b"out"]), 1))],
        [Acknowledgement(rig.topic, ordered, 0, offset=1)],
        [],
    )
    assert cursor(rig.topic, ordered, 0) == 0


@pytest.mark.parametrize(
    ("offset", "first"),
    [(1, None), (2, 1), (3, 1), (3, 0)],
    ids=["the last", "the only one", "one of them", "all but the last"],
)
def test_what_another_consumer_of_an_ordered_group_has_done_is_not_done_again(
    rig: TopicRig, offset: int, first: int | None
) -> None:
    for payload in (b"m0", b"m1", b"m2"):
        rig.publish(payload, partition=0)
    ordered = rig.create_group("ordered")
    rig.run(acknowledge, rig.topic, ordered, 0, 2)

    text = check_nothing_happens(
        rig,
        Aborted,
        [(rig.topic, Publication(TOPIC, NewMessages([b"out"]), 1))],
        [Acknowledgement(rig.topic, ordered, 0, offset, first_offset=first)],
        [],
    )

    assert "up to offset 2" in text
    rig.run(together, rig.topics, [], [Acknowledgement(rig.topic, ordered, 0, 3)], [])
    assert cursor(rig.topic, ordered, 0) == 3
