"""Outcomes of work: what each answers, and when those who wait get what comes back."""

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.errors import Unavailable
from queueber.model import NOTHING_POLLED, FailOutcome, ItemState, Polled, QueueSettings
from tests.support.rig import refuse_write
from tests.support.service_rig import ServiceRig, on_service

ID = bytes(16)


async def leased(rig: ServiceRig, count: int = 1) -> Polled:
    await rig.add(*[b"x"] * count)
    return await rig.poll_now(count)


async def release(rig: ServiceRig, polled: Polled) -> list[bool]:
    return await rig.service.items.release(rig.queue, polled.ids, [polled.lease_id])


# --- what is answered -----------------------------------------------------------------------------


@on_service()
async def test_complete_answers_for_each_and_keeps_the_results_of_those_that_were_held(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", b"b")
    one, two = await rig.service.polls.poll_many(rig.queue, [1, 1], lease_ms=1000)
    ids = [*one.ids, *two.ids, ID]

    completed = await rig.service.items.complete(
        rig.queue, ids, [one.lease_id, one.lease_id, one.lease_id], [b"1", b"2", b"3"]
    )

    assert completed == [True, False, False]
    found = await rig.service.results.read_results(
        rig.queue, reader="", offset=0, limit=0, wait_ms=0
    )
    assert [(each.id, each.result) for each in found.results] == [(one.ids[0], b"1")]


@on_service()
async def test_remove_of_an_id_of_another_length_answers_false(rig: ServiceRig) -> None:
    polled = await leased(rig)
    (held,) = polled.ids

    removed = await rig.service.items.remove(
        rig.queue, [b"", b"abc", held + b"x", held], [polled.lease_id]
    )

    assert removed == [False, False, False, True]
    assert list(check_store(rig.store)) == []


@on_service()
async def test_fail_answers_for_each_what_became_of_it(rig: ServiceRig) -> None:
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=2), rig.session)
    await rig.add(b"old")
    await rig.fail(await rig.poll_now(), 0)
    await rig.add(b"new")
    polled = await rig.poll_now(2)

    outcomes = await rig.service.items.fail(
        rig.queue, [*polled.ids, ID], [polled.lease_id], ["why"], [0, 0, 0]
    )

    assert sorted(outcome.value for outcome in outcomes) == ["died", "refused", "retried"]
    (letter,), _ = rig.service.items.peek(rig.queue, ItemState.DEAD, b"", 0)
    assert outcomes[polled.ids.index(letter.id)] is FailOutcome.DIED
    assert (letter.attempts, letter.last_error) == (2, "why")


@on_service()
async def test_release_answers_for_each_and_charges_nothing(rig: ServiceRig) -> None:
    polled = await leased(rig, 2)

    released = await rig.service.items.release(rig.queue, [*polled.ids, ID], [polled.lease_id])

    assert released == [True, True, False]
    items, _ = rig.service.items.peek(rig.queue, ItemState.READY, b"", 0)
    assert [(item.attempts, item.group_max) for item in items] == [(0, 0)] * 2
    assert rig.service.queues.stats(rig.queue).failed_total == 0


@on_service()
async def test_outcome_under_a_lease_that_ran_out_is_refused_though_the_sweeper_has_not_looked(
    rig: ServiceRig,
) -> None:
    await rig.add(b"x")
    polled = await rig.poll_now(lease_ms=100)
    rig.clock.advance(100)

    assert await rig.complete(polled) == [False]
    assert await rig.fail(polled) == [FailOutcome.REFUSED]
    assert await release(rig, polled) == [False]


# --- who waits ------------------------------------------------------------------------------------


@on_service()
async def test_release_serves_a_poll_that_waits_at_once(rig: ServiceRig) -> None:
    polled = await leased(rig)
    task = await rig.waiting_poll()
    before_ms = rig.clock.now_ms()

    await release(rig, polled)

    assert (await task).ids == polled.ids
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_fail_without_a_delay_serves_a_poll_that_waits_at_once(rig: ServiceRig) -> None:
    polled = await leased(rig)
    task = await rig.waiting_poll()
    before_ms = rig.clock.now_ms()

    assert await rig.fail(polled, 0) == [FailOutcome.RETRIED]

    served = await task
    assert (served.ids, served.details.attempts) == (polled.ids, [2])
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_fail_with_a_delay_of_its_own_serves_a_poll_that_waits_after_it(
    rig: ServiceRig,
) -> None:
    async with rig.sweeper():
        polled = await leased(rig)
        task = await rig.waiting_poll()
        before_ms = rig.clock.now_ms()

        await rig.fail(polled, 1234)

        assert (await task).ids == polled.ids
        assert rig.clock.now_ms() == before_ms + 1234


@pytest.mark.parametrize("delays_ms", [(), (-1,)], ids=["no delay", "minus one"])
def test_fail_without_a_delay_of_its_own_serves_a_poll_that_waits_after_the_backoff(
    delays_ms: tuple[int, ...],
) -> None:
    @on_service()
    async def run(rig: ServiceRig) -> None:
        await rig.service.queues.configure_queue(
            "default", QueueSettings(backoff_ms=(300, 700)), rig.session
        )
        async with rig.sweeper():
            polled = await leased(rig)
            for backoff_ms in (300, 700, 700):
                task = await rig.waiting_poll()
                before_ms = rig.clock.now_ms()

                await rig.fail(polled, *delays_ms)
                polled = await task

                assert rig.clock.now_ms() == before_ms + backoff_ms

    run()


@on_service()
async def test_fail_of_the_last_attempt_serves_nobody_until_it_is_redriven(
    rig: ServiceRig,
) -> None:
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=1), rig.session)
    polled = await leased(rig)
    task = await rig.waiting_poll()

    assert await rig.fail(polled, 0) == [FailOutcome.DIED]
    assert await rig.poll_now() == NOTHING_POLLED
    before_ms = rig.clock.now_ms()
    assert await rig.service.items.redrive(rig.queue, polled.ids, 0) == (1, False)

    assert (await task).ids == polled.ids
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_outcome_that_the_store_refuses_changes_nothing_and_serves_nobody(
    rig: ServiceRig,
) -> None:
    polled = await leased(rig)
    task = await rig.waiting_poll(wait_ms=500)
    stats = rig.service.queues.stats(rig.queue)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        for outcome in (rig.complete(polled), rig.fail(polled, 0), release(rig, polled)):
            with pytest.raises(Unavailable):
                await outcome

    assert rig.service.queues.stats(rig.queue) == stats
    assert check_store(rig.store) == []
    assert await task == NOTHING_POLLED
    assert await rig.complete(polled) == [True]
