"""Polls that their callers withdraw: answered with nothing, and nothing is taken."""

from queueber.model import NOTHING_POLLED
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns

NAME = ("connection", 7)


@on_service()
async def test_withdrawn_poll_is_answered_at_once_and_leaves_its_place(rig: ServiceRig) -> None:
    task = await rig.waiting_poll(name=NAME)
    before, before_ms = dump(rig.store), rig.clock.now_ms()

    rig.service.polls.withdraw_poll(NAME)

    assert await task == NOTHING_POLLED
    assert rig.clock.now_ms() == before_ms
    assert rig.service.queues.stats(rig.queue).waiting_polls == 0
    assert dump(rig.store) == before
    await rig.add(b"a")
    assert rig.queue.state.counters.ready == 1


@on_service()
async def test_poll_that_is_withdrawn_before_its_first_turn_takes_nothing(rig: ServiceRig) -> None:
    await rig.add(b"a")
    polling = rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=1000, name=NAME)

    rig.service.polls.withdraw_poll(NAME)

    assert await polling == NOTHING_POLLED
    assert rig.queue.state.counters.ready == 1


@on_service()
async def test_withdrawing_a_poll_that_has_its_items_changes_nothing(rig: ServiceRig) -> None:
    ids = await rig.add(b"a")
    polled = await rig.poll_now(name=NAME)

    rig.service.polls.withdraw_poll(NAME)
    await turns(3)

    assert polled.ids == ids
    assert rig.queue.state.counters.leased == 1


@on_service()
async def test_withdrawing_names_one_poll_of_many(rig: ServiceRig) -> None:
    ours = await rig.waiting_poll(name=NAME)
    others = [await rig.waiting_poll(name=("connection", 8)), await rig.waiting_poll()]

    rig.service.polls.withdraw_poll(NAME)
    rig.service.polls.withdraw_poll(("connection", 9))
    ids = [await rig.add(contents) for contents in (b"a", b"b")]

    assert await ours == NOTHING_POLLED
    assert [(await task).ids for task in others] == ids


@on_service()
async def test_names_of_polls_are_forgotten_with_them(rig: ServiceRig) -> None:
    await rig.poll_now(name=NAME)
    cancelled = rig.service.polls.poll(rig.queue, 1, lease_ms=9, wait_ms=9, name=("connection", 1))
    cancelled.close()
    del cancelled

    assert len(rig.service.polls._calls) == 0
