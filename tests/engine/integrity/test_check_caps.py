"""The check of cap keys finds what does not fit (I22)."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.engine.integrity.check_store import check_store
from queueber.model import NewItems, QueueSettings
from tests.support.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(QueueSettings(cap_by="who", cap_by_concurrency_max=1))
    made.add_items(NewItems([b"x"] * 3, attributes=[{"who": "a"}] * 3))
    made.poll(3)
    yield made
    made.close()


def rules(rig: Rig) -> set[str]:
    return {each.rule for each in check_store(rig.store)}


def only(rig: Rig, family: Family) -> bytes:
    ((key, _),) = rig.store.scan(family, b"", b"\xff" * 8, 10)
    return key


def change(rig: Rig, family: Family, key: bytes, value: bytes | None) -> None:
    batch = rig.store.batch()
    if value is None:
        batch.delete(family, key)
    else:
        batch.put(family, key, value)
    rig.store.write(batch)


def test_a_sound_queue_has_no_violation(rig: Rig) -> None:
    assert rules(rig) == set()


@pytest.mark.parametrize("value", [None, bytes(8), b"\0\0\0\2\0\0\0\2", b"\0\0\0\1\0\0\0\1"])
def test_a_record_that_says_something_else_is_found(rig: Rig, value: bytes | None) -> None:
    change(rig, Family.CAP_KEYS, only(rig, Family.CAP_KEYS), value)

    assert rules(rig) == {"I22"}


def test_a_parked_item_without_its_entry_is_found(rig: Rig) -> None:
    key, _ = rig.store.scan(Family.PARKED, b"", b"\xff" * 8, 1)[0]
    change(rig, Family.PARKED, key, None)

    assert rules(rig) == {"I22"}


def test_a_record_of_nobody_is_found(rig: Rig) -> None:
    key = only(rig, Family.CAP_KEYS)
    change(rig, Family.CAP_KEYS, key[:4] + bytes(16), b"\0\0\0\1\0\0\0\0")

    assert rules(rig) == {"I22"}
