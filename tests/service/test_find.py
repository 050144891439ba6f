"""Finding an item: what is refused, and who holds it."""

import pytest

from queueber.errors import InvalidArgument
from queueber.model import ItemState
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, on_service


@on_service()
async def test_item_that_is_leased_is_told_with_who_polled_it(rig: ServiceRig) -> None:
    await rig.add(b"a")
    polled = await rig.poll_now()
    before = dump(rig.store)

    found = rig.service.find.find_item(rig.queue, polled.ids[0], "").found

    assert found is not None
    assert found.state is ItemState.LEASED
    assert found.lease is not None
    assert (found.lease.lease_id, found.lease.holder) == (polled.lease_id, "tests:1")
    assert dump(rig.store) == before


@on_service()
async def test_what_names_no_item_is_refused(rig: ServiceRig) -> None:
    await rig.add(b"a")
    item_id = bytes(16)

    for asked, match in (
        ((b"", "", 0), "id: give an id or a key, and not both"),
        ((item_id, "k", 0), "id: give an id or a key, and not both"),
        ((b"short", "", 0), "id: "),
        ((b"", "k" * 513, 0), "key: .* has 513 bytes; the limit is 512"),
        ((item_id, "", 1), "after: 1 is behind the last result"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            rig.service.find.find_item(rig.queue, *asked)


@on_service()
async def test_item_that_there_is_not_is_not_found(rig: ServiceRig) -> None:
    unknown = rig.service.find.find_item(rig.queue, bytes(16), "")
    unknown_key = rig.service.find.find_item(rig.queue, b"", "k")

    assert (unknown.id, unknown.found, unknown.next_offset) == (bytes(16), None, 0)
    assert (unknown_key.id, unknown_key.found, unknown_key.next_offset) == (b"", None, 0)
