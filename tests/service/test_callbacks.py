"""Callbacks as callers meet them: items wake who waits, and rights are those on both queues."""

import asyncio
from dataclasses import replace

import pytest

from queueber.auth.callers import Caller
from queueber.errors import InvalidArgument, NotFound, PermissionDenied
from queueber.model import Callback, Grant, callback_receipt
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

    assert rig.queue.state.counters.callback_records == 0
    assert "reports" not in rig.engine.queues


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
