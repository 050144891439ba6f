"""Topics that keep the last message of each key."""

from collections.abc import Iterator
from random import Random

import pytest

from queueber.db.families import Family
from queueber.engine.topics.forks import fork
from queueber.engine.topics.publish import publish
from queueber.engine.topics.trim import trim_topic
from queueber.errors import FailedPrecondition
from queueber.limits import COMPACT_AFTER_MS
from queueber.model import NewMessages, Position, Publication, TopicConfig, TopicSettings
from tests.support.topic_rig import TopicRig

SETTINGS = TopicSettings(keeps_last_per_key=True, tombstone_ms=60_000)


@pytest.fixture
def rig() -> Iterator[TopicRig]:
    made = TopicRig(SETTINGS)
    yield made
    made.close()


def pass_time(rig: TopicRig, ms: int = COMPACT_AFTER_MS) -> None:
    rig.now_ms += ms
    rig.sweep()


def test_a_message_replaces_the_one_before_it_with_its_key(rig: TopicRig) -> None:
    rig.publish(b"a1", b"b1", b"none", keys=["a", "b", ""])
    rig.publish(b"a2", keys=["a"])

    pass_time(rig)

    assert rig.read() == [(1, b"b1"), (2, b"none"), (3, b"a2")]
    assert rig.topic.next_offset(0) == 4


def test_messages_of_one_call_replace_each_other(rig: TopicRig) -> None:
    rig.publish(b"1", b"2", b"3", keys=["a", "a", "a"])

    pass_time(rig)

    assert rig.read() == [(2, b"3")]


def test_a_replaced_message_can_be_read_until_its_block_is_rewritten(rig: TopicRig) -> None:
    rig.publish(b"1", keys=["a"])
    rig.publish(b"2", keys=["a"])

    assert rig.read() == [(0, b"1"), (1, b"2")]


def test_a_tombstone_deletes_its_key_and_is_itself_deleted_later(rig: TopicRig) -> None:
    rig.publish(b"1", b"other", keys=["a", "b"])
    rig.publish(b"", keys=["a"])

    pass_time(rig)
    assert rig.read() == [(1, b"other"), (2, b"")]
    pass_time(rig, SETTINGS.tombstone_ms)
    pass_time(rig)

    assert rig.read() == [(1, b"other")]
    assert rig.topic.next_offset(0) == 3


def test_a_tombstone_that_was_replaced_is_not_missed(rig: TopicRig) -> None:
    rig.publish(b"", keys=["a"])
    rig.publish(b"2", keys=["a"])

    pass_time(rig, SETTINGS.tombstone_ms)
    pass_time(rig)

    assert rig.read() == [(1, b"2")]


def test_a_reader_passes_over_messages_that_are_gone_at_the_end(rig: TopicRig) -> None:
    rig.publish(b"1", keys=["a"])
    rig.publish(b"", keys=["a"])
    for _ in range(3):
        pass_time(rig, SETTINGS.tombstone_ms)

    assert rig.read() == []
    rig.publish(b"3", keys=["c"])
    assert rig.read() == [(2, b"3")]


def test_what_was_replaced_before_a_restart_is_deleted_after_it(rig: TopicRig) -> None:
    rig.publish(b"1", keys=["a"])
    rig.publish(b"2", keys=["a"])
    rig.reopen()

    assert rig.read() == [(0, b"1"), (1, b"2")]
    pass_time(rig)

    assert rig.read() == [(1, b"2")]


def test_a_topic_that_keeps_the_last_of_each_key_is_neither_trimmed_nor_forked(
    rig: TopicRig,
) -> None:
    rig.publish(b"1", keys=["a"])
    before = rig.dump()

    with pytest.raises(FailedPrecondition, match="keeps the last message"):
        rig.run(trim_topic, rig.topic, 0, Position())
    with pytest.raises(FailedPrecondition, match="cannot be forked"):
        rig.run(fork, rig.topics, rig.topic, "fork", TopicConfig())

    assert rig.dump() == before


@pytest.mark.parametrize("seed", range(15))
def test_random_messages_leave_the_last_of_each_key(seed: int) -> None:
    random = Random(seed)
    rig = TopicRig(SETTINGS, partitions=2)
    expected: list[dict[str, tuple[int, bytes]]] = [{}, {}]
    try:
        for step in range(60):
            count = random.choice([1, 1, 4, 30])
            partition = random.randrange(2)
            keys = [random.choice("abcdefgh") for _ in range(count)]
            payloads = [b"%d" % step for _ in keys]
            published = rig.publish(*payloads, keys=keys, partition=partition)
            for key, offset, payload in zip(keys, published.offsets, payloads, strict=True):
                expected[partition][key] = (offset, payload)
            if random.random() < 0.2:
                pass_time(rig)
            if random.random() < 0.1:
                rig.reopen()
        rig.topic  # noqa: B018  reads it from the store
        pass_time(rig)
        for partition, last in enumerate(expected):
            assert rig.read(partition) == sorted(last.values())
        assert not rig.store.scan(Family.REPLACED, b"", b"\xff" * 16, 1)
    finally:
        rig.close()


def test_a_tombstone_and_its_dedup_id_may_be_forgotten_at_the_same_time() -> None:
    settings = TopicSettings(keeps_last_per_key=True, tombstone_ms=5000, dedup_window_ms=5000)
    rig = TopicRig(settings)
    messages = NewMessages([b""], ["a"], dedup_ids=["once"])
    publication = Publication(rig.topic.name, messages)
    rig.run(publish, rig.topics, [(rig.topic, publication)])

    assert rig.topic.counters.forgets == 2
    pass_time(rig, 5000)
    pass_time(rig)

    assert (rig.read(), rig.topic.counters.forgets) == ([], 0)
    rig.close()
