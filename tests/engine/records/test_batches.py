"""Batches: sums and digests that prove that each item ended exactly once."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.remembered import (
    DIGEST_MODULUS,
    BatchRecord,
    decode_batch,
    encode_batch,
    ids_digest,
)
from queueber.engine.records.batches import batch_reference
from queueber.errors import FailedPrecondition, InvariantViolation, NotFound, ResourceExhausted
from queueber.ids import ids_up_to, shifted
from queueber.limits import BATCH_KEEP_MS, BATCH_NUMBER_MAX
from queueber.model import NewItems, QueueSettings, Receipt
from tests.engine.making import make_dead
from tests.support.operations import (
    cancel,
    configure_queue,
    forget_batch,
    forget_batches,
    receipt,
    redrive_first,
)
from tests.support.rig import Rig


def add_to(rig: Rig, batch: str, count: int = 1) -> list[bytes]:
    return list(rig.add_items(NewItems([b"x"] * count, batch=batch)).ids)


def digest(ids: Sequence[bytes]) -> bytes:
    """By its definition, an id at a time."""
    total = 0
    for x in map(int.from_bytes, ids):
        total += C1 * x + C2 * x * x + C3 * x * x * x
    return (total % MODULUS).to_bytes(16)


# --- digests --------------------------------------------------------------------------------------

C1 = 0x9E3779B97F4A7C15F39CC0605CEDC835
C2 = 0xC2B2AE3D27D4EB4F165667B19E3779F9
C3 = 0xD6E8FEB86659FD93A0761D6478BD642F
MODULUS = (1 << 128) - 159
ID = bytes.fromhex("018bcfe568007abc9234567890abcdef")

single_ids = st.lists(st.binary(min_size=16, max_size=16), max_size=20)
last_ids = st.integers(1000, (1 << 62) - 1).map(lambda n: ID[:8] + n.to_bytes(8))


def digest_of(ids: list[bytes]) -> int:
    return sum(ids_digest(item_id, 1) for item_id in ids) % DIGEST_MODULUS


@given(ids=single_ids, seed=st.randoms())
def test_digest_does_not_depend_on_the_order(ids: list[bytes], seed: Random) -> None:
    shuffled = ids.copy()
    seed.shuffle(shuffled)

    assert digest_of(shuffled) == digest_of(ids) == int.from_bytes(digest(ids))


@given(last=last_ids, count=st.integers(0, 600))
def test_digest_of_consecutive_ids_is_the_sum_of_each(last: bytes, count: int) -> None:
    ids = ids_up_to(last, count)

    assert ids_digest(last, count).to_bytes(16) == digest(ids)


@given(last=last_ids, count=st.integers(1, 600), data=st.data())
def test_digest_of_parts_adds_up_and_another_id_makes_another(
    last: bytes, count: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, count))
    parts = ids_digest(shifted(last, at - count), at) + ids_digest(last, count - at)

    assert parts % DIGEST_MODULUS == ids_digest(last, count)
    assert ids_digest(last, count + 1) != ids_digest(last, count)
    assert ids_digest(shifted(last, 1), count) != ids_digest(last, count)


def test_digest_of_nothing_is_zero_and_of_some_has_its_golden_value() -> None:
    """Clients may compute it too: it must not change."""
    assert ids_digest(ID, 0) == 0
    assert f"{ids_digest(ID, 1):032x}" == "c4a7947508fc360b09b51fe5ea234ec7"
    assert f"{ids_digest(ID, 512):032x}" == "5f751e863cc05742272415e84cb40cf9"


# --- the receipt ----------------------------------------------------------------------------------


def test_receipt_follows_the_items_of_the_batch_to_their_ends(rig: Rig) -> None:
    dead = make_dead(rig, NewItems([b"x"], batch="b"))
    ids = dead + add_to(rig, "b", 3)
    polled = rig.poll(2)
    rig.complete(polled.ids[:1], polled.lease_id)
    rig.remove(polled.ids[1:], polled.lease_id)

    assert receipt(rig.engine, rig.queue, "b") == Receipt(
        batch="b",
        added=4,
        done=2,
        dead=1,
        live=1,
        added_digest=digest(ids),
        done_digest=digest(ids[1:3]),
        dead_digest=digest(dead),
        complete=False,
    )
    cancel(rig.engine, rig.queue, ids[3:], rig.now_ms)
    assert receipt(rig.engine, rig.queue, "b") == Receipt(
        batch="b",
        added=4,
        done=2,
        dead=2,
        live=0,
        added_digest=digest(ids),
        done_digest=digest(ids[1:3]),
        dead_digest=digest([dead[0], ids[3]]),
        complete=True,
    )
    rig.assert_sound()


def test_receipts_of_batches_do_not_mix(rig: Rig) -> None:
    add_to(rig, "a", 2)
    add_to(rig, "b", 3)
    rig.add(b"of none")
    polled = rig.poll(6)

    rig.complete(polled.ids, polled.lease_id)

    assert [receipt(rig.engine, rig.queue, name).done for name in ("a", "b")] == [2, 3]
    assert rig.queue.batches.finished == {"a", "b"}
    assert rig.stats().batches == 2
    rig.assert_sound()


def test_receipt_of_an_unknown_batch_is_not_found_and_says_what_that_means(rig: Rig) -> None:
    with pytest.raises(NotFound, match=r"'q' knows no batch 'b'; it begins with its first add"):
        receipt(rig.engine, rig.queue, "b")


def test_batch_that_ended_goes_on_when_more_is_added(rig: Rig) -> None:
    add_to(rig, "b")
    polled = rig.poll()
    rig.complete(polled.ids, polled.lease_id)
    assert receipt(rig.engine, rig.queue, "b").complete

    add_to(rig, "b")

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.added, found.live, found.complete) == (2, 1, False)
    assert rig.stats().batches == 1
    rig.assert_sound()


def test_batch_survives_a_restart(rig: Rig) -> None:
    add_to(rig, "b", 2)
    before = receipt(rig.engine, rig.queue, "b")

    rig.reopen()

    assert receipt(rig.engine, rig.queue, "b") == before
    assert rig.poll().details.batches == ["b"]


# --- names and numbers ----------------------------------------------------------------------------


def test_numbers_of_batches_are_never_used_again(rig: Rig) -> None:
    make_dead(rig, NewItems([b"x"], batch="old"))
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    assert rig.stats().batches == 0

    add_to(rig, "new")

    assert rig.keys(Family.BATCHES) == [rig.queue.prefix + b"\0\0\0\2"]
    assert batch_reference(2) == b"\0\0\0\2" + bytes(12)
    rig.assert_sound()


def test_batches_past_the_limit_are_refused_and_change_nothing(rig: Rig) -> None:
    configure_queue(rig.engine, rig.queue.name, QueueSettings(batches_max=2), rig.now_ms)
    add_to(rig, "a")
    add_to(rig, "b")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"'q' remembers 2 batches, and the limit"):
        add_to(rig, "c")

    assert rig.dump() == disk
    assert rig.memory() == memory
    add_to(rig, "a")


def test_queue_without_a_limit_of_batches_has_one_of_numbers(rig: Rig) -> None:
    configure_queue(rig.engine, rig.queue.name, QueueSettings(batches_max=0), rig.now_ms)
    rig.queue.counters.last_batch = BATCH_NUMBER_MAX - 1
    add_to(rig, "last")
    disk = rig.dump()

    with pytest.raises(ResourceExhausted, match="has no number for another"):
        add_to(rig, "one more")

    assert rig.dump() == disk
    assert add_to(rig, "last", 2)


def test_batch_is_kept_as_long_as_the_setting_says(rig: Rig) -> None:
    configure_queue(rig.engine, rig.queue.name, QueueSettings(batch_keep_ms=50), rig.now_ms)
    finish(rig, "b", 2)

    rig.now_ms += 49
    rig.sweep_all()
    assert rig.stats().batches == 1
    configure_queue(rig.engine, rig.queue.name, QueueSettings(batch_keep_ms=80), rig.now_ms)
    rig.now_ms += 1
    rig.sweep_all()  # it is kept for longer
    assert rig.stats().batches == 1
    rig.now_ms += 30
    rig.sweep_all()

    assert rig.stats().batches == 0
    rig.assert_sound()


# --- the short form -------------------------------------------------------------------------------


def test_batch_whose_items_are_all_done_is_stored_shortly(rig: Rig) -> None:
    finish(rig, "b", 3)
    told = receipt(rig.engine, rig.queue, "b")

    (key,) = rig.keys(Family.BATCHES)
    stored = rig.store.get(Family.BATCHES, key)
    assert stored is not None
    assert len(stored) == 40 + len("b")
    assert (told.added, told.done, told.dead, told.complete) == (3, 3, 0, True)
    assert told.added_digest == told.done_digest != bytes(16)
    rig.assert_sound()

    add_to(rig, "b")  # it goes on
    assert receipt(rig.engine, rig.queue, "b").live == 1
    rig.assert_sound()


@given(
    added=st.integers(0, 1 << 62),
    dead=st.integers(0, 2),
    loads=st.integers(0, 1),
    sums=st.integers(0, DIGEST_MODULUS - 1),
    at_ms=st.integers(0, 1 << 48),
)
def test_both_forms_are_read_as_they_were_written(
    added: int, dead: int, loads: int, sums: int, at_ms: int
) -> None:
    done = max(0, added - dead)
    record = BatchRecord(
        "größe", done + dead, done, dead, sums, sums if not dead else 7, dead, at_ms, at_ms, loads
    )

    assert decode_batch(encode_batch(record)) == record


# --- forgetting by a call -------------------------------------------------------------------------


def finish(rig: Rig, batch: str, count: int = 1) -> None:
    add_to(rig, batch, count)
    polled = rig.poll(count)
    assert all(rig.remove(polled.ids, polled.lease_id))


def test_complete_batch_is_forgotten_when_told(rig: Rig) -> None:
    finish(rig, "b")
    finish(rig, "other")

    assert forget_batch(rig.engine, rig.queue, "b", rig.now_ms)
    assert not forget_batch(rig.engine, rig.queue, "b", rig.now_ms)

    with pytest.raises(NotFound, match="knows no batch 'b'"):
        receipt(rig.engine, rig.queue, "b")
    assert rig.stats().batches == 1
    rig.assert_sound()
    add_to(rig, "b")
    assert receipt(rig.engine, rig.queue, "b").added == 1
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()  # its old entry in `forget` is gone, too
    assert receipt(rig.engine, rig.queue, "b").added == 1
    rig.assert_sound()


def test_batch_with_live_items_is_not_forgotten(rig: Rig) -> None:
    add_to(rig, "b", 2)
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(FailedPrecondition, match="'b' of queue 'q' has 2 live items and 0 loads"):
        forget_batch(rig.engine, rig.queue, "b", rig.now_ms)

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_dead_letter_of_a_forgotten_batch_belongs_to_no_later_one(rig: Rig) -> None:
    make_dead(rig, NewItems([b"x"], batch="b"))
    assert forget_batch(rig.engine, rig.queue, "b", rig.now_ms)
    add_to(rig, "b")

    assert redrive_first(rig.engine, rig.queue, 10, rig.now_ms) == (1, False)

    told = receipt(rig.engine, rig.queue, "b")
    assert (told.added, told.live) == (1, 1)
    rig.assert_sound()


def test_old_batches_are_forgotten_slice_by_slice(rig: Rig) -> None:
    for name in "abc":
        finish(rig, name)
    add_to(rig, "live")
    rig.now_ms += 100
    finish(rig, "new")

    forgotten, after, looked_at = 0, 0, 0
    while True:
        some, after = forget_batches(rig.engine, rig.queue, 100, after, 2, rig.now_ms)
        forgotten, looked_at = forgotten + some, looked_at + 1
        if not after:
            break

    assert (forgotten, looked_at) == (3, 3)
    listed, _ = rig.queue.batches.page(100, 10)
    assert [each.receipt.batch for each in listed] == ["new", "live"]
    assert forget_batches(rig.engine, rig.queue, 0, BATCH_NUMBER_MAX, 2, rig.now_ms) == (0, 0)
    rig.assert_sound()


def test_item_of_a_batch_that_is_lost_is_a_broken_rule(rig: Rig) -> None:
    add_to(rig, "b")
    polled = rig.poll()
    batch = rig.store.batch()
    batch.delete(Family.BATCHES, rig.queue.prefix + b"\0\0\0\1")
    rig.store.write(batch)

    with pytest.raises(InvariantViolation, match="I10"):
        rig.remove(polled.ids, polled.lease_id)


# --- the list of batches --------------------------------------------------------------------------


def test_batches_are_listed_newest_first_with_their_receipts(rig: Rig) -> None:
    for name in ("first", "second", "third"):
        add_to(rig, name, 2)

    listed, more = rig.queue.batches.page(4, 10)

    assert not more
    assert [(each.number, each.receipt.batch) for each in listed] == [
        (3, "third"),
        (2, "second"),
        (1, "first"),
    ]
    assert [each.receipt for each in listed] == [
        receipt(rig.engine, rig.queue, each.receipt.batch) for each in listed
    ]


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
def test_pages_of_batches_show_each_once_however_many_are_forgotten(rig: Rig, limit: int) -> None:
    """There are 400 numbers; those of a few are left, alone or next to each other."""
    kept = {1, 2, 3, 90, 91, 200, 201, 202, 203, 204, 205, 206, 207, 208, 399, 400}
    for number in range(1, 401):
        ids = add_to(rig, f"batch {number}")
        if number not in kept:
            cancel(rig.engine, rig.queue, ids, rig.now_ms)
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()

    numbers: list[int] = []
    end, more = 401, True
    while more:
        page, more = rig.queue.batches.page(end, limit)
        assert len(page) == limit or not more
        numbers += [each.number for each in page]
        end = numbers[-1]

    assert numbers == sorted(kept, reverse=True)


def test_a_queue_without_batches_lists_none(rig: Rig) -> None:
    assert rig.queue.batches.page(1, 10) == ([], False)
