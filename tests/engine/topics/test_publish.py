"""Publish: repeats, gaps, dedup ids, conditional appends, full and closed topics."""

from typing import Any

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.engine.topics.append import partition_of
from queueber.engine.topics.publish import publish
from queueber.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    QueueberError,
    ResourceExhausted,
    from_wire,
)
from queueber.limits import PRODUCER_KEEP_MS
from queueber.model import NewMessages, Producer, Publication, Published, TopicSettings
from tests.support.topic_rig import TOPIC, TopicRig


def send(rig: TopicRig, *payloads: bytes, topic: str = TOPIC, **fields: Any) -> Published:
    messages = NewMessages(payloads, dedup_ids=fields.pop("dedup_ids", ()))
    fields.setdefault("partition", 0)
    publication = Publication(topic, messages, **fields)
    to = [(rig.topics.get(topic, rig.now_ms), publication)]
    return rig.run(publish, rig.topics, to)[0]


def refused(rig: TopicRig, error: type[QueueberError], **fields: Any) -> QueueberError:
    """The error of a publish that changes nothing."""
    before = rig.dump()
    with pytest.raises(error) as caught:
        send(rig, b"refused", **fields)
    assert rig.dump() == before
    return caught.value


def places(published: Published) -> list[tuple[int, int, bytes, int]]:
    return list(
        zip(
            published.partitions,
            published.offsets,
            published.ids,
            published.sequences,
            strict=True,
        )
    )


def test_a_call_that_a_producer_repeats_is_answered_as_the_first_time(rig: TopicRig) -> None:
    first = send(rig, b"1", b"2", producer=Producer("p", 0, 1))
    send(rig, b"other")

    again = send(rig, b"1", b"2", producer=Producer("p", 0, 1))

    assert again.is_repeat
    assert places(again) == places(first)
    assert again.at_ms == first.at_ms
    assert rig.read() == [(0, b"1"), (1, b"2"), (2, b"other")]


def test_a_gap_in_a_producers_sequence_tells_what_was_expected(rig: TopicRig) -> None:
    send(rig, b"1", producer=Producer("p", 0, 1))

    error = refused(rig, Aborted, producer=Producer("p", 0, 3))

    assert error.numbers == {"expected": 2, "received": 3, "epoch": 0}


def test_an_older_epoch_is_refused_with_the_current_one(rig: TopicRig) -> None:
    send(rig, b"1", producer=Producer("p", 4, 1))

    error = refused(rig, Aborted, producer=Producer("p", 3, 1))

    assert error.numbers == {"epoch": 4}
    assert from_wire(f"ABORTED: {error}").numbers == {"epoch": 4}


def test_producers_of_two_topics_have_nothing_to_do_with_each_other(rig: TopicRig) -> None:
    rig.run(rig.topics.create, "other", TopicSettings())
    send(rig, b"1", producer=Producer("p", 0, 1))

    assert not send(rig, b"1", topic="other", producer=Producer("p", 0, 1)).is_repeat


def test_a_producer_that_sends_nothing_is_forgotten(rig: TopicRig) -> None:
    send(rig, b"1", producer=Producer("p", 7, 1))
    rig.now_ms += PRODUCER_KEEP_MS
    rig.sweep()

    assert not send(rig, b"1", producer=Producer("p", 0, 1)).is_repeat


def test_a_message_with_a_known_dedup_id_is_not_published_again(rig: TopicRig) -> None:
    first = send(rig, b"1", b"2", dedup_ids=["a", "b"])

    again = send(rig, b"9", b"3", b"4", dedup_ids=["b", "c", "c"], partition=1)

    assert list(again.duplicates) == [True, False, True]
    assert places(again)[0] == places(first)[1]
    assert places(again)[1][:2] == places(again)[2][:2] == (1, 0)
    assert rig.read(0) == [(0, b"1"), (1, b"2")]
    assert rig.read(1) == [(0, b"3")]


def test_a_dedup_id_is_forgotten_after_the_window(rig: TopicRig) -> None:
    send(rig, b"1", dedup_ids=["a"])
    rig.now_ms += rig.topic.settings.dedup_window_ms
    rig.sweep()

    assert not send(rig, b"2", dedup_ids=["a"]).duplicates
    assert rig.read() == [(0, b"1"), (1, b"2")]


def test_a_conditional_append_is_refused_with_the_tail_as_it_is(rig: TopicRig) -> None:
    send(rig, b"1", expected_offset=0)

    error = refused(rig, FailedPrecondition, expected_offset=0)

    assert error.numbers == {"tail": 1}
    assert "expected_offset is 0" in str(error)
    send(rig, b"2", expected_offset=1)


def test_a_conditional_append_needs_a_partition(rig: TopicRig) -> None:
    error = refused(rig, InvalidArgument, expected_offset=0, partition=None)

    assert "has 2 partitions" in str(error)


@pytest.mark.parametrize("partition", [-1, 2, 1 << 20])
def test_a_partition_that_is_not_there_is_refused(rig: TopicRig, partition: int) -> None:
    error = refused(rig, InvalidArgument, partition=partition)

    assert f"partition is {partition}; topic 't' has partitions 0 to 1" in str(error)


def test_a_closed_topic_takes_no_message_but_repeats_the_last_answer(rig: TopicRig) -> None:
    last = send(rig, b"last", producer=Producer("p", 0, 1), closes=True)

    error = refused(rig, FailedPrecondition)

    assert error.numbers == {"tail": 1, "closed": 1}
    again = send(rig, b"last", producer=Producer("p", 0, 1), closes=True)
    assert (again.is_repeat, places(again)) == (True, places(last))


def test_a_close_without_messages_may_be_repeated_and_heeds_the_expected_offset(
    rig: TopicRig,
) -> None:
    send(rig, b"a")
    with pytest.raises(FailedPrecondition, match="goes on at 1") as caught:
        send(rig, closes=True, expected_offset=7)
    assert (caught.value.numbers, rig.topic.record.is_closed) == ({"tail": 1}, False)
    with pytest.raises(InvalidArgument, match="name the one that it is about"):
        send(rig, closes=True, expected_offset=1, partition=None)

    closed = send(rig, closes=True, expected_offset=1)
    before = rig.dump()

    assert (places(closed), rig.topic.record.is_closed) == ([], True)
    assert send(rig, closes=True, expected_offset=1) == closed
    assert rig.dump() == before


def test_a_full_topic_refuses_or_deletes_its_oldest_messages() -> None:
    for refuses in (True, False):
        rig = TopicRig(TopicSettings(retention_messages=2, refuses_when_full=refuses))
        try:
            send(rig, b"1")
            send(rig, b"2")
            if refuses:
                error = refused(rig, ResourceExhausted)
                assert "has 2 messages in a partition" in str(error)
            else:
                send(rig, b"3")
                rig.sweep()
                assert rig.read() == [(1, b"2"), (2, b"3")]
        finally:
            rig.close()


def test_messages_to_many_topics_are_published_all_or_none(rig: TopicRig) -> None:
    rig.run(rig.topics.create, "closed", TopicSettings())
    rig.run(rig.topics.close, rig.topics.get("closed", rig.now_ms))
    before = rig.dump()
    to = [
        (rig.topics.get(name, rig.now_ms), Publication(name, NewMessages([b"x"]), 0))
        for name in (TOPIC, "closed")
    ]

    with pytest.raises(FailedPrecondition, match="'closed' is closed"):
        rig.run(publish, rig.topics, to)

    assert rig.dump() == before
    assert rig.topics.sequences.last == 0


def test_the_partition_of_a_key_never_changes() -> None:
    """Other programs rely on it: CRC-32 of the UTF-8 bytes, modulo the number of partitions."""
    assert [partition_of(key, 16) for key in ("", "a", "order-1", "Zürich")] == [0, 3, 15, 14]


def test_messages_of_one_key_stay_in_one_partition_in_order(rig: TopicRig) -> None:
    keys = ["k1", "k2", "k3"] * 20
    rig.publish(*[b"%d" % n for n in range(60)], keys=keys)

    for key in set(keys):
        expected = [b"%d" % n for n in range(60) if keys[n] == key]
        found = [payload for _, payload in rig.read(partition_of(key, 2)) if payload in expected]
        assert found == expected


def test_dedup_ids_of_a_call_to_several_partitions_are_forgotten_together(rig: TopicRig) -> None:
    """The entry that forgets them has the last of their places, in whatever order they came."""
    keys = ["k0", "k4"]
    assert [partition_of(key, 2) for key in keys] == [1, 0]
    messages = NewMessages([b"1", b"2"], keys, dedup_ids=["a", "b"])
    publication = Publication(TOPIC, messages)

    rig.run(publish, rig.topics, [(rig.topic, publication)])

    assert [str(each) for each in check_store(rig.store)] == []


def test_keys_of_one_moment_in_several_partitions_are_found_by_the_check(rig: TopicRig) -> None:
    """The entry that forgets keys is at the place of the last of them: between a key and its entry
    may be one of another publication."""
    messages = NewMessages([b"1", b"2"], ["k0", "k6"], dedup_ids=["a", "b"])
    first = rig.run(publish, rig.topics, [(rig.topic, Publication(rig.name, messages))])[0]
    assert len(set(first.partitions)) == 2

    send(rig, b"3", dedup_ids=["c"], partition=0)

    assert check_store(rig.store) == []
