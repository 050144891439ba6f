"""Company: suspects, who were held by somebody that died, go only where few others are."""

from collections.abc import Awaitable, Callable

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.limits import QUARANTINE_PATIENCE_MS
from queueber.model import NOTHING_POLLED, ItemState, Polled
from tests.support.service_rig import ServiceRig, on_service, run_on_service
from tests.support.virtual_loop import turns

OURS, THEIRS, GONE = object(), object(), object()


async def suspects(rig: ServiceRig, count: int) -> list[bytes]:
    """So many items that may go only in groups of half as many."""
    ids = await rig.add(*[b"suspect"] * count)
    await rig.poll_now(count, connection=GONE)
    rig.service.bound_leases.connection_ended(GONE)
    return ids


async def holding(rig: ServiceRig, connection: object = OURS) -> Polled:
    """A plain item in the hands of a connection, taken before there was any suspect."""
    await rig.add(b"plain")
    return await rig.poll_now(connection=connection)


@on_service()
async def test_suspects_go_in_groups_of_half_the_company_that_died(rig: ServiceRig) -> None:
    ids = await suspects(rig, 4)

    assert (await rig.poll_now(9)).ids == ids[:2]
    assert (await rig.poll_now(9)).ids == ids[2:]


@on_service()
async def test_suspect_is_not_given_to_a_connection_that_holds_too_many(rig: ServiceRig) -> None:
    await holding(rig)
    ids = await suspects(rig, 2)

    assert await rig.poll_now(connection=OURS) == NOTHING_POLLED
    assert await rig.service.polls.poll_many(rig.queue, [1], lease_ms=9, connection=OURS) == [
        NOTHING_POLLED
    ]
    assert (await rig.poll_now(connection=THEIRS)).ids == ids[:1]
    assert (await rig.poll_now()).ids == ids[1:]


@on_service()
async def test_connection_that_holds_a_suspect_is_given_no_more_than_it_allows(
    rig: ServiceRig,
) -> None:
    ids = await suspects(rig, 6)
    assert (await rig.poll_now(2, connection=OURS)).ids == ids[:2]

    answers = await rig.service.polls.poll_many(rig.queue, [5, 5], lease_ms=1000, connection=OURS)

    assert [list(answer.ids) for answer in answers] == [ids[2:3], []]


@on_service()
async def test_suspects_of_another_queue_do_not_matter(rig: ServiceRig) -> None:
    await suspects(rig, 2)
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    ids = await rig.add(b"a", b"b", queue=other)

    for item_id in ids:
        assert (await rig.poll_now(connection=OURS, queue=other)).ids == [item_id]


@on_service()
async def test_poll_without_a_connection_is_a_company_of_its_own(rig: ServiceRig) -> None:
    ids = await suspects(rig, 2)

    assert [(await rig.poll_now()).ids for _ in ids] == [ids[:1], ids[1:]]


# --- who waits ------------------------------------------------------------------------------------

LOSSES: dict[str, Callable[[ServiceRig, Polled], Awaitable[object]]] = {
    "complete": lambda rig, polled: rig.complete(polled),
    "remove": lambda rig, polled: rig.service.items.remove(
        rig.queue, polled.ids, [polled.lease_id]
    ),
    "fail": lambda rig, polled: rig.service.items.fail(
        rig.queue, polled.ids, [polled.lease_id], ["it failed"], [1000]
    ),
    "cancel": lambda rig, polled: rig.service.items.cancel(rig.queue, polled.ids),
    "purge": lambda rig, _: rig.service.items.purge(rig.queue, ItemState.LEASED, 0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_poll_that_waits_for_smaller_company_is_served_at_once_when_it_is(name: str) -> None:
    async def body(rig: ServiceRig) -> None:
        held = await holding(rig)
        ids = await suspects(rig, 2)
        task = await rig.waiting_poll(connection=OURS)
        before_ms = rig.clock.now_ms()

        await LOSSES[name](rig, held)

        assert (await task).ids == ids[:1]
        assert rig.clock.now_ms() == before_ms

    run_on_service(body)


@on_service()
async def test_poll_that_waits_for_smaller_company_is_served_when_its_other_lease_runs_out(
    rig: ServiceRig,
) -> None:
    async with rig.sweeper():
        await rig.add(b"plain")
        await rig.poll_now(connection=OURS, lease_ms=500)
        ids = await suspects(rig, 2)
        task = await rig.waiting_poll(connection=OURS)
        before_ms = rig.clock.now_ms()

        assert (await task).ids == ids[:1]
        assert rig.clock.now_ms() == before_ms + 500


@on_service()
async def test_poll_that_waits_for_smaller_company_holds_nobody_up_and_keeps_its_place(
    rig: ServiceRig,
) -> None:
    held = await holding(rig)
    await rig.add(b"s", b"s")
    await rig.poll_now(2, connection=GONE)
    tasks = [await rig.waiting_poll(connection=who) for who in (OURS, THEIRS, OURS)]

    rig.service.bound_leases.connection_ended(GONE)
    await turns()
    assert [task.done() for task in tasks] == [False, True, False]
    await rig.complete(held)
    await turns()

    assert [task.done() for task in tasks] == [True, True, False]
    assert len({*(await tasks[0]).ids, *(await tasks[1]).ids}) == 2
    assert rig.service.queues.stats(rig.queue).waiting_polls == 1
    await rig.complete(await tasks[0])
    ids = await rig.add(b"plain")
    assert (await tasks[2]).ids == ids
    assert check_store(rig.store) == []


# --- when the suspect is gone ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["complete", "remove", "fail", "cancel", "purge"])
def test_poll_that_waits_is_served_when_the_last_suspect_leaves_its_connection(name: str) -> None:
    async def body(rig: ServiceRig) -> None:
        await suspects(rig, 2)
        await rig.complete(await rig.poll_now())
        last = await rig.poll_now(connection=OURS)
        plain = await rig.add(b"plain")
        task = await rig.waiting_poll(connection=OURS)
        before_ms = rig.clock.now_ms()

        await LOSSES[name](rig, last)

        assert (await task).ids == plain
        assert rig.clock.now_ms() == before_ms

    run_on_service(body)


@on_service()
async def test_poll_that_holds_too_much_for_a_suspect_passes_over_it(rig: ServiceRig) -> None:
    await holding(rig)
    await suspects(rig, 2)
    plain = await rig.add(b"plain")

    assert (await rig.poll_now(9, connection=OURS)).ids == plain


@on_service()
async def test_poll_that_waits_is_served_what_is_behind_a_suspect_when_another_poll_takes_that(
    rig: ServiceRig,
) -> None:
    await holding(rig)
    first, second = await suspects(rig, 2)
    rig.clock.advance(QUARANTINE_PATIENCE_MS + 1)
    plain = await rig.add(b"plain")
    task = await rig.waiting_poll(connection=OURS)
    before_ms = rig.clock.now_ms()

    assert (await rig.poll_now()).ids == [first]
    assert (await rig.poll_now()).ids == [second]

    assert (await task).ids == plain
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_poll_that_waits_is_served_what_is_behind_a_suspect_when_one_behind_it_takes_that(
    rig: ServiceRig,
) -> None:
    await holding(rig)
    await rig.add(b"s", b"s")
    await rig.poll_now(2, connection=GONE)
    ours = await rig.waiting_poll(connection=OURS)
    theirs = [await rig.waiting_poll(), await rig.waiting_poll()]
    await rig.service.queues.pause(rig.queue, 0)
    rig.service.bound_leases.connection_ended(GONE)
    plain = await rig.add(b"plain")
    before_ms = rig.clock.now_ms()

    await rig.service.queues.resume(rig.queue)

    assert [len((await task).ids) for task in theirs] == [1, 1]
    assert (await ours).ids == plain
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_poll_that_waits_is_served_when_what_its_connection_holds_elsewhere_ends(
    rig: ServiceRig,
) -> None:
    elsewhere = await rig.service.queues.open_queue("elsewhere", rig.session, must_exist=False)
    here, rig.queue = rig.queue, elsewhere
    await suspects(rig, 2)
    held = await rig.poll_now(connection=OURS)
    rig.queue = here
    task = await rig.waiting_poll(connection=OURS)
    ids = await rig.add(b"plain")
    assert not task.done()

    await rig.service.items.remove(elsewhere, held.ids, [held.lease_id])

    assert (await task).ids == ids
