"""Outboxes: answers that have not left are counted, and who has too many gets no more."""

from collections.abc import Awaitable, Callable

import pytest

from queueber.clock import ManualClock
from queueber.errors import Unavailable
from queueber.limits import KIB, MIB
from queueber.service.outbox import Outbox
from tests.support.service_rig import ServiceRig, new_connection, on_service
from tests.support.virtual_loop import run_virtually


def with_outbox(test: Callable[[Outbox], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(new_connection(bytes_max=MIB, all_bytes_max=2 * MIB).outbox)

    run_virtually(ManualClock(), main())


def test_outbox_refuses_when_its_connection_has_too_much_unread() -> None:
    async def test(outbox: Outbox) -> None:
        outbox.set_unsent(MIB - 1)
        outbox.check()

        outbox.set_unsent(MIB)

        with pytest.raises(Unavailable, match="1048576 bytes of answers wait for this connection"):
            outbox.check()
        outbox.set_unsent(0)
        outbox.check()

    with_outbox(test)


def test_outbox_refuses_when_all_connections_together_have_too_much_unread() -> None:
    async def test(outbox: Outbox) -> None:
        others = [Outbox(outbox.outboxes) for _ in range(4)]
        for other in others:
            other.set_unsent(MIB // 2)

        assert outbox.outboxes.are_crowded
        with pytest.raises(Unavailable, match="2097152 bytes of answers wait to be read"):
            outbox.check()
        others[0].set_unsent(0)
        outbox.check()

    with_outbox(test)


def test_claim_counts_while_the_answer_is_being_made() -> None:
    async def test(outbox: Outbox) -> None:
        with outbox.claim() as claim:
            claim.take(MIB)
            with pytest.raises(Unavailable):
                claim.check()
            assert (outbox.bytes, outbox.owed) == (MIB, 0)

        assert (outbox.bytes, outbox.owed) == (MIB, MIB)

    with_outbox(test)


def test_claim_of_a_call_that_failed_leaves_nothing() -> None:
    async def test(outbox: Outbox) -> None:
        claim = outbox.claim()
        claim.take(100)
        claim.__exit__(ValueError, ValueError(), None)

        assert (outbox.bytes, outbox.outboxes.bytes) == (0, 0)

    with_outbox(test)


def test_answer_counts_until_it_came_out_of_the_protocol() -> None:
    async def test(outbox: Outbox) -> None:
        outbox.made(MIB)
        with pytest.raises(Unavailable):
            outbox.check()
        assert outbox.is_hoard

        outbox.passed_on(MIB + 100)
        outbox.made(10)
        assert (outbox.bytes, outbox.outboxes.bytes, outbox.is_hoard) == (10, 10, False)
        outbox.close()
        assert (outbox.bytes, outbox.outboxes.bytes) == (0, 0)

    with_outbox(test)


def test_answer_that_is_made_after_the_connection_ended_counts_for_nobody() -> None:
    """Its caller is gone, so it never comes out of the protocol."""

    async def test(outbox: Outbox) -> None:
        claim = outbox.claim()
        with claim:
            claim.take(1000)
            outbox.set_unsent(500)
            outbox.close()
            assert outbox.outboxes.bytes == 1000
        outbox.set_unsent(500)

        assert (outbox.bytes, outbox.outboxes.bytes) == (0, 0)

    with_outbox(test)


def test_claim_that_is_never_entered_holds_nothing() -> None:
    async def test(outbox: Outbox) -> None:
        outbox.claim()
        assert outbox.bytes == 0

    with_outbox(test)


@on_service()
async def test_poll_takes_nothing_for_one_who_does_not_read(rig: ServiceRig) -> None:
    outbox = new_connection(bytes_max=100 * KIB).outbox
    await rig.add(b"x" * KIB)
    outbox.set_unsent(100 * KIB)
    claim = outbox.claim()

    with pytest.raises(Unavailable, match="bytes of answers wait for this connection"):
        await rig.service.poll(rig.queue, 1, lease_ms=1000, wait_ms=0, claim=claim)

    assert (rig.service.stats(rig.queue).ready, rig.service.stats(rig.queue).leases) == (1, 0)


@on_service()
async def test_poll_that_waits_is_refused_when_its_turn_comes_and_the_next_is_served(
    rig: ServiceRig,
) -> None:
    outbox = new_connection(bytes_max=100 * KIB).outbox
    claim = outbox.claim()
    polled = rig.service.poll(rig.queue, 1, lease_ms=1000, wait_ms=1000, claim=claim)
    refused = await rig.waiting(polled)
    served = await rig.waiting_poll()
    outbox.set_unsent(100 * KIB)

    await rig.add(b"x")

    with pytest.raises(Unavailable):
        await refused
    assert len((await served).ids) == 1
