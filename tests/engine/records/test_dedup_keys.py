"""Keys: within the window a second add with the same key stores nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.keys import due_part, text_digest
from queueber.db.records.remembered import FORGET_KEY
from queueber.errors import ResourceExhausted
from queueber.limits import KEPT_KEYS_LOOK_MS
from queueber.model import Added, NewItems, QueueSettings
from tests.support.operations import add, cancel, configure_queue, create_queue, receipt
from tests.support.rig import QUEUE, Rig

WINDOW_MS = 1000


@pytest.fixture(autouse=True)
def window(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(dedup_window_ms=WINDOW_MS), rig.now_ms)


def add_keys(rig: Rig, *keys: str) -> Added:
    return rig.add_items(NewItems([key.encode() for key in keys], keys=keys))


def test_add_with_a_key_again_gives_the_first_id_and_stores_nothing(rig: Rig) -> None:
    first = add_keys(rig, "k")
    items, keys, forget = (rig.dump()[name] for name in ("items", "keys", "forget"))
    rig.now_ms += WINDOW_MS - 1

    again = add_keys(rig, "k")

    assert (first.duplicates, again.duplicates) == ((), [True])
    assert again.ids == first.ids
    assert (rig.dump()["items"], rig.dump()["keys"], rig.dump()["forget"]) == (items, keys, forget)
    assert (rig.stats().added_total, rig.stats().duplicates_total) == (1, 1)
    rig.assert_sound()


def test_add_with_some_keys_known_stores_the_others(rig: Rig) -> None:
    (known,) = add_keys(rig, "k").ids

    added = rig.add_items(
        NewItems(
            [b"1", b"2", b"3", b"4"],
            delays_ms=[0, 0, 50, 0],
            priorities=[1, 2, 3, 4],
            keys=["new", "k", "newer", ""],
            attributes=[{"n": "1"}, {"n": "2"}, {"n": "3"}, {"n": "4"}],
        )
    )

    assert added.duplicates == [False, True, False, False]
    assert added.ids[1] == known
    stored = [added.ids[0], added.ids[2], added.ids[3]]
    assert rig.stored_ids() == [known, *stored]
    assert rig.keys(Family.DELAYED) == [rig.queue.prefix + due_part(rig.now_ms + 50, stored[1])]
    polled = rig.poll(10)
    assert polled.contents == [b"k", b"4", b"1"]
    assert polled.details.attributes == [{}, {"n": "4"}, {"n": "1"}]
    rig.assert_sound()


def test_add_with_a_key_twice_in_one_call_stores_the_first(rig: Rig) -> None:
    added = rig.add_items(NewItems([b"first", b"x", b"second"], keys=["k", "", "k"]))

    assert added.duplicates == [False, False, True]
    assert added.ids[0] == added.ids[2] != added.ids[1]
    assert rig.poll(3).contents == [b"first", b"x"]
    rig.assert_sound()


def test_items_without_a_key_are_never_duplicates(rig: Rig) -> None:
    assert add_keys(rig, "", "", "k").duplicates == ()
    assert add_keys(rig, "", "").duplicates == ()

    assert len(rig.stored_ids()) == 5
    assert rig.keys(Family.KEYS) == [rig.queue.prefix + text_digest("k")]


@pytest.mark.parametrize("is_swept", [False, True])
def test_add_with_a_key_after_its_window_stores_a_new_item(rig: Rig, is_swept: bool) -> None:
    """Whether or not the sweeper has been there must make no difference."""
    first = add_keys(rig, "k")
    rig.now_ms += WINDOW_MS
    if is_swept:
        rig.sweep_all()

    again = add_keys(rig, "k")

    assert again.duplicates == ()
    assert again.ids[0] > first.ids[0]
    # The first window has an entry of its own, until the sweeper finds the key in a later one. If
    # it has been there, it comes again because the first item is.
    later_ms = rig.now_ms + KEPT_KEYS_LOOK_MS if is_swept else rig.now_ms
    windows = sorted([(later_ms, first.ids[0]), (rig.now_ms + WINDOW_MS, again.ids[0])])
    assert rig.dump()["forget"] == [
        (rig.queue.prefix + due_part(at_ms, item_id), FORGET_KEY + text_digest("k"))
        for at_ms, item_id in windows
    ]
    rig.assert_sound()
    rig.sweep_all()
    rig.now_ms += 1
    assert add_keys(rig, "k").ids == again.ids, "the window begins anew"
    left = windows if is_swept else windows[1:]
    assert rig.keys(Family.FORGET) == [rig.queue.prefix + due_part(*each) for each in left]
    rig.assert_sound()


def test_window_that_is_over_stays_over_when_the_clock_steps_back(rig: Rig) -> None:
    """Once the sweeper has been there; also that of a key whose item is in the queue."""
    there, gone = add_keys(rig, "there", "gone").ids
    cancel(rig.engine, rig.queue, [gone], rig.now_ms)
    rig.now_ms += WINDOW_MS
    rig.sweep_all()
    rig.now_ms -= WINDOW_MS // 2

    added = add_keys(rig, "there", "gone")

    assert added.duplicates == ()
    assert not {there, gone} & set(added.ids)
    assert add_keys(rig, "there", "gone").ids == added.ids, "the windows begin anew"
    rig.assert_sound()


@pytest.mark.parametrize("end", ["complete", "remove", "fail", "cancel"])
def test_key_does_not_care_what_became_of_its_item(rig: Rig, end: str) -> None:
    first = add_keys(rig, "k")
    polled = rig.poll()
    if end == "complete":
        rig.complete(polled.ids, polled.lease_id)
    elif end == "remove":
        rig.remove(polled.ids, polled.lease_id)
    elif end == "fail":
        rig.fail(polled.ids, polled.lease_id)
    else:
        cancel(rig.engine, rig.queue, polled.ids, rig.now_ms)

    again = add_keys(rig, "k")

    assert (again.ids, again.duplicates) == (first.ids, [True])
    rig.assert_sound()


def test_keys_of_one_queue_are_none_of_another(rig: Rig) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    add_keys(rig, "k")

    other = add(
        rig.engine, rig.engine.queues.get("other"), NewItems([b"x"], keys=["k"]), rig.now_ms
    )

    assert other.duplicates == ()
    rig.assert_sound()


def test_window_of_zero_keeps_no_keys(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(dedup_window_ms=0), rig.now_ms)

    ids = [*add_keys(rig, "k", "k").ids, *add_keys(rig, "k").ids]

    assert len(set(ids)) == 3
    assert rig.keys(Family.KEYS) == rig.keys(Family.FORGET) == []
    assert list(rig.poll(3).details.keys) == ["k"] * 3
    rig.assert_sound()


def test_add_with_a_key_past_a_limit_is_refused_whole_and_forgets_the_key(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(items_max=1), rig.now_ms)
    add_keys(rig, "k")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted):
        add_keys(rig, "k", "l")

    assert rig.dump() == disk
    assert rig.memory() == memory
    assert add_keys(rig, "k").duplicates == [True], "a duplicate needs no room"


def test_duplicates_do_not_count_in_a_batch(rig: Rig) -> None:
    add_keys(rig, "k")

    rig.add_items(NewItems([b"x", b"y"], keys=["k", "l"], batch="b"))
    rig.add_items(NewItems([b"x"], keys=["k"], batch="c"))

    of_some, of_none = (receipt(rig.engine, rig.queue, batch) for batch in ("b", "c"))
    assert (of_some.added, of_some.complete) == (1, False)
    assert (of_none.added, of_none.complete) == (0, True)
    rig.assert_sound()


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.lists(st.sampled_from(["", "a", "b", "ä"]), min_size=1), st.integers(0, 700)),
        max_size=8,
    )
)
def test_adds_with_any_keys_store_each_key_once_a_window(
    steps: list[tuple[list[str], int]],
) -> None:
    rig = Rig(QueueSettings(dedup_window_ms=WINDOW_MS))
    try:
        known: dict[str, tuple[bytes, int]] = {}
        for keys, passed_ms in steps:
            rig.now_ms += passed_ms
            added = add_keys(rig, *keys)
            duplicates = added.duplicates or [False] * len(keys)
            for key, item_id, is_duplicate in zip(keys, added.ids, duplicates, strict=True):
                first, until_ms = known.get(key, (b"", 0))
                assert is_duplicate == (key != "" and until_ms > rig.now_ms)
                if is_duplicate:
                    assert item_id == first
                elif key:
                    known[key] = (item_id, rig.now_ms + WINDOW_MS)
            rig.assert_sound()
    finally:
        rig.close()
