"""Producers: a call that is sent again is answered as the first time, and stored once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import text_digest
from queueber.errors import Aborted, ResourceExhausted
from queueber.limits import PRODUCER_ANSWERS_KEPT, PRODUCER_KEEP_MS
from queueber.model import Added, NewItems, PackedContents, Producer, QueueSettings
from tests.support.operations import add, cancel, configure_queue, create_queue
from tests.support.rig import QUEUE, Rig


def send(rig: Rig, sequence: int, *, epoch: int = 1, count: int = 2, who: str = "p") -> Added:
    contents = [b"%d" % sequence] * count
    return rig.add_items(NewItems(contents, producer=Producer(who, epoch, sequence)))


def refused(rig: Rig, match: str, sequence: int, *, epoch: int = 1) -> None:
    disk, memory = rig.dump(), rig.memory()
    with pytest.raises(Aborted, match=match):
        send(rig, sequence, epoch=epoch)
    assert rig.dump() == disk
    assert rig.memory() == memory


def answers_kept(rig: Rig, who: str = "p") -> list[int]:
    key = rig.queue.prefix + text_digest(who, b"producer")
    keys = [each for each in rig.keys(Family.PRODUCERS) if each.startswith(key)]
    return [int.from_bytes(each[len(key) :]) for each in keys if len(each) > len(key)]


# --- repeats --------------------------------------------------------------------------------------


def test_call_sent_again_is_answered_as_the_first_time_and_changes_nothing(rig: Rig) -> None:
    first = send(rig, 1)
    disk, memory = rig.dump(), rig.memory()
    rig.now_ms += 5000

    again = send(rig, 1)

    assert (list(again.ids), list(again.duplicates)) == (list(first.ids), [])
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert rig.dump() == disk
    assert rig.memory() == memory


def test_call_sent_again_in_packed_form_is_the_same_call(rig: Rig) -> None:
    contents, producer = [b"one", b"", b"three"], Producer("p", 1, 1)
    first = rig.add_items(NewItems(contents, producer=producer))
    packed = PackedContents.pack([b"-", *contents])[1:]

    again = rig.add_items(NewItems(packed, producer=producer))

    assert again == Added(first.ids, [], is_repeat=True)
    with pytest.raises(Aborted, match="had other contents"):
        rig.add_items(NewItems(PackedContents.pack([b"one", b"3", b"hree"]), producer=producer))


def test_call_sent_again_tells_the_duplicates_of_the_first_time(rig: Rig) -> None:
    items = NewItems([b"a", b"b"], keys=["k", "k"], producer=Producer("p", 1, 1))
    first = rig.add_items(items)

    again = rig.add_items(items)

    assert again == Added(list(first.ids), [False, True], is_repeat=True)
    assert rig.stats().duplicates_total == 1
    rig.assert_sound()


def test_call_sent_again_after_its_items_are_done_stores_nothing(rig: Rig) -> None:
    first = send(rig, 1)
    polled = rig.poll(2)
    rig.complete(polled.ids, polled.lease_id)

    assert list(send(rig, 1).ids) == list(first.ids)

    assert rig.keys(Family.ITEMS) == []


def test_call_sent_again_after_a_restart_is_known(rig: Rig) -> None:
    first = send(rig, 1)

    rig.reopen()

    assert list(send(rig, 1).ids) == list(first.ids)
    assert not send(rig, 2).is_repeat


def test_call_that_was_refused_may_be_sent_again_under_its_number(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(items_max=1), rig.now_ms)
    disk = rig.dump()
    with pytest.raises(ResourceExhausted):
        send(rig, 1)
    assert rig.dump() == disk
    configure_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)

    assert not send(rig, 1).is_repeat

    rig.assert_sound()


def test_last_calls_are_answered_with_their_ids_and_earlier_ones_without(rig: Rig) -> None:
    last = PRODUCER_ANSWERS_KEPT + 3
    ids = {sequence: list(send(rig, sequence, count=1).ids) for sequence in range(1, last + 1)}
    kept = list(range(4, last + 1))

    assert answers_kept(rig) == kept
    assert {sequence: list(send(rig, sequence, count=1).ids) for sequence in kept} == {
        sequence: ids[sequence] for sequence in kept
    }
    disk, memory = rig.dump(), rig.memory()
    for sequence in (1, 2, 3):
        assert send(rig, sequence) == Added([], [], is_repeat=True)
    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.assert_sound()


# --- gaps and epochs ------------------------------------------------------------------------------


@pytest.mark.parametrize("is_known", [False, True])
def test_call_that_leaves_a_gap_is_refused_and_changes_nothing(rig: Rig, is_known: bool) -> None:
    if is_known:
        send(rig, 1)

    expected = 2 if is_known else 1
    refused(rig, rf"sequence 7 of 'p' leaves a gap; {expected} comes next in epoch 1", 7)


def test_new_epoch_begins_at_one_and_shuts_out_the_old(rig: Rig) -> None:
    for sequence in (1, 2, 3):
        send(rig, sequence, epoch=1)

    refused(rig, r"sequence 4 of 'p' leaves a gap; 1 comes next in epoch 2", 4, epoch=2)
    assert not send(rig, 1, epoch=2).is_repeat

    assert answers_kept(rig) == [1]
    for sequence in (1, 3, 4):
        refused(rig, r"'p' is in epoch 2, and epoch 1 is over; stop", sequence, epoch=1)
    assert send(rig, 1, epoch=2).is_repeat
    rig.assert_sound()


def test_epochs_may_leave_gaps_and_begin_anywhere(rig: Rig) -> None:
    for epoch in (0, 5, 1 << 60):
        assert not send(rig, 1, epoch=epoch).is_repeat

    assert len(rig.keys(Family.FORGET)) == 1
    rig.assert_sound()


def test_producers_do_not_mix_with_each_other_or_with_other_queues(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    send(rig, 1, who="p")
    send(rig, 2, who="p")

    assert not send(rig, 1, who="ö").is_repeat
    other = add(
        rig.engine,
        rig.engine.queues.get("other"),
        NewItems([b"x"], producer=Producer("p", 1, 1)),
        rig.now_ms,
    )

    assert not other.is_repeat
    assert (answers_kept(rig, "p"), answers_kept(rig, "ö")) == ([1, 2], [1])
    rig.assert_sound()


def test_producer_that_was_forgotten_begins_anew(rig: Rig) -> None:
    send(rig, 1)
    send(rig, 2)
    rig.now_ms += PRODUCER_KEEP_MS
    rig.sweep_all()

    refused(rig, "leaves a gap; 1 comes next", 3)
    assert not send(rig, 1).is_repeat
    rig.assert_sound()


@settings(max_examples=40, deadline=None)
@given(calls=st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5)), max_size=25))
def test_any_calls_are_stored_at_most_once_and_in_sequence(calls: list[tuple[int, int]]) -> None:
    rig = Rig()
    try:
        current, last = 0, 0
        answers: dict[tuple[int, int], list[bytes]] = {}
        for epoch, sequence in calls:
            is_next = sequence == (last if epoch == current else 0) + 1 and epoch >= current
            try:
                added = send(rig, sequence, epoch=epoch, count=1)
            except Aborted:
                assert not is_next
                assert epoch < current or (epoch, sequence) not in answers
                continue
            assert added.is_repeat == (not is_next)
            if is_next:
                current, last = epoch, sequence
                answers[epoch, sequence] = list(added.ids)
            assert answers[epoch, sequence] == list(added.ids)
        assert len(rig.keys(Family.ITEMS)) == len(answers)
        rig.assert_sound()
    finally:
        rig.close()


def test_repeat_with_another_number_of_items_is_refused(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b"], producer=Producer("p", 1, 1)))
    disk = rig.dump()

    with pytest.raises(Aborted, match="sequence 1 of 'p' had 2 items, and has 3 now"):
        rig.add_items(NewItems([b"a", b"b", b"c"], producer=Producer("p", 1, 1)))

    assert rig.dump() == disk


def test_repeat_with_other_contents_is_refused(rig: Rig) -> None:
    """Else a job whose rows come in another order would lose some, and store others twice."""
    rig.add_items(NewItems([b"a", b"b"], producer=Producer("p", 1, 1)))
    disk = rig.dump()

    with pytest.raises(Aborted, match="sequence 1 of 'p' had other contents, and has these now"):
        rig.add_items(NewItems([b"b", b"a"], producer=Producer("p", 1, 1)))

    assert rig.dump() == disk


def test_producer_and_key_of_the_same_text_are_forgotten_apart(rig: Rig) -> None:
    """They meet in the family of things to forget, at the same time."""
    configure_queue(rig.engine, QUEUE, QueueSettings(dedup_window_ms=PRODUCER_KEEP_MS), rig.now_ms)
    rig.add_items(NewItems([b"a"], keys=["same"], producer=Producer("same", 1, 1)))
    rig.assert_sound()
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)

    rig.now_ms += PRODUCER_KEEP_MS
    rig.sweep_all()

    assert rig.keys(Family.FORGET) == rig.keys(Family.KEYS) == rig.keys(Family.PRODUCERS) == []
    rig.assert_sound()
