"""What becomes due in topics, whether they are in memory or not."""

import gc

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.engine.queue.poll import poll
from queueber.engine.queue.remove import remove
from queueber.engine.topics import topics as topics_module
from queueber.engine.topics.groups import acknowledge
from queueber.engine.topics.sweep import next_due_ms, sweep
from queueber.ids import QueueId
from queueber.limits import AGENDA_SLACK_MS, BRIDGE_RETRY_MS, HOUR_MS, MIB, UNREADABLE_RETRY_MS
from queueber.model import GroupKind, QueueSettings, TopicSettings
from tests.support.topic_rig import TOPIC, TopicRig


def noted(rig: TopicRig) -> int:
    return len(rig.store.scan(Family.AGENDA, b"\1", b"\2", 100))


def test_messages_are_deleted_at_their_age_to_the_millisecond() -> None:
    rig = TopicRig(TopicSettings(retention_ms=5000))
    try:
        rig.publish(b"1")
        rig.now_ms += 2000
        rig.publish(b"2")
        rig.now_ms += 2999
        rig.sweep()
        assert rig.read() == [(0, b"1"), (1, b"2")]
        assert next_due_ms(rig.kernel, rig.topics, rig.now_ms) == rig.now_ms + 1

        rig.now_ms += 1
        rig.sweep()

        assert rig.read() == [(1, b"2")]
    finally:
        rig.close()


def test_a_topic_that_nobody_uses_after_a_restart_is_looked_at_within_the_slack() -> None:
    rig = TopicRig(TopicSettings(retention_ms=HOUR_MS))
    try:
        rig.publish(b"1")
        rig.reopen()
        assert list(rig.topics) == []
        rig.now_ms += HOUR_MS + AGENDA_SLACK_MS
        assert next_due_ms(rig.kernel, rig.topics, rig.now_ms) <= rig.now_ms

        rig.sweep()

        assert rig.read() == []
    finally:
        rig.close()


def test_a_busy_topic_is_noted_once_and_not_with_every_publish() -> None:
    rig = TopicRig(TopicSettings(retention_messages=1))
    try:
        for number in range(20):
            rig.publish(b"%d" % number)
            rig.sweep()
            rig.now_ms += 1000
        assert noted(rig) == 1
        assert rig.read() == [(19, b"19")]

        rig.now_ms += 2 * AGENDA_SLACK_MS
        rig.sweep()

        assert noted(rig) == 0
        assert next_due_ms(rig.kernel, rig.topics, rig.now_ms) == NEVER_MS
    finally:
        rig.close()


def test_a_topic_expires_when_nobody_has_used_it_for_its_time_to_live() -> None:
    rig = TopicRig(TopicSettings(ttl_ms=10_000))
    try:
        rig.now_ms += 9_000
        rig.topic.use(rig.now_ms)
        rig.now_ms += 9_999
        rig.sweep()
        assert rig.topic.name == TOPIC

        rig.now_ms += 1
        rig.sweep()

        assert rig.topics.find(TOPIC) is None
        assert rig.topics.count == 0
    finally:
        rig.close()


def test_topics_that_nobody_uses_leave_memory(rig: TopicRig, monkeypatch: object) -> None:
    monkeypatch.setattr(topics_module, "TOPICS_LOADED_MAX", 10)  # type: ignore[attr-defined]
    for number in range(50):
        rig.run(rig.topics.create, f"topic{number}", TopicSettings())
    held = rig.topics.get("topic0", rig.now_ms)
    for number in range(1, 50):
        rig.topics.get(f"topic{number}", rig.now_ms)
    gc.collect()

    assert len(list(rig.topics)) == 11
    assert rig.topics.get("topic0", rig.now_ms) is held


def test_topics_that_leave_memory_leave_the_agenda_and_are_still_swept(
    rig: TopicRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics_module, "TOPICS_LOADED_MAX", 3)
    held = rig.run(rig.topics.create, "held", TopicSettings(ttl_ms=HOUR_MS))[0]
    for number in range(12):
        rig.name = f"t{number}"
        rig.run(rig.topics.create, rig.name, TopicSettings(ttl_ms=HOUR_MS))
        rig.publish(b"m")
        rig.create_group(kind=GroupKind.SHARED)
        rig.poll()
        gc.collect()

    scheduled = [each for each in range(1000) if rig.kernel.agenda.due_ms(QueueId(each)) < NEVER_MS]
    assert held.queue_id in scheduled
    assert len(scheduled) <= 2 * (3 + 3), "of topics and groups, and those that just left"

    rig.now_ms += 2 * HOUR_MS
    for _ in range(12):  # a hundred are read at once, and here only three of them stay
        rig.sweep()
        rig.now_ms += AGENDA_SLACK_MS
    assert rig.topics.count == 1


def test_messages_that_all_groups_have_acknowledged_are_deleted() -> None:
    rig = TopicRig(TopicSettings(deletes_acknowledged=True))
    try:
        one, two = rig.create_group("one"), rig.create_group("two")
        rig.publish(b"1")
        rig.publish(b"2")
        rig.run(acknowledge, rig.topic, one, 0, 2)
        rig.now_ms += 2000
        rig.sweep()
        assert rig.read() == [(0, b"1"), (1, b"2")]

        rig.run(acknowledge, rig.topic, two, 0, 1)
        rig.now_ms += 2000
        rig.sweep()

        assert rig.read() == [(1, b"2")]
    finally:
        rig.close()


def test_a_bridge_adds_what_is_published_and_waits_while_its_queue_is_full(rig: TopicRig) -> None:
    rig.run(rig.queues.create, "work", QueueSettings(items_max=3))
    rig.create_group("bridge", GroupKind.QUEUE, queue="work")
    rig.publish(b"a", b"b", partition=0)
    rig.publish(b"c", b"d", partition=1)
    rig.sweep()
    queue = rig.queues.get("work")
    assert queue.counters.ready == 3

    polled = rig.run_on(queue, lambda tx: poll(tx, [3], lease_ms=1000, answer_bytes_max=MIB)[0])
    rig.run_on(queue, remove, polled.ids, [polled.lease_id] * 3)
    rig.now_ms += BRIDGE_RETRY_MS
    rig.sweep()

    again = rig.run_on(queue, lambda tx: poll(tx, [3], lease_ms=1000, answer_bytes_max=MIB)[0])
    assert sorted([*polled.contents, *again.contents]) == [b"a", b"b", b"c", b"d"]
    keys = [*polled.details.keys, *again.details.keys]
    assert sorted(keys) == ["t/0/0#1", "t/0/1#1", "t/1/0#1", "t/1/1#1"]


def test_a_bridge_goes_on_after_a_restart(rig: TopicRig) -> None:
    rig.run(rig.queues.create, "work", QueueSettings())
    rig.create_group("bridge", GroupKind.QUEUE, queue="work")
    rig.publish(b"a", partition=0)
    rig.reopen()
    rig.now_ms += AGENDA_SLACK_MS
    rig.sweep()

    assert rig.queues.get("work").counters.ready == 1


def damage(rig: TopicRig, family: Family, key: bytes) -> None:
    batch = rig.store.batch()
    batch.put(family, key, b"damaged")
    rig.store.write(batch)


def sweep_unreadable(rig: TopicRig) -> list[str]:
    """Do all that is due; what could not be read."""
    found: list[str] = []
    while (swept := sweep(rig.kernel, rig.queues, rig.topics, rig.now_ms)) is not None:
        found += [str(each) for each in swept.unreadable]
    return found


def test_a_topic_that_cannot_be_read_does_not_keep_the_others_waiting() -> None:
    rig = TopicRig(TopicSettings(retention_ms=HOUR_MS))
    rig.publish(b"1")
    damaged = rig.topic
    rig.name = "other"
    rig.run(rig.topics.create, rig.name, TopicSettings(retention_ms=HOUR_MS))
    rig.publish(b"2")
    record = rig.store.get(Family.TOPICS, damaged.prefix)
    assert record is not None
    damage(rig, Family.TOPICS, damaged.prefix)
    rig.reopen()
    rig.now_ms += HOUR_MS + AGENDA_SLACK_MS

    told = sweep_unreadable(rig)

    assert rig.read() == [], "the other topic was looked at"
    assert [each.partition(";")[0] for each in told] == [
        f"the record of topic number {damaged.queue_id} cannot be read"
    ]
    assert sweep_unreadable(rig) == [], "not again before an hour has passed"
    rig.now_ms += UNREADABLE_RETRY_MS
    assert len(sweep_unreadable(rig)) == 1
    batch = rig.store.batch()
    batch.put(Family.TOPICS, damaged.prefix, record)
    rig.store.write(batch)
    rig.now_ms += UNREADABLE_RETRY_MS
    rig.name = TOPIC
    assert sweep_unreadable(rig) == []
    assert rig.read() == [], "it is looked at once it can be read"
    rig.close()


def test_a_topic_whose_groups_cannot_be_read_does_not_stop_the_sweeper() -> None:
    rig = TopicRig(TopicSettings(retention_ms=HOUR_MS, deletes_acknowledged=True))
    rig.publish(b"1")
    group, number = rig.create_group(), rig.topic.queue_id
    record = rig.store.get(Family.GROUPS, group.key)
    assert record is not None
    damage(rig, Family.GROUPS, group.key)
    rig.reopen()
    rig.now_ms += HOUR_MS + AGENDA_SLACK_MS

    told = sweep_unreadable(rig)

    assert [each.partition(";")[0] for each in told] == [
        f"the groups of topic number {number} cannot be read"
    ]
    assert sweep_unreadable(rig) == []
    batch = rig.store.batch()
    batch.put(Family.GROUPS, group.key, record)
    rig.store.write(batch)
    rig.close()
