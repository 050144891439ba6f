"""Unread answers are counted, and a session that has too many gets no more."""

from collections.abc import Awaitable, Callable

import pytest

from queueber.clock import ManualClock
from queueber.errors import Unavailable
from queueber.limits import KIB, MIB
from queueber.service.unread_answers import UnreadAnswers
from tests.support.service_rig import ServiceRig, new_session, on_service
from tests.support.virtual_loop import run_virtually


def with_answers(test: Callable[[UnreadAnswers], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(new_session(bytes_max=MIB, all_bytes_max=2 * MIB).answers)

    run_virtually(ManualClock(), main())


def test_session_refuses_when_its_connection_has_too_much_unread() -> None:
    async def test(answers: UnreadAnswers) -> None:
        answers.set_unsent(MIB - 1)
        answers.check()

        answers.set_unsent(MIB)

        with pytest.raises(Unavailable, match="1048576 bytes of answers wait for this connection"):
            answers.check()
        answers.set_unsent(0)
        answers.check()

    with_answers(test)


def test_session_refuses_when_all_connections_together_have_too_much_unread() -> None:
    async def test(answers: UnreadAnswers) -> None:
        others = [UnreadAnswers(answers.budget) for _ in range(4)]
        for other in others:
            other.set_unsent(MIB // 2)

        assert answers.budget.is_crowded
        with pytest.raises(Unavailable, match="2097152 bytes of answers wait to be read"):
            answers.check()
        others[0].set_unsent(0)
        answers.check()

    with_answers(test)


def test_claim_counts_while_the_answer_is_being_made() -> None:
    async def test(answers: UnreadAnswers) -> None:
        with answers.new_answer() as memory:
            memory.take(MIB)
            with pytest.raises(Unavailable):
                memory.check()
            assert (answers.bytes, answers.owed) == (MIB, 0)

        assert (answers.bytes, answers.owed) == (MIB, MIB)

    with_answers(test)


def test_claim_of_a_call_that_failed_leaves_nothing() -> None:
    async def test(answers: UnreadAnswers) -> None:
        memory = answers.new_answer()
        memory.take(100)
        memory.__exit__(ValueError, ValueError(), None)

        assert (answers.bytes, answers.budget.bytes) == (0, 0)

    with_answers(test)


def test_answer_counts_until_it_came_out_of_the_protocol() -> None:
    async def test(answers: UnreadAnswers) -> None:
        answers.made(MIB)
        with pytest.raises(Unavailable):
            answers.check()
        assert answers.is_hoard

        answers.passed_on(MIB + 100)
        answers.made(10)
        assert (answers.bytes, answers.budget.bytes, answers.is_hoard) == (10, 10, False)
        answers.close()
        assert (answers.bytes, answers.budget.bytes) == (0, 0)

    with_answers(test)


def test_answer_that_is_made_after_the_connection_ended_counts_for_nobody() -> None:
    """Its caller is gone, so it never comes out of the protocol."""

    async def test(answers: UnreadAnswers) -> None:
        memory = answers.new_answer()
        with memory:
            memory.take(1000)
            answers.set_unsent(500)
            answers.close()
            assert answers.budget.bytes == 1000
        answers.set_unsent(500)

        assert (answers.bytes, answers.budget.bytes) == (0, 0)

    with_answers(test)


def test_claim_that_is_never_entered_holds_nothing() -> None:
    async def test(answers: UnreadAnswers) -> None:
        answers.new_answer()
        assert answers.bytes == 0

    with_answers(test)


@on_service()
async def test_poll_takes_nothing_for_one_who_does_not_read(rig: ServiceRig) -> None:
    answers = new_session(bytes_max=100 * KIB).answers
    await rig.add(b"x" * KIB)
    answers.set_unsent(100 * KIB)
    memory = answers.new_answer()

    with pytest.raises(Unavailable, match="bytes of answers wait for this connection"):
        await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0, memory=memory)

    assert (
        rig.service.queues.stats(rig.queue).ready,
        rig.service.queues.stats(rig.queue).leases,
    ) == (1, 0)


@on_service()
async def test_poll_that_waits_is_refused_when_its_turn_comes_and_the_next_is_served(
    rig: ServiceRig,
) -> None:
    answers = new_session(bytes_max=100 * KIB).answers
    memory = answers.new_answer()
    polled = rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=1000, memory=memory)
    refused = await rig.waiting(polled)
    served = await rig.waiting_poll()
    answers.set_unsent(100 * KIB)

    await rig.add(b"x")

    with pytest.raises(Unavailable):
        await refused
    assert len((await served).ids) == 1
