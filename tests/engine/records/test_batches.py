"""Batches: sums and digests that prove that each item ended exactly once."""

from hashlib import blake2b
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.db.families import Family
from queueber.db.records.remembered import ids_digest
from queueber.engine.records.batches import batch_reference
from queueber.errors import InvariantViolation, NotFound, ResourceExhausted
from queueber.limits import BATCH_KEEP_MS
from queueber.model import NewItems, Receipt
from tests.engine.making import make_dead
from tests.support.operations import batch_name, cancel, receipt
from tests.support.rig import Rig

ids_of_any_kind = st.lists(st.binary(min_size=16, max_size=16), max_size=20)


def add_to(rig: Rig, batch: str, count: int = 1) -> list[bytes]:
    return list(rig.add_items(NewItems([b"x"] * count, batch=batch)).ids)


def digest(ids: list[bytes]) -> bytes:
    hashes = [int.from_bytes(blake2b(each, digest_size=16).digest()) for each in ids]
    return (sum(hashes) % (1 << 128)).to_bytes(16)


# --- digests --------------------------------------------------------------------------------------


@given(ids=ids_of_any_kind, seed=st.randoms())
def test_digest_does_not_depend_on_the_order(ids: list[bytes], seed: Random) -> None:
    shuffled = ids.copy()
    seed.shuffle(shuffled)

    assert ids_digest(shuffled) == ids_digest(ids) == int.from_bytes(digest(ids))


@given(ids=ids_of_any_kind, at=st.integers(0, 19))
def test_digest_of_parts_adds_up_and_another_id_makes_another(ids: list[bytes], at: int) -> None:
    parts = ids_digest(ids[:at]) + ids_digest(ids[at:])

    assert parts % (1 << 128) == ids_digest(ids)
    assert ids_digest([*ids, b"another id......"]) != ids_digest(ids)


def test_digest_of_nothing_is_zero_and_of_one_has_its_golden_value() -> None:
    """Clients compute it too: it must not change."""
    assert ids_digest([]) == 0
    assert f"{ids_digest([bytes(16)]):032x}" == blake2b(bytes(16), digest_size=16).hexdigest()


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


def test_batch_name_is_found_by_number_with_and_without_memory(rig: Rig) -> None:
    add_to(rig, "größe")
    polled = rig.poll()
    assert polled.details.batches == ["größe"]

    rig.reopen()

    assert batch_name(rig.engine, rig.queue, 1) == "größe"
    assert batch_name(rig.engine, rig.queue, 1) == "größe"
    assert batch_name(rig.engine, rig.queue, 0) == batch_name(rig.engine, rig.queue, 9) == ""


def test_names_kept_in_memory_do_not_grow_without_end(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.records.batches._NAMES_KEPT", 3)
    for n in range(10):
        add_to(rig, f"b{n}")

    names = [name for _ in range(10) for name in rig.poll().details.batches]

    assert names == [f"b{n}" for n in range(10)]
    assert len(rig.queue.batches.names._names) <= 3


def test_numbers_of_batches_are_never_used_again(rig: Rig) -> None:
    make_dead(rig, NewItems([b"x"], batch="old"))
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    assert rig.stats().batches == 0

    add_to(rig, "new")

    assert rig.keys(Family.BATCHES) == [rig.queue.prefix + b"\0\0\0\2"]
    assert batch_reference(2) == b"\0\0\0\2" + bytes(12)
    rig.assert_sound()


def test_batches_past_the_limit_are_refused_and_change_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.records.batches.BATCHES_MAX", 2)
    add_to(rig, "a")
    add_to(rig, "b")
    disk, memory = rig.dump(), rig.memory()

    with pytest.raises(ResourceExhausted, match=r"'q' remembers 2 batches, the limit"):
        add_to(rig, "c")

    assert rig.dump() == disk
    assert rig.memory() == memory
    add_to(rig, "a")


def test_item_of_a_batch_that_is_lost_is_a_broken_rule(rig: Rig) -> None:
    add_to(rig, "b")
    polled = rig.poll()
    batch = rig.store.batch()
    batch.delete(Family.BATCHES, rig.queue.prefix + b"\0\0\0\1")
    rig.store.write(batch)

    with pytest.raises(InvariantViolation, match="I10"):
        rig.remove(polled.ids, polled.lease_id)
