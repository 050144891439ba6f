"""Schedules as callers meet them: runs wake who waits, and rights are those on the queue."""

import asyncio
from dataclasses import replace

import pytest

from queueber.auth.callers import Caller
from queueber.errors import InvalidArgument, NotFound, PermissionDenied
from queueber.limits import HOUR_MS, SCHEDULES_LIST_MAX
from queueber.model import Grant, Schedule, Stored
from queueber.service.session import Session
from queueber.service.unread_answers import AnswerBudget
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns

HOURLY = Schedule("hourly", "@hourly", "default", b"tick")


def _session(rig: ServiceRig, *grants: Grant) -> Session:
    session = Session(rig.admission, AnswerBudget(), address="10.0.0.1:5")
    session.caller = Caller("c", grants)
    return session


def _until_the_hour_ms(rig: ServiceRig) -> int:
    return HOUR_MS - rig.clock.now_ms() % HOUR_MS


@on_service()
async def test_a_waiting_poll_gets_the_item_of_a_run(rig: ServiceRig) -> None:
    assert await rig.service.schedules.put(HOURLY, rig.session) is Stored.CREATED
    assert rig.sweeper_wakes
    task = await rig.waiting_poll()

    rig.clock.advance(_until_the_hour_ms(rig))
    while rig.service.sweep():
        await turns()

    assert (await task).contents == [b"tick"]


@on_service()
async def test_a_poll_that_comes_before_the_sweeper_gets_it(rig: ServiceRig) -> None:
    await rig.service.schedules.put(HOURLY, rig.session)
    rig.clock.advance(_until_the_hour_ms(rig))

    assert (await rig.poll_now(2)).contents == [b"tick"]


@on_service()
async def test_the_sweeper_sleeps_until_the_next_run(rig: ServiceRig) -> None:
    await rig.service.schedules.put(HOURLY, rig.session)

    assert rig.service.next_due_in_ms() == _until_the_hour_ms(rig)


@on_service()
async def test_a_run_that_somebody_asks_for_wakes_who_waits(rig: ServiceRig) -> None:
    await rig.service.schedules.put(HOURLY, rig.session)
    task = await rig.waiting_poll()

    item_id = await rig.service.schedules.run_now("hourly", rig.session)

    assert list((await asyncio.wait_for(task, 5)).ids) == [item_id]


@on_service()
async def test_the_queue_of_a_schedule_is_created(rig: ServiceRig) -> None:
    await rig.service.schedules.put(replace(HOURLY, queue="new"), rig.session)

    assert "new" in rig.engine.queues


@on_service()
async def test_a_schedule_that_is_refused_creates_no_queue(rig: ServiceRig) -> None:
    with pytest.raises(InvalidArgument):
        rig.service.schedules.put(replace(HOURLY, queue="new", when="soon"), rig.session)

    assert "new" not in rig.engine.queues


@on_service()
async def test_lists_have_pages_without_contents(rig: ServiceRig) -> None:
    schedules = rig.service.schedules
    for number in range(SCHEDULES_LIST_MAX + 2):
        await schedules.put(replace(HOURLY, name=f"s{number:04}"), rig.session)

    first, more = await schedules.page("", 0, rig.session)
    rest, no_more = await schedules.page(first[-1].name, 0, rig.session)
    two, _ = await schedules.page("s0003", 2, rig.session)

    assert (len(first), more) == (SCHEDULES_LIST_MAX, True)
    assert (len(rest), no_more) == (2, False)
    assert [each.name for each in two] == ["s0004", "s0005"]
    assert {(each.contents, each.contents_bytes) for each in first} == {(b"", 4)}
    assert (await schedules.describe("s0000", rig.session)).contents == b"tick"


@on_service()
async def test_rights_are_those_on_the_queue(rig: ServiceRig) -> None:
    schedules = rig.service.schedules
    await schedules.put(HOURLY, rig.session)
    await schedules.put(replace(HOURLY, name="other", queue="q"), rig.session)
    reader = _session(rig, Grant("reader", ("q",)))
    operator = _session(rig, Grant("operator", ("default",)))
    admin = _session(rig, Grant("admin", ("q",)))

    assert [each.name for each in (await schedules.page("", 0, reader))[0]] == ["other"]
    with pytest.raises(PermissionDenied, match="lacks 'read' on queue 'default'"):
        schedules.describe("hourly", reader)
    for act in (schedules.pause, schedules.resume, schedules.run_now):
        with pytest.raises(PermissionDenied, match="lacks 'operate' on queue 'q'"):
            act("other", reader)
    assert await schedules.pause("hourly", operator)
    assert await schedules.resume("hourly", operator)
    await schedules.run_now("hourly", operator)
    with pytest.raises(PermissionDenied, match="lacks 'administer' on queue 'default'"):
        schedules.remove("hourly", operator)
    with pytest.raises(PermissionDenied, match="lacks 'administer' on queue 'default'"):
        schedules.put(replace(HOURLY, queue="q"), admin)  # takes it away from another queue
    with pytest.raises(PermissionDenied, match="lacks 'administer' on queue 'default'"):
        schedules.put(replace(HOURLY, name="mine"), admin)
    assert await schedules.remove("other", admin)


@on_service()
async def test_names_that_are_unknown_or_wrong_are_told(rig: ServiceRig) -> None:
    schedules = rig.service.schedules
    for act in (schedules.pause, schedules.resume, schedules.run_now, schedules.describe):
        with pytest.raises(NotFound, match="there is no schedule 'x'"):
            act("x", rig.session)
        with pytest.raises(InvalidArgument, match="name: 'a b' is not the name of a schedule"):
            act("a b", rig.session)
    assert not await schedules.remove("x", rig.session)
