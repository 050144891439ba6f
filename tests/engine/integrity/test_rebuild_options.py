"""The rebuild of options: those of items that are left stay."""

from queueber.db.families import Family
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from tests.engine.integrity.test_check_options import EXPIRY, OPTIONS, rig
from tests.support.rig import Rig

__all__ = ["rig"]


def test_a_rebuild_keeps_the_options_of_every_item(rig: Rig) -> None:
    names = [OPTIONS.family_name, EXPIRY.family_name]
    before = [rig.dump()[name] for name in names]
    batch = rig.store.batch()
    batch.delete(Family.LEASE_EXPIRY, rig.keys(Family.LEASE_EXPIRY)[0])
    rig.store.write(batch)

    list(rebuild_store(rig.store))

    assert [rig.dump()[name] for name in names] == before
    assert [mark.flags for mark in rig.marks(Family.VISIBILITY_INDEX)] == [8, 8, 8, 0, 72, 72]


def test_an_item_whose_place_is_lost_keeps_its_options(rig: Rig) -> None:
    batch = rig.store.batch()
    for key in rig.keys(Family.VISIBILITY_INDEX):
        batch.delete(Family.VISIBILITY_INDEX, key)
    rig.store.write(batch)

    list(rebuild_store(rig.store))

    assert check_store(rig.store) == []
    assert (len(rig.keys(OPTIONS)), len(rig.keys(EXPIRY))) == (5, 0)
