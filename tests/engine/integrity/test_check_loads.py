"""The check of loads: damage is reported under its rule, and under no other."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.loads import (
    LoadedRecord,
    LoadRecord,
    decode_load,
    decode_loaded,
    decode_part,
    encode_load,
    encode_loaded,
    encode_part,
    load_digest,
    load_key,
    loaded_digest,
    loaded_key,
    part_key,
)
from queueber.db.records.remembered import FORGET_LOAD, FORGET_LOADED, decode_batch
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.records import RecordsCheck
from queueber.ids import range_end
from queueber.model import LoadRef, PartRef
from tests.engine.damage import HELD_BATCH, LOAD, LOADED, STRANGER, Case, Damage, steps
from tests.engine.integrity.test_queue_entries import checked_queue
from tests.support.rig import START_MS, Rig

LOADS, FORGET = Family.LOADS, Family.FORGET
DIGEST = load_digest(LOAD.name)
LOADED_DIGEST = loaded_digest(LOADED.name)
PART = part_key(DIGEST, PartRef(1, "a"))
DUE = due_part(START_MS + 500, DIGEST)


def change_load(**values: object) -> Callable[[Damage], object]:
    def damage(d: Damage) -> None:
        load: LoadRecord = decode_load(d.get(LOADS, load_key(DIGEST)))
        d.put(LOADS, load_key(DIGEST), encode_load(replace(load, **values)))  # type: ignore[arg-type]

    return damage


def change_loaded(**values: object) -> Callable[[Damage], object]:
    def damage(d: Damage) -> None:
        loaded: LoadedRecord = decode_loaded(d.get(LOADS, loaded_key(LOADED_DIGEST)))
        changed = replace(loaded, **values)  # type: ignore[arg-type]
        d.put(LOADS, loaded_key(LOADED_DIGEST), encode_loaded(changed))

    return damage


def move_part(d: Damage, key: bytes) -> None:
    d.put(LOADS, key, d.get(LOADS, PART))
    d.delete(LOADS, PART)


def loaded_due(d: Damage) -> bytes:
    loaded = decode_loaded(d.get(LOADS, loaded_key(LOADED_DIGEST)))
    return due_part(loaded.forget_at_ms, LOADED_DIGEST)


def change_part_rows(d: Damage) -> None:
    part = decode_part(d.get(LOADS, PART))
    d.put(LOADS, PART, encode_part(replace(part, rows=part.rows + 1)))


def drop_held_batch(d: Damage) -> None:
    d.delete(Family.BATCHES, HELD_BATCH)
    d.delete(Family.BATCH_NAMES, d_name(d))
    d.count(batches=-1)


def d_name(d: Damage) -> bytes:
    prefix, wanted = d.prefix, HELD_BATCH
    entries = d.rig.dump()["batch_names"]
    return next(key[len(prefix) :] for key, number in entries if number == wanted)


CASES = [
    Case("I13", "a load is half committed", change_load(is_committing=True)),
    Case("I13", "a load says fewer rows than its parts", change_load(rows=6)),
    Case("I13", "a part has more rows than its load counts", change_part_rows),
    Case("I13", "a part is gone", lambda d: d.delete(LOADS, PART)),
    Case(
        "I13",
        "a part is where its attempt is not",
        lambda d: move_part(d, part_key(DIGEST, PartRef(1, "b"))),
    ),
    Case(
        "I13",
        "a part belongs to no load",
        lambda d: move_part(d, part_key(bytes(16), PartRef(1, "a"))),
    ),
    Case(
        "I13",
        "the parts of a load have lost it",
        lambda d: d.delete(LOADS, load_key(DIGEST)),
        also={"I11"},
    ),
    Case("I13", "a load has another name", change_load(ref=LoadRef("else", 2)), also={"I11"}),
    Case("I13", "a committed load has another name", change_loaded(ref=LoadRef("else")), {"I11"}),
    Case("I13", "a batch is held by nobody", lambda d: d.change_batch(HELD_BATCH, loads=2)),
    Case("I13", "a load holds no batch", change_load(batch=0)),
    Case("I13", "a load holds a batch that does not exist", drop_held_batch),
    Case(
        "I8",
        "the ids of a load go beyond last_id",
        lambda d: d.set(last_id=range_end(d.load.id_head)[:-1] + b"\xfe"),
    ),
    Case("I11", "nothing forgets a load", lambda d: d.delete(FORGET, DUE)),
    Case("I11", "a load is forgotten at another time", change_load(forget_at_ms=START_MS + 501)),
    Case("I11", "a load is forgotten as a committed one", lambda d: d.put(FORGET, DUE, b"c")),
    Case("I11", "nothing forgets a committed load", lambda d: d.delete(FORGET, loaded_due(d))),
    Case("I11", "a committed load is forgotten at another time", change_loaded(forget_at_ms=9)),
    Case(
        "I11",
        "a load that does not exist is to be forgotten",
        steps(
            lambda d: d.put(FORGET, due_part(START_MS + 500, STRANGER), FORGET_LOAD),
            lambda d: d.count(forgets=1),
        ),
    ),
    Case(
        "I11",
        "a committed load that does not exist is to be forgotten",
        steps(
            lambda d: d.put(FORGET, due_part(START_MS + 500, STRANGER), FORGET_LOADED),
            lambda d: d.count(forgets=1),
        ),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_a_load_is_reported_under_its_rule_and_no_other(rig: Rig, case: Case) -> None:
    assert case.rules_found(rig) == case.rules


def test_check_of_sound_loads_finds_nothing_and_tells_what_they_hold(rig: Rig) -> None:
    damage = Damage(rig)
    check = RecordsCheck(checked_queue(rig))

    assert list(check.check_loads()) == []

    assert check.forget_entries == {DUE: FORGET_LOAD, loaded_due(damage): FORGET_LOADED}
    assert check.loads_by_batch == {int.from_bytes(HELD_BATCH): 1}
    assert decode_batch(damage.get(Family.BATCHES, HELD_BATCH)).loads == 1


def test_check_of_a_load_that_is_half_committed_says_how_it_is_finished(rig: Rig) -> None:
    damage = Damage(rig)
    change_load(is_committing=True)(damage)
    rig.store.write(damage.batch)

    (found,) = check_store(rig.store)

    assert found.text == ("load 'under way' is half committed; start the server once to finish it")
