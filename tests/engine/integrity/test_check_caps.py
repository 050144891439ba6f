"""The check of cap keys finds what does not fit (I22)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, due_part, split_due_part
from queueber.db.store.contract import Batch
from queueber.engine.caps.cap_keys import KeyRecord
from queueber.engine.integrity.check_store import check_store
from queueber.model import NewItems, QueueSettings
from tests.support.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(QueueSettings(cap_by="who", cap_by_rate_items=1, cap_by_rate_ms=1000))
    made.add_items(NewItems([b"x"] * 3, attributes=[{"who": "a"}] * 3))
    made.poll(3)
    yield made
    made.close()


def key_of(rig: Rig) -> bytes:
    ((key, _),) = rig.store.scan(Family.CAP_KEYS, b"", b"\xff" * 8, 10)
    return key


def parked_by(rig: Rig) -> bytes:
    return rig.store.scan(Family.PARKED, b"", b"\xff" * 8, 1)[0][0]


def _says(value: bytes | None) -> Callable[[Rig, Batch], None]:
    def damage(rig: Rig, batch: Batch) -> None:
        if value is None:
            batch.delete(Family.CAP_KEYS, key_of(rig))
        else:
            batch.put(Family.CAP_KEYS, key_of(rig), value)

    return damage


def due_by(rig: Rig) -> bytes:
    ((key, _),) = rig.store.scan(Family.CAP_DUE, b"", b"\xff" * 8, 10)
    return key


def _of_rate(**changes: int) -> Callable[[Rig, Batch], None]:
    def damage(rig: Rig, batch: Batch) -> None:
        record = KeyRecord(rig.store.get(Family.CAP_KEYS, key_of(rig)))
        for name, value in changes.items():
            setattr(record, name, value)
        batch.put(Family.CAP_KEYS, key_of(rig), record.encode())

    return damage


def _moved_earlier(rig: Rig, batch: Batch) -> None:
    at_ms, digest = split_due_part(due_by(rig)[PREFIX_BYTES:])
    batch.delete(Family.CAP_DUE, due_by(rig))
    batch.put(Family.CAP_DUE, rig.queue.prefix + due_part(at_ms - 1, digest), b"")
    _of_rate(due_ms=at_ms - 1)(rig, batch)


@dataclass(frozen=True)
class Case:
    name: str
    damage: Callable[[Rig, Batch], None]
    rule: str = "I22"


CASES = [
    Case("no record", _says(None)),
    Case("an empty record", _says(bytes(8))),
    Case("too many slots", _says(b"\0\0\0\2\0\0\0\2")),
    Case("too few parked", _says(b"\0\0\0\1\0\0\0\1")),
    Case("a parked item without its entry",
         lambda rig, batch: batch.delete(Family.PARKED, parked_by(rig))),
    Case("a token of nobody", _of_rate(tokens=1)),
    Case("an entry of cap_due that the record does not know", _of_rate(due_ms=5)),
    Case("waiting for nothing", _of_rate(due_ms=0)),
    Case("no entry of cap_due", lambda rig, batch: batch.delete(Family.CAP_DUE, due_by(rig))),
    Case("an entry of cap_due of nobody",
         lambda rig, batch: batch.put(Family.CAP_DUE, due_by(rig)[:-1] + b"x", b"")),
    Case("an entry of cap_due before the first one", _moved_earlier),
    Case("a record of nobody",
         lambda rig, batch: batch.put(
             Family.CAP_KEYS, rig.queue.prefix + bytes(16), b"\0\0\0\1\0\0\0\0")),
]  # fmt: skip


def test_a_sound_queue_has_no_violation(rig: Rig) -> None:
    assert check_store(rig.store) == []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_does_not_fit_is_found(rig: Rig, case: Case) -> None:
    batch = rig.store.batch()
    case.damage(rig, batch)
    rig.store.write(batch)

    assert {each.rule for each in check_store(rig.store)} == {case.rule}
