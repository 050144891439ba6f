"""The check of options: what does not fit is found (I23), and a rebuild heals it."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.db.records.item_options import StoredOptions, encode_options
from queueber.db.records.keys import due_part
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.model import NO_OPTIONS, ItemOptions, NewItems
from tests.engine.integrity.test_check_caps import Case
from tests.support.rig import Rig

OPTIONS = Family.ITEM_OPTIONS
EXPIRY = Family.ITEM_EXPIRY
OWN = ItemOptions(2, (7,))


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    made.add_items(NewItems([b"x"] * 4, options=[OWN, OWN, OWN, NO_OPTIONS]))
    made.add_items(NewItems([b"x"] * 2, options=[ItemOptions(expires_ms=500)] * 2))
    made.poll(1)
    yield made
    made.close()


def _first(rig: Rig) -> bytes:
    return rig.keys(OPTIONS)[0]


CASES = [
    Case("no options", lambda rig, batch: batch.delete(OPTIONS, _first(rig)), "I23"),
    Case(
        "options of nobody",
        lambda rig, batch: batch.put(
            OPTIONS, rig.queue.prefix + bytes(16), encode_options(StoredOptions(2, (7,)))
        ),
        "I23",
    ),
    Case(
        "options of an item whose mark has none",
        lambda rig, batch: batch.put(
            OPTIONS, rig.queue.prefix + rig.ready_ids()[-1], encode_options(StoredOptions(2, (7,)))
        ),
        "I23",
    ),
    Case(
        "no expiry",
        lambda rig, batch: batch.delete(EXPIRY, rig.keys(EXPIRY)[0]),
        "I23",
    ),
    Case(
        "an expiry of nobody",
        lambda rig, batch: batch.put(
            EXPIRY, rig.queue.prefix + due_part(rig.now_ms + 900, bytes(16)), b""
        ),
        "I23",
    ),
    Case(
        "options that cannot be read",
        lambda rig, batch: batch.put(OPTIONS, _first(rig), b"?"),
        "I7",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_what_does_not_fit_is_found_and_healed(rig: Rig, case: Case) -> None:
    batch = rig.store.batch()
    case.damage(rig, batch)
    rig.store.write(batch)
    assert case.rule in {each.rule for each in check_store(rig.store)}

    list(rebuild_store(rig.store))

    assert check_store(rig.store) == []
