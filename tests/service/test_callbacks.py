"""Callbacks as callers meet them: items wake who waits, and rights are those on both queues."""

import asyncio
from dataclasses import replace

import pytest

from queueber.auth.callers import Caller
from queueber.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from queueber.model import Callback, Grant, NewItems, QueueSettings, callback_receipt
from queueber.service.session import QueueHandle, Session
from queueber.service.unread_answers import AnswerBudget
from tests.support.service_rig import ServiceRig, on_service

REPORT = Callback("reports", b"report")


@on_service()
async def test_item_wakes_a_poll_that_waits_in_another_queue(rig: ServiceRig) -> None:
    service, session = rig.service, rig.session
    await rig.add(b"x", batch="b")
    info = await service.callbacks.when_complete(rig.queue, "b", REPORT)
    assert (info.to, info.item_id) == ("reports", b"")
    reports = await service.queues.open_queue("reports", session, must_exist=True)
    async with rig.sweeper():
        waiting = await rig.waiting_poll(queue=reports)
        await rig.complete(await rig.poll_now())
        called_back = await asyncio.wait_for(waiting, 5)

    assert called_back.contents == [b"report"]
    receipt = await service.results.receipt(rig.queue, "b")
    assert callback_receipt(called_back.details.attributes[0]) == receipt
    info = await service.callbacks.describe_callback(rig.queue, "b")
    assert info.item_id == called_back.ids[0]


@on_service()
async def test_refused_calls_change_nothing(rig: ServiceRig) -> None:
    service = rig.service
    await rig.add(b"x", batch="b")
    for wrong, message in (
        (replace(REPORT, to="no queue"), "to: 'no queue' is not a queue name"),
        (replace(REPORT, priority=10), "priority: 10 is too high; it must be 0 to 9"),
        (
            replace(REPORT, attributes={str(n): "" for n in range(25)}),
            "attributes: there are 25; the limit for a callback is 24",
        ),
        (
            replace(REPORT, attributes={"a": "x" * 7000}),
            "attributes: they have 7001 bytes; the limit for a callback is 6912",
        ),
    ):
        with pytest.raises(InvalidArgument, match=message):
            await service.callbacks.when_complete(rig.queue, "b", wrong)
    with pytest.raises(NotFound):
        await service.callbacks.when_complete(rig.queue, "unknown", REPORT)

    await rig.add(b"x", batch="other")
    with pytest.MonkeyPatch.context() as low:
        low.setattr("queueber.engine.flow.callbacks.CALLBACKS_MAX", 0)
        with pytest.raises(ResourceExhausted, match="has 0 callbacks"):
            await service.callbacks.when_complete(rig.queue, "other", REPORT)
    await rig.service.items.add(rig.queue, NewItems([b"x"], keys=["k"]))
    await rig.service.items.add(rig.queue, NewItems([b"x"], keys=["k"], batch="empty"))
    with pytest.raises(FailedPrecondition, match="has no items"):
        await service.callbacks.when_complete(rig.queue, "empty", REPORT)

    assert rig.queue.state.counters.callback_records == 0
    assert "reports" not in rig.engine.queues


@on_service()
async def test_callback_that_has_added_its_item_creates_no_queue_again(rig: ServiceRig) -> None:
    service = rig.service
    await rig.add(b"x", batch="b")
    await rig.complete(await rig.poll_now())
    info = await service.callbacks.when_complete(rig.queue, "b", REPORT)
    assert info.item_id
    await service.queues.delete_queue("reports", rig.session)

    assert await service.callbacks.when_complete(rig.queue, "b", REPORT) == info
    other = replace(REPORT, to="another")
    with pytest.raises(FailedPrecondition, match="has added item"):
        await service.callbacks.when_complete(rig.queue, "b", other)
    assert {"reports", "another"}.isdisjoint(rig.engine.queues.by_name)


@on_service()
async def test_callback_that_waits_has_its_queue_created_again(rig: ServiceRig) -> None:
    service = rig.service
    await rig.add(b"x", batch="b")
    info = await service.callbacks.when_complete(rig.queue, "b", REPORT)
    await service.queues.delete_queue("reports", rig.session)

    assert await service.callbacks.when_complete(rig.queue, "b", REPORT) == info
    assert "reports" in rig.engine.queues


@on_service()
async def test_limits_of_a_queue_are_told_to_those_who_may_use_it(rig: ServiceRig) -> None:
    service = rig.service
    await service.queues.create_queue("reports", QueueSettings(bytes_max=3), rig.session)
    await rig.add(b"x", batch="b")
    await rig.complete(await rig.poll_now())
    await service.callbacks.when_complete(rig.queue, "b", REPORT)

    for grants, is_told in (
        ([Grant("reader", ("default",))], False),
        ([Grant("reader", ("default",)), Grant("reader", ("reports",))], True),
        ([Grant("reader", ("default",)), Grant("producer", ("reports",))], True),
        ([Grant("reader", ("default",)), Grant("worker", ("reports",))], False),
    ):
        session = Session(rig.admission, AnswerBudget(), address="tests:2")
        session.caller = Caller("reader", grants)
        handle = QueueHandle(rig.queue.state, session)
        info = await service.callbacks.describe_callback(handle, "b")
        assert (info.to, info.item_id) == ("reports", b"")
        if is_told:
            assert "would pass its limit of 3" in info.problem
        else:
            assert (
                info.problem == "queue 'reports' does not take the item; who may read it knows why"
            )


@on_service()
async def test_caller_needs_the_right_to_add_to_the_queue_that_gets_the_item(
    rig: ServiceRig,
) -> None:
    await rig.add(b"x", batch="b")
    session = Session(rig.admission, AnswerBudget(), address="tests:2")
    session.caller = Caller("producer", [Grant("producer", ("default",))])
    handle = QueueHandle(rig.queue.state, session)

    with pytest.raises(PermissionDenied):
        await rig.service.callbacks.when_complete(handle, "b", REPORT)
    own = replace(REPORT, to="default")
    info = await rig.service.callbacks.when_complete(handle, "b", own)
    assert info.to == "default"
    assert "reports" not in rig.engine.queues
