"""Loads: begun, joined, staged part by part, aborted, and dropped when nobody calls."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from queueber.db.records.loads import LoadedRecord, decode_load, decode_part
from queueber.errors import Aborted, NotFound, ResourceExhausted, Unavailable
from queueber.ids import made_at_ms, origin_of, range_end
from queueber.limits import BATCH_KEEP_MS, HOUR_MS, LOAD_KEEP_MS
from queueber.model import LoadRef, NewItems, Origin, Part, PartRef, QueueSettings, Rows
from tests.support.load_rig import TOKEN, LoadRig
from tests.support.operations import (
    abort_load,
    cancel,
    configure_queue,
    create_queue,
    delete_queue,
    find_committed,
    finish_part,
    loads_under_way,
    receipt,
)
from tests.support.rig import QUEUE, refuse_write


@pytest.fixture
def rig() -> Iterator[LoadRig]:
    made = LoadRig()
    yield made
    made.close()


@pytest.fixture
def unchanged(rig: LoadRig) -> Callable[[], AbstractContextManager[None]]:
    """Around what must change nothing, on disk or in memory."""

    @contextmanager
    def check() -> Iterator[None]:
        before = rig.dump(), rig.memory(), rig.loads_memory()
        yield
        assert (rig.dump(), rig.memory(), rig.loads_memory()) == before

    return check


Unchanged = Callable[[], AbstractContextManager[None]]


def abort(rig: LoadRig, name: str = "load", epoch: int = 0) -> bool:
    return abort_load(rig.engine, rig.queue, LoadRef(name, epoch), rig.now_ms)


def part_of(rows: int, partition: int = 0, attempt: str = "a") -> Part:
    return Part(PartRef(partition, attempt), [], rows, 0, bytes(16), [0] * 10, rows, 0, 0)


def parts_on_disk(rig: LoadRig) -> list[Part]:
    return [decode_part(value) for key, value in rig.dump()["loads"] if len(key) > 4 + 17]


# --- begin ----------------------------------------------------------------------------------------


def test_begin_gives_a_range_of_ids_and_remembers_the_load(rig: LoadRig) -> None:
    load = rig.begin("load", epoch=3, timeout_ms=5000)

    assert load.ref == LoadRef("load", 3)
    assert load.started_at_ms == made_at_ms(load.id_head + bytes(7)) == rig.now_ms
    assert (load.seen_at_ms, load.forget_at_ms) == (rig.now_ms, rig.now_ms + 5000)
    assert load.dedup_window_ms == rig.queue.settings.dedup_window_ms
    assert (load.token, load.batch, load.rows, load.is_committing) == (TOKEN, 0, 0, False)
    assert rig.queue.counters.last_id == range_end(load.id_head)
    assert rig.engine.agenda.next_ms() == rig.now_ms + 5000
    assert list(loads_under_way(rig.engine, rig.queue).values()) == [load]
    rig.assert_sound()


def test_begin_survives_a_restart(rig: LoadRig) -> None:
    load = rig.begin(batch="b")

    rig.reopen()

    assert list(loads_under_way(rig.engine, rig.queue).values()) == [load]
    assert rig.add(b"later")[0] > range_end(load.id_head)
    rig.assert_sound()


def test_begin_again_joins_it_and_writes_only_that_somebody_called(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    disk = rig.dump()
    rig.now_ms += 10

    joined = rig.begin(batch="b", timeout_ms=2 * HOUR_MS)

    assert joined == replace(load, seen_at_ms=rig.now_ms)
    assert joined.timeout_ms == HOUR_MS
    ((_, stored),) = rig.dump()["loads"]
    assert decode_load(stored) == joined
    assert rig.dump() | {"loads": []} == disk | {"loads": []}


def test_begin_with_another_batch_is_refused(rig: LoadRig, unchanged: Unchanged) -> None:
    rig.begin(batch="b")

    for batch in ("", "c"):
        with (
            unchanged(),
            pytest.raises(Aborted, match=f"'load' adds to batch 'b', not to '{batch}'"),
        ):
            rig.begin(batch=batch)


def test_begin_with_a_batch_of_a_load_without_one_is_refused(
    rig: LoadRig, unchanged: Unchanged
) -> None:
    rig.begin()

    with unchanged(), pytest.raises(Aborted, match="adds to batch '', not to 'b'"):
        rig.begin(batch="b")


def test_begin_of_an_epoch_before_is_refused(rig: LoadRig, unchanged: Unchanged) -> None:
    rig.begin(epoch=2)

    with unchanged(), pytest.raises(Aborted, match="'load' is in epoch 2, and epoch 1 is over"):
        rig.begin(epoch=1)


def test_begin_of_a_later_epoch_drops_what_was_staged_before(rig: LoadRig) -> None:
    before = rig.begin(epoch=1, batch="old")
    rig.stage(before, Rows([b"a"]))

    load = rig.begin(epoch=2, batch="new")

    assert list(loads_under_way(rig.engine, rig.queue).values()) == [load]
    assert load.id_head > before.id_head
    assert parts_on_disk(rig) == []
    assert rig.engine.loads.stale_directories == [before.directory]
    with pytest.raises(NotFound):
        receipt(rig.engine, rig.queue, "old")
    with pytest.raises(NotFound, match="'load' is not under way"):
        finish_part(rig.engine, rig.queue, before.ref, part_of(1), rig.now_ms)
    rig.assert_sound()


def test_begin_of_one_that_was_committed_tells_what_became_of_it(
    rig: LoadRig, unchanged: Unchanged
) -> None:
    load = rig.begin(epoch=4)
    loaded = rig.commit(load, rig.stage(load, Rows([b"a"])))

    for epoch in (0, 3, 4):
        with unchanged():
            assert rig.begin_or_find(epoch=epoch) == loaded
    assert isinstance(loaded, LoadedRecord)
    assert rig.begin(epoch=5).rows == 0


def test_begin_beyond_the_limit_is_refused(
    rig: LoadRig, unchanged: Unchanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.loads.staging.LOADS_MAX", 2)
    rig.begin("a")
    rig.begin("b")

    with unchanged(), pytest.raises(ResourceExhausted, match="has 2 loads under way, the limit"):
        rig.begin("c")

    assert rig.begin("a").ref == LoadRef("a")
    assert abort(rig, "b")
    rig.begin("c")


def test_begin_of_a_later_epoch_at_the_limit_takes_the_place_of_the_one_before(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.loads.staging.LOADS_MAX", 1)
    rig.begin(epoch=1)

    assert rig.begin(epoch=2).ref.epoch == 2


def test_begin_that_the_disk_refuses_changes_nothing(
    rig: LoadRig, unchanged: Unchanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with unchanged(), pytest.raises(Unavailable):
        rig.begin(batch="b")


def test_begin_after_the_clock_stepped_back_has_the_time_of_its_ids(rig: LoadRig) -> None:
    rig.add(b"x")
    rig.now_ms -= 1000

    load = rig.begin()

    assert load.started_at_ms == rig.now_ms + 1000
    assert load.forget_at_ms == rig.now_ms + HOUR_MS
    loaded = rig.commit(load, rig.stage(load, Rows([b"a"], [load.started_at_ms - 500])))
    assert loaded.rows == 1
    assert rig.polled_contents() == [b"x", b"a"]
    rig.assert_sound()


def test_loads_of_two_names_have_ranges_of_their_own(rig: LoadRig) -> None:
    heads = [rig.begin(name).id_head for name in "abc"]

    assert heads == sorted(set(heads))


# --- batches --------------------------------------------------------------------------------------


def test_batch_of_a_load_is_not_complete_while_it_is_under_way(rig: LoadRig) -> None:
    rig.add_items(NewItems([b"x"], batch="b"))
    rig.begin(batch="b")
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)

    held = receipt(rig.engine, rig.queue, "b")

    assert (held.added, held.live, held.complete) == (1, 0, False)
    assert rig.queue.batches.finished == set()
    assert abort(rig)
    assert receipt(rig.engine, rig.queue, "b").complete
    assert rig.queue.batches.finished == {"b"}
    rig.assert_sound()


def test_batch_that_only_a_load_began_is_gone_with_it(rig: LoadRig) -> None:
    before = rig.stats()
    rig.begin(batch="b")
    assert receipt(rig.engine, rig.queue, "b").complete is False

    assert abort(rig)

    with pytest.raises(NotFound, match="knows no batch 'b'"):
        receipt(rig.engine, rig.queue, "b")
    assert rig.queue.batches.finished == {"b"}
    assert rig.stats() == before
    assert rig.dump()["forget"] == []
    rig.assert_sound()


def test_batch_held_by_two_loads_is_let_go_by_the_second(rig: LoadRig) -> None:
    rig.begin("one", batch="b")
    rig.begin("two", batch="b")

    assert abort(rig, "one")
    assert receipt(rig.engine, rig.queue, "b").complete is False
    assert abort(rig, "two")

    with pytest.raises(NotFound):
        receipt(rig.engine, rig.queue, "b")
    rig.assert_sound()


def test_batch_that_has_items_outlives_an_aborted_load(rig: LoadRig) -> None:
    rig.begin(batch="b")
    rig.add_items(NewItems([b"x"], batch="b"))

    assert abort(rig)

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.added, found.live, found.complete) == (1, 1, False)
    rig.assert_sound()


def test_batch_that_ended_is_not_forgotten_while_a_load_holds_it(rig: LoadRig) -> None:
    rig.add_items(NewItems([b"x"], batch="b"))
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)
    rig.begin(batch="b", timeout_ms=3 * BATCH_KEEP_MS)

    rig.now_ms += BATCH_KEEP_MS + 1
    rig.sweep_all()

    assert receipt(rig.engine, rig.queue, "b").added == 1
    rig.assert_sound()
    assert abort(rig)
    rig.assert_sound()
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    with pytest.raises(NotFound):
        receipt(rig.engine, rig.queue, "b")
    rig.assert_sound()


@pytest.mark.parametrize("slice_items", [1, 100])
@pytest.mark.parametrize("timeout_ms", [BATCH_KEEP_MS - 5, BATCH_KEEP_MS, BATCH_KEEP_MS + 5])
def test_batch_and_the_load_that_holds_it_may_come_due_together(
    rig: LoadRig, timeout_ms: int, slice_items: int
) -> None:
    """In one slice: the batch must be judged as the end of the load has left it."""
    rig.add_items(NewItems([b"x"], batch="b"))
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)
    rig.begin(batch="b", timeout_ms=timeout_ms)

    rig.now_ms += BATCH_KEEP_MS + 10
    rig.sweep_all(slice_items)

    assert receipt(rig.engine, rig.queue, "b").complete
    rig.assert_sound()
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all(slice_items)
    with pytest.raises(NotFound):
        receipt(rig.engine, rig.queue, "b")
    assert rig.queue.counters.forgets == 0
    rig.assert_sound()


# --- staging --------------------------------------------------------------------------------------


def test_finish_part_counts_its_rows_and_shows_no_item(rig: LoadRig) -> None:
    load = rig.begin()

    rig.stage(load, Rows([b"a", b"b"]), partition=0)
    rig.stage(load, Rows([b"c"]), partition=7)

    (staged,) = loads_under_way(rig.engine, rig.queue).values()
    assert staged.rows == 3
    assert rig.stats().ready == 0
    assert not rig.poll().ids
    assert [part.ref.partition for part in parts_on_disk(rig)] == [0, 7]
    rig.assert_sound()


def test_finish_part_again_counts_it_once(rig: LoadRig) -> None:
    load = rig.begin()
    for rows in (3, 3, 5):
        finish_part(rig.engine, rig.queue, load.ref, part_of(rows), rig.now_ms)

    (staged,) = loads_under_way(rig.engine, rig.queue).values()

    assert staged.rows == 5
    assert parts_on_disk(rig) == [part_of(5)]
    rig.assert_sound()


def test_finish_part_of_another_attempt_stands_beside_it(rig: LoadRig) -> None:
    load = rig.begin()
    for attempt, rows in (("a", 3), ("b", 4)):
        finish_part(rig.engine, rig.queue, load.ref, part_of(rows, attempt=attempt), rig.now_ms)

    (staged,) = loads_under_way(rig.engine, rig.queue).values()

    assert staged.rows == 7
    assert len(parts_on_disk(rig)) == 2
    rig.assert_sound()


def test_finish_part_survives_a_restart(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    ref = rig.stage(load, Rows([b"a", b"b"]))
    before = dict(loads_under_way(rig.engine, rig.queue))

    rig.reopen()

    assert loads_under_way(rig.engine, rig.queue) == before
    assert rig.commit(load, ref).rows == 2
    rig.assert_sound()


@pytest.mark.parametrize("epoch", [0, 2])
def test_finish_part_of_another_epoch_is_not_found(
    rig: LoadRig, unchanged: Unchanged, epoch: int
) -> None:
    rig.begin(epoch=1)

    with unchanged(), pytest.raises(NotFound, match="'load' is not under way in queue 'q'"):
        finish_part(rig.engine, rig.queue, LoadRef("load", epoch), part_of(1), rig.now_ms)


def test_finish_part_of_a_load_that_is_being_committed_is_refused(rig: LoadRig) -> None:
    load = rig.begin()
    steps = rig.commit_steps(load, rig.stage(load, Rows([b"a"], keys=["k"])))
    next(steps)
    disk = rig.dump()

    with pytest.raises(Aborted, match="'load' is being committed; nothing is added"):
        finish_part(rig.engine, rig.queue, load.ref, part_of(1), rig.now_ms)

    assert rig.dump() == disk


def test_finish_part_that_the_disk_refuses_changes_nothing(
    rig: LoadRig, unchanged: Unchanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = rig.begin()
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with unchanged(), pytest.raises(Unavailable):
        finish_part(rig.engine, rig.queue, load.ref, part_of(3), rig.now_ms)


# --- adds that tell their origin ------------------------------------------------------------------


def with_origin(count: int, load: LoadRef, row: int = 0, keys: tuple[str, ...] = ()) -> NewItems:
    return NewItems([b"x"] * count, keys=keys, origin=Origin(load, partition=7, row=row))


def test_add_with_an_origin_gives_ids_that_tell_it(rig: LoadRig) -> None:
    load = rig.begin()

    ids = rig.add_items(with_origin(3, load.ref, row=40)).ids

    assert [origin_of(each) for each in ids] == [(7, 40), (7, 41), (7, 42)]
    assert min(ids) > range_end(load.id_head)
    assert rig.poll(5).ids == ids
    rig.assert_sound()


def test_add_with_an_origin_tells_the_row_of_those_that_their_keys_let_in(rig: LoadRig) -> None:
    load = rig.begin()
    rig.add_items(NewItems([b"first"], keys=["b"]))

    added = rig.add_items(with_origin(4, load.ref, row=10, keys=("a", "b", "a", "c")))

    assert added.duplicates == [False, True, True, False]
    assert [origin_of(i) for i in added.ids] == [(7, 10), None, (7, 10), (7, 13)]
    rig.assert_sound()


def test_add_with_the_same_origin_twice_adds_twice(rig: LoadRig) -> None:
    load = rig.begin()

    ids = [
        *rig.add_items(with_origin(2, load.ref)).ids,
        *rig.add_items(with_origin(2, load.ref)).ids,
    ]

    assert ids == sorted(set(ids))


def test_add_with_an_origin_in_a_load_that_ended_is_refused(
    rig: LoadRig, unchanged: Unchanged
) -> None:
    load = rig.begin()
    rig.commit(load)

    with unchanged(), pytest.raises(NotFound, match="'load' is not under way"):
        rig.add_items(with_origin(1, load.ref))


def test_add_with_an_origin_keeps_the_load_alive(rig: LoadRig) -> None:
    load = rig.begin(timeout_ms=1000)
    rig.now_ms += 900
    rig.add_items(with_origin(1, load.ref))

    rig.now_ms += 900
    rig.sweep_all()

    assert rig.engine.loads.of(rig.queue).staging(load.ref).record.ref == load.ref


# --- abort and expiry -----------------------------------------------------------------------------


def test_abort_leaves_nothing_but_the_newest_id(rig: LoadRig) -> None:
    before = rig.dump()
    load = rig.begin(batch="b")
    rig.stage(load, Rows([b"a"], keys=["k"]))

    assert abort(rig)

    after = rig.dump()
    assert {**after, "counters": []} == {**before, "counters": []}
    assert loads_under_way(rig.engine, rig.queue) == {}
    assert rig.engine.loads.stale_directories == [load.directory]
    assert not abort(rig)
    rig.assert_sound()


@pytest.mark.parametrize(("name", "epoch"), [("load", 0), ("load", 2), ("other", 1)])
def test_abort_of_what_is_not_under_way_does_nothing(
    rig: LoadRig, unchanged: Unchanged, name: str, epoch: int
) -> None:
    rig.begin(epoch=1)

    with unchanged():
        assert abort(rig, name, epoch) is False


def test_abort_of_a_committed_load_does_nothing(rig: LoadRig, unchanged: Unchanged) -> None:
    rig.load(Rows([b"a"]))

    with unchanged():
        assert abort(rig) is False


def test_abort_while_it_is_committed_is_refused(rig: LoadRig) -> None:
    load = rig.begin()
    ref = rig.stage(load, Rows([b"a"], keys=["k"]))
    steps = rig.commit_steps(load, ref)
    next(steps)

    with pytest.raises(Aborted, match="can no longer be aborted"):
        abort(rig)
    with pytest.raises(Aborted, match="can no longer be aborted"):
        rig.begin(epoch=1)

    steps.close()
    assert abort(rig)


def test_abort_that_the_disk_refuses_changes_nothing(
    rig: LoadRig, unchanged: Unchanged, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = rig.begin(batch="b")
    rig.stage(load, Rows([b"a"]))
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with unchanged(), pytest.raises(Unavailable):
        abort(rig)


def test_load_that_nobody_calls_is_dropped_at_its_time(rig: LoadRig) -> None:
    load = rig.begin(batch="b", timeout_ms=1000)
    rig.stage(load, Rows([b"a"]))

    rig.now_ms += 999
    rig.sweep_all()
    assert len(loads_under_way(rig.engine, rig.queue)) == 1
    rig.now_ms += 1
    rig.sweep_all()

    assert loads_under_way(rig.engine, rig.queue) == {}
    assert rig.dump()["loads"] == []
    assert rig.engine.loads.stale_directories == [load.directory]
    with pytest.raises(NotFound, match="dropped because nobody called in time"):
        rig.commit(load)
    with pytest.raises(NotFound):
        receipt(rig.engine, rig.queue, "b")
    rig.assert_sound()


@pytest.mark.parametrize("call", ["begin", "stage"])
def test_load_that_somebody_calls_is_kept_for_as_long_again(rig: LoadRig, call: str) -> None:
    load = rig.begin(timeout_ms=1000)
    rig.now_ms += 600
    rig.begin() if call == "begin" else rig.stage(load, Rows([b"a"]))

    rig.now_ms += 900
    rig.sweep_all()
    assert len(loads_under_way(rig.engine, rig.queue)) == 1
    assert rig.engine.agenda.next_ms() == load.started_at_ms + 1600
    rig.assert_sound()
    rig.now_ms += 100
    rig.sweep_all()

    assert loads_under_way(rig.engine, rig.queue) == {}
    rig.assert_sound()


def test_load_that_was_put_off_is_aborted_without_a_trace(rig: LoadRig) -> None:
    rig.begin(timeout_ms=1000)
    rig.now_ms += 600
    rig.begin()
    rig.now_ms += 900
    rig.sweep_all()

    assert abort(rig)

    assert rig.dump()["forget"] == []
    assert rig.queue.counters.forgets == 0


def test_committed_load_is_remembered_for_its_time_and_forgotten_then(rig: LoadRig) -> None:
    loaded = rig.load(Rows([b"a"]))
    ref = LoadRef("load")

    rig.now_ms += LOAD_KEEP_MS - 1
    rig.sweep_all()
    assert find_committed(rig.engine, rig.queue, ref) == loaded
    rig.now_ms += 1
    rig.sweep_all()

    assert find_committed(rig.engine, rig.queue, ref) is None
    assert rig.dump()["loads"] == rig.dump()["forget"] == []
    rig.assert_sound()


def test_next_epoch_of_a_committed_load_is_remembered_in_its_place(rig: LoadRig) -> None:
    for epoch in range(3):
        load = rig.begin(epoch=epoch)
        loaded = rig.commit(load, rig.stage(load, Rows([b"a"] * (epoch + 1))))
        rig.now_ms += 5 * (epoch % 2)
        rig.assert_sound()

    assert find_committed(rig.engine, rig.queue, LoadRef("load")) == loaded
    assert len(rig.dump()["loads"]) == len(rig.dump()["forget"]) == 1


# --- queues ---------------------------------------------------------------------------------------


def test_loads_of_a_deleted_queue_are_gone_with_it(rig: LoadRig) -> None:
    load = rig.begin(batch="b")
    rig.stage(load, Rows([b"a"]))
    queue = rig.queue
    delete_queue(rig.engine, QUEUE)
    create_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)

    assert rig.dump()["loads"] == []
    assert rig.engine.loads.stale_directories == [load.directory]
    with pytest.raises(NotFound):
        rig.commit(load)
    assert queue.is_deleted
    assert rig.begin().id_head > load.id_head
    rig.assert_sound()


def test_load_keeps_the_window_that_the_queue_had_when_it_began(rig: LoadRig) -> None:
    load = rig.begin()
    configure_queue(rig.engine, QUEUE, QueueSettings(dedup_window_ms=0), rig.now_ms)

    rig.commit(load, rig.stage(load, Rows([b"a"], keys=["k"])))

    assert len(rig.dump()["keys"]) == 1
    rig.assert_sound()
    cancel(rig.engine, rig.queue, rig.stored_ids(), rig.now_ms)
    rig.now_ms += load.dedup_window_ms
    rig.sweep_all()
    assert rig.dump()["keys"] == []
    rig.assert_sound()


def test_join_with_a_shorter_timeout_shortens_it_for_all(rig: LoadRig) -> None:
    begun = rig.begin(timeout_ms=HOUR_MS)
    rig.now_ms += 1000

    joined = rig.begin(timeout_ms=5000)

    assert (joined.id_head, joined.timeout_ms) == (begun.id_head, 5000)
    rig.assert_sound()
    rig.now_ms += 4999
    rig.sweep_all()
    assert len(loads_under_way(rig.engine, rig.queue)) == 1
    rig.now_ms += 1
    rig.sweep_all()
    assert loads_under_way(rig.engine, rig.queue) == {}
    rig.assert_sound()


def test_join_with_a_longer_timeout_changes_nothing(rig: LoadRig) -> None:
    rig.begin(timeout_ms=5000)
    disk = rig.dump()

    assert rig.begin(timeout_ms=HOUR_MS).timeout_ms == 5000

    assert rig.dump() == disk
