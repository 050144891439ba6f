"""Listing leases with who holds them, and batches."""

import pytest

from queueber.errors import InvalidArgument, NotFound
from queueber.limits import BATCHES_LIST_MAX, HOLDERS_REMEMBERED, LEASES_LIST_MAX
from queueber.model import LeaseInfo, NewItems
from queueber.service.lease_holders import LeaseHolders
from queueber.service.session import QueueHandle, Session
from queueber.service.unread_answers import AnswerBudget
from tests.support.dumps import dump
from tests.support.service_rig import LEASE_MS, ServiceRig, on_service


def holders_of(rig: ServiceRig) -> list[str]:
    return [each.holder for each in rig.service.lease_holders.list_leases(rig.queue, b"", 0)[0]]


@on_service()
async def test_leases_are_listed_with_the_name_and_address_of_who_polled(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b")
    unnamed = await rig.poll_now()
    other = Session(rig.admission, AnswerBudget(), address="far:7")
    other.name, other.process = "ocr-3", "process 4711 on web-1"
    named = await rig.poll_now(queue=QueueHandle(rig.queue.state, other), lease_ms=500)
    before, now_ms = dump(rig.store), rig.clock.now_ms()

    listed = rig.service.lease_holders.list_leases(rig.queue, b"", 0)

    who = "ocr-3 (far:7, process 4711 on web-1)"
    assert listed == (
        [
            LeaseInfo(unnamed.lease_id, "tests:1", 1, now_ms + LEASE_MS, now_ms),
            LeaseInfo(named.lease_id, who, 1, now_ms + 500, now_ms),
        ],
        False,
    )
    assert dump(rig.store) == before


@on_service()
async def test_a_poll_that_waited_is_known_as_the_holder(rig: ServiceRig) -> None:
    waiting = await rig.waiting_poll()
    await rig.add(b"a")
    await waiting

    assert holders_of(rig) == ["tests:1"]


@on_service()
async def test_holders_are_known_as_long_as_the_lease_lives(rig: ServiceRig) -> None:
    await rig.add(b"first")
    first = await rig.poll_now()

    for number in range(4):
        await rig.add(b"%d" % number)
        polled = await rig.poll_now()
        if number % 2:
            await rig.service.items.remove(rig.queue, polled.ids, [polled.lease_id])
        else:
            await rig.service.items.complete(rig.queue, polled.ids, [polled.lease_id], [b""])
        assert rig.service.lease_holders.count == 1

    assert holders_of(rig) == ["tests:1"]
    await rig.service.items.release(rig.queue, first.ids, [first.lease_id])
    assert rig.service.lease_holders.count == 0


@on_service()
async def test_a_lease_that_expires_has_no_holder(rig: ServiceRig) -> None:
    await rig.add(b"a")
    expiring = await rig.poll_now(lease_ms=500)

    rig.clock.advance(501)
    await rig.poll_now()  # it ends what is due

    assert rig.service.lease_holders.holder(expiring.lease_id) == ""


@on_service()
async def test_after_a_restart_the_holder_is_known_again_when_it_extends(rig: ServiceRig) -> None:
    await rig.add(b"a")
    polled = await rig.poll_now()

    restarted = rig.restarted()
    before = holders_of(restarted)
    items = restarted.service.items
    extended = await items.extend(restarted.queue, [polled.lease_id, bytes(16)], [LEASE_MS])
    other = Session(restarted.admission, AnswerBudget(), address="operator:7")
    await items.extend(QueueHandle(restarted.queue.state, other), [polled.lease_id], [2 * LEASE_MS])

    assert (before, extended) == ([""], [True, False])
    assert holders_of(restarted) == ["tests:1"]
    assert restarted.service.lease_holders.count == 1


@on_service()
async def test_leases_are_listed_page_by_page_of_a_bounded_size(rig: ServiceRig) -> None:
    for _ in range(LEASES_LIST_MAX + 1):
        await rig.add(b"")
        await rig.poll_now()

    for limit in (0, 10 * LEASES_LIST_MAX):
        page, more = rig.service.lease_holders.list_leases(rig.queue, b"", limit)
        rest, end = rig.service.lease_holders.list_leases(rig.queue, page[-1].lease_id, limit)
        assert (len(page), more, len(rest), end) == (LEASES_LIST_MAX, True, 1, False)


@on_service()
async def test_what_is_no_lease_or_no_queue_is_refused(rig: ServiceRig) -> None:
    await rig.service.queues.create_queue("other", rig.queue.state.settings, rig.session)
    other = rig.service.queues.handle("other", rig.session)
    await rig.service.queues.delete_queue("other", rig.session)

    with pytest.raises(InvalidArgument, match="after: one has 5 bytes; it must have 16"):
        rig.service.lease_holders.list_leases(rig.queue, b"short", 0)
    with pytest.raises(NotFound, match="was deleted"):
        rig.service.lease_holders.list_leases(other, b"", 0)
    with pytest.raises(NotFound, match="was deleted"):
        rig.service.results.list_batches(other, 0, 0)


def test_at_least_the_last_leases_are_remembered_and_never_more_than_twice_as_many() -> None:
    holders = LeaseHolders()
    leases = [n.to_bytes(16) for n in range(3 * HOLDERS_REMEMBERED + 10)]
    for lease in leases:
        holders.remember([lease], "somebody")

    known = [lease for lease in leases if holders.holder(lease)]

    assert known == leases[-len(known) :]
    assert HOLDERS_REMEMBERED <= len(known) <= 2 * HOLDERS_REMEMBERED


@on_service()
async def test_batches_are_listed_newest_first_in_pages_of_a_bounded_size(rig: ServiceRig) -> None:
    for number in range(1, BATCHES_LIST_MAX + 2):
        await rig.service.items.add(rig.queue, NewItems([b""], batch=f"batch {number}"))
    results = rig.service.results
    numbers = list(range(BATCHES_LIST_MAX + 1, 0, -1))

    for limit in (0, 10 * BATCHES_LIST_MAX):
        page, more = results.list_batches(rig.queue, 0, limit)
        rest, end = results.list_batches(rig.queue, page[-1].number, limit)
        assert ([each.number for each in page + rest], more, end) == (numbers, True, False)
    (batch, _), _ = results.list_batches(rig.queue, 10**9, 2)
    assert batch.receipt == await results.receipt(rig.queue, f"batch {numbers[0]}")
