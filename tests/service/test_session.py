"""A session: who the caller is, and what it is told when a call goes wrong."""

import asyncio

import pytest
from structlog.testing import capture_logs

from queueber.clock import ManualClock
from queueber.errors import (
    InvalidArgument,
    InvariantViolation,
    QueueberError,
    ResourceExhausted,
    StorageCorrupt,
    StorageFailed,
)
from queueber.model import ItemState, LoadRef, QueueSettings
from queueber.service.session import REFUSALS_MAX, WAITING_CALLS_MAX, Admission, Session
from queueber.service.unread_answers import AnswerBudget
from tests.support.service_rig import ServiceRig, new_session, on_service
from tests.support.virtual_loop import run_virtually


def refused(error: Exception) -> tuple[tuple[str, str], list[BaseException]]:
    crashes: list[BaseException] = []

    async def main() -> tuple[str, str]:
        admission = Admission(asyncio.get_running_loop(), calls_max=1)
        session = Session(admission, AnswerBudget(), on_crash=crashes.append)
        told = session.refused(error)
        assert session.refusals == 1
        return told

    return run_virtually(ManualClock(), main()), crashes


def test_caller_is_told_code_and_text_of_an_error() -> None:
    assert refused(InvalidArgument("ids: none")) == (("INVALID_ARGUMENT", "ids: none"), [])


@pytest.mark.parametrize("kind", [InvariantViolation, StorageCorrupt, StorageFailed])
def test_error_that_the_server_must_not_outlive_ends_it(kind: type[Exception]) -> None:
    error = kind("I3 is broken")

    (code, text), crashes = refused(error)

    assert (code, crashes) == ("INTERNAL", [error])
    assert isinstance(error, QueueberError) or "I3" not in text


def test_error_that_nobody_expected_is_logged_and_not_shown() -> None:
    with capture_logs() as logs:
        (code, text), crashes = refused(ZeroDivisionError("secret"))

    assert (code, crashes) == ("INTERNAL", [])
    assert text == "the server failed at this call (ZeroDivisionError); its log says more"
    assert [each["event"] for each in logs] == ["unexpected_error"]


def test_session_that_was_refused_too_often_is_hung_up_on_once() -> None:
    async def main() -> None:
        session, hung_up = new_session(), []
        session.hang_up = lambda: hung_up.append(session.refusals)
        for _ in range(REFUSALS_MAX + 10):
            session.refused(InvalidArgument("no"))
        assert hung_up == [REFUSALS_MAX]

    run_virtually(ManualClock(), main())


@on_service()
async def test_session_has_no_more_calls_waiting_than_it_may(rig: ServiceRig) -> None:
    rig.session.waiting = WAITING_CALLS_MAX - 1
    waiting = await rig.waiting_poll(wait_ms=1000)

    with pytest.raises(ResourceExhausted, match="4096 calls of this connection are waiting"):
        await rig.begin_poll(wait_ms=1000)

    other = rig.service.queues.handle("default", Session(rig.admission, AnswerBudget()))
    one_more = await rig.waiting_poll(wait_ms=1000, queue=other)
    await rig.add(b"a", b"b")
    assert (len((await waiting).ids), len((await one_more).ids)) == (1, 1)


@on_service()
async def test_what_a_caller_does_is_logged_with_its_address_and_name(rig: ServiceRig) -> None:
    rig.session.address, rig.session.name = "10.1.2.3:4567", "nightly job"
    queues, items, loads = rig.service.queues, rig.service.items, rig.service.loads
    load = LoadRef("load")

    with capture_logs() as logs:
        await queues.open_queue("first", rig.session, must_exist=False)
        await queues.create_queue("second", QueueSettings(), rig.session)
        await queues.configure_queue("second", QueueSettings(items_max=1), rig.session)
        await queues.pause(rig.queue, 0)
        await queues.resume(rig.queue)
        await items.cancel(rig.queue, [bytes(16)])
        await items.reschedule(rig.queue, [bytes(16)], 0)
        await items.purge(rig.queue, ItemState.READY, 0)
        await items.redrive(rig.queue, [], 0)
        await loads.begin_load(rig.queue, load, batch="", timeout_ms=0)
        await loads.abort_load(rig.queue, load)
        await loads.begin_load(rig.queue, load, batch="", timeout_ms=0)
        await loads.commit_load(rig.queue, load, [])
        await queues.delete_queue("second", rig.session)

    assert [each["event"] for each in logs if each["log_level"] == "info"] == [
        "queue_created",
        "queue_created",
        "queue_configured",
        "paused",
        "resumed",
        "cancelled",
        "rescheduled",
        "purged",
        "redriven",
        "load_begun",
        "load_aborted",
        "load_begun",
        "load_committed",
        "queue_deleted",
    ]
    told = {(each["caller"], each["client"]) for each in logs if each["log_level"] == "info"}
    assert told == {("10.1.2.3:4567", "nightly job")}
