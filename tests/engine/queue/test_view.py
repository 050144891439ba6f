"""Views: one way of looking, at the queue as it is and as it was."""

from itertools import pairwise

import pytest

from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import View
from queueber.engine.queue.results import results_of
from queueber.limits import MIB
from queueber.model import Column, ItemInfo, ItemState, NewItems
from tests.engine.making import make_dead
from tests.support.operations import acknowledge, cancel, delete_queue, live_view, take_view, trim
from tests.support.rig import Rig


def ids_of(view: View, state: ItemState, *, batch: str = "") -> list[bytes]:
    return [each.id for each in look(view, state, b"", 1000, MIB, batch=batch)[0]]


def test_taken_view_keeps_every_state_as_it_was(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"dead"]))
    held = rig.add(b"held")
    lease = rig.poll().lease_id
    delayed = rig.add(b"delayed", delays_ms=[1000])
    ready = rig.add(b"ready")
    view, snapshot = take_view(rig.engine, rig.queue)
    whole = [look(view, state, b"", 10, MIB) for state in ItemState]

    rig.now_ms += 2000
    rig.remove(held, lease)
    cancel(rig.engine, rig.queue, [*ready, *dead], rig.now_ms)
    rig.sweep_all()
    rig.add(b"new")

    assert [ids_of(view, state) for state in ItemState] == [ready, delayed, held, dead]
    assert [look(view, state, b"", 10, MIB) for state in ItemState] == whole
    assert ids_of(live_view(rig.engine, rig.queue), ItemState.DEAD) == []
    snapshot.close()


def test_taken_view_keeps_results_that_are_trimmed_later_and_shows_none_that_come(
    rig: Rig,
) -> None:
    rig.add(b"1", b"2")
    polled = rig.poll(2)
    rig.complete(list(polled.ids), polled.lease_id, [b"r1", b"r2"])
    view, _ = take_view(rig.engine, rig.queue)

    acknowledge(rig.store, rig.queue.results, "reader", 2)
    assert trim(rig.store, rig.queue.results, rig.now_ms, age_ms=0, bytes_max=0) == 2
    rig.add(b"3")
    polled = rig.poll()
    rig.complete(list(polled.ids), polled.lease_id, [b"r3"])

    found = results_of(view, 0, 10, MIB)
    assert [each.result for each in found.results] == [b"r1", b"r2"]
    assert (found.next_offset, found.missed) == (2, 0)
    assert results_of(live_view(rig.engine, rig.queue), 0, 10, MIB).missed == 2


def test_taken_view_shows_the_items_of_a_block_that_was_rewritten_or_deleted_since(
    rig: Rig,
) -> None:
    contents = [b"%d" % n * 100 for n in range(10)]
    ids = rig.add(*contents)
    view, snapshot = take_view(rig.engine, rig.queue)
    ((_, whole),) = rig.dump()["items"]
    cancel(rig.engine, rig.queue, ids[1:], rig.now_ms)
    ((_, rewritten),) = rig.dump()["items"]
    assert len(rewritten) < len(whole) // 4
    later, later_snapshot = take_view(rig.engine, rig.queue)
    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)

    shown = [
        [(each.id, each.contents) for each in look(each_view, ItemState.READY, b"", 100, MIB)[0]]
        for each_view in (view, later, live_view(rig.engine, rig.queue))
    ]

    assert shown == [list(zip(ids, contents, strict=True)), [(ids[0], contents[0])], []]
    snapshot.close()
    later_snapshot.close()


def test_taken_view_outlives_its_queue(rig: Rig) -> None:
    ids = rig.add(b"a")
    view, _ = take_view(rig.engine, rig.queue)

    delete_queue(rig.engine, rig.queue.name)

    assert ids_of(view, ItemState.READY) == ids


def test_batch_of_a_taken_view_is_found_by_name_and_told_by_name(rig: Rig) -> None:
    red = list(rig.add_items(NewItems([b"1"], batch="red")).ids)
    green = list(rig.add_items(NewItems([b"2"], batch="green")).ids)
    view, _ = take_view(rig.engine, rig.queue)

    assert ids_of(view, ItemState.READY) == red + green
    assert ids_of(view, ItemState.READY, batch="red") == red
    assert ids_of(view, ItemState.READY, batch="green") == green
    assert ids_of(view, ItemState.READY, batch="blue") == []
    assert [each.batch for each in look(view, ItemState.READY, b"", 9, MIB)[0]] == ["red", "green"]


# --- what is asked for ----------------------------------------------------------------------------


def test_look_for_a_batch_goes_only_so_far_and_says_where_to_go_on(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.peek.SCAN_LOOKED_AT_MAX", 4)
    rig.add(*[b"x"] * 9)
    wanted = list(rig.add_items(NewItems([b"y"], batch="b")).ids)
    rig.add(*[b"x"] * 3)
    view = live_view(rig.engine, rig.queue)

    pages: list[list[bytes]] = []
    after = b""
    while True:
        page, after = look(view, ItemState.READY, after, 5, MIB, batch="b")
        pages.append([each.id for each in page])
        if not after:
            break

    assert pages == [[], [], wanted, []]


def test_look_for_a_batch_stops_at_its_limit_and_loses_nothing(rig: Rig) -> None:
    ids = list(rig.add_items(NewItems([b"x"] * 7, batch="b")).ids)
    view = live_view(rig.engine, rig.queue)

    first, after = look(view, ItemState.READY, b"", 3, MIB, batch="b")
    rest, end = look(view, ItemState.READY, after, 9, MIB, batch="b")

    assert [each.id for each in first + rest] == ids
    assert (len(first), end) == (3, b"")


@pytest.mark.parametrize("state", ItemState, ids=lambda state: state.name)
def test_ranges_that_meet_have_every_item_once(rig: Rig, state: ItemState) -> None:
    """At the cursor of a page, and at one that is none: the first bytes will do."""
    make_dead(rig, NewItems([b"x"] * 8))
    rig.add(*[b"x"] * 8)
    rig.poll(8)
    rig.add(*[b"x"] * 8, delays_ms=[1000 + n for n in range(8)])
    rig.add_items(NewItems([b"x"] * 8, priorities=[1, 1, 9, 9, 5, 5, 5, 5]))
    view = live_view(rig.engine, rig.queue)
    everything, _ = look(view, state, b"", 100, MIB)
    cursors = [look(view, state, b"", count, MIB)[1] for count in (2, 5)]

    def between(after: bytes, before: bytes) -> list[ItemInfo]:
        found: list[ItemInfo] = []
        while True:
            page, after = look(view, state, after, 2, MIB, before=before)
            found += page
            if not after:
                return found

    for cuts in (cursors, [cursors[0] + b"\0", cursors[1] + b"\0"], [cursors[0][:9]]):
        ends = [b"", *cuts, b""]
        parts = [between(a, b) for a, b in pairwise(ends)]
        whole = [each for part in parts for each in part]
        assert whole == everything


def test_look_without_columns_does_not_read_the_item(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.add_items(NewItems([b"x" * 1000], keys=["k"], attributes=[{"a": "1"}], batch="b"))
    view, _ = take_view(rig.engine, rig.queue)
    everything = frozenset(Column)
    asked: list[object] = []
    get = view.reads.get

    class Counting:
        walk = staticmethod(view.reads.walk)

        def get(self, family: object, key: bytes) -> bytes | None:
            asked.append(family)
            return get(family, key)  # type: ignore[arg-type]

    counted = View(Counting(), *[getattr(view, f) for f in View.__slots__[1:]])  # type: ignore[arg-type]
    ((bare,), _) = look(counted, ItemState.READY, b"", 9, MIB, without=everything)
    ((keyed,), _) = look(view, ItemState.READY, b"", 9, MIB, without=everything - {Column.KEYS})

    assert asked == []
    assert (bare.contents, bare.key, bare.batch, bare.attributes) == (b"", "", "", {})
    assert (keyed.contents, keyed.key, keyed.batch, keyed.attributes) == (b"", "k", "", {})
