"""Admission: how many calls are under way, and whether more may come in."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from queueber.clock import ManualClock
from queueber.errors import Unavailable
from queueber.service.session import CALLS_MAX, WAIT_SECONDS_MAX, Admission, Session
from queueber.service.unread_answers import AnswerBudget
from tests.support.virtual_loop import run_virtually, turns

Test = Callable[[Admission, Session], Awaitable[None]]


def with_admission(calls_max: int) -> Callable[[Test], Callable[[], None]]:
    def decorate(test: Test) -> Callable[[], None]:
        async def main() -> None:
            admission = Admission(asyncio.get_running_loop(), calls_max)
            await test(admission, Session(admission, AnswerBudget()))

        return lambda: run_virtually(ManualClock(), main())

    return decorate


@with_admission(calls_max=2)
async def test_calls_are_let_in_up_to_the_limit(admission: Admission, session: Session) -> None:
    for _ in range(2):
        session.admit()
        await turns()
        session.enter()

    with pytest.raises(Unavailable, match="2 calls are under way, the limit"):
        session.admit()

    session.leave()
    session.admit()


@with_admission(calls_max=2)
async def test_calls_that_arrive_in_one_turn_count_before_they_enter(
    admission: Admission, session: Session
) -> None:
    session.admit()
    session.admit()

    with pytest.raises(Unavailable, match="2 calls are under way, the limit"):
        session.admit()

    # None of them came to enter: their callers have gone.
    await turns()
    session.admit()


@with_admission(calls_max=2)
async def test_closed_server_refuses_and_lets_calls_under_way_finish(
    admission: Admission, session: Session
) -> None:
    session.enter()
    admission.close()

    with pytest.raises(Unavailable, match="shutting down"):
        session.admit()

    assert admission.calls == 1
    session.leave()
    assert admission.calls == 0


# --- holding calls back ---------------------------------------------------------------------------


def held_back(admission: Admission) -> Session:
    """A session whose adapter can stop reading calls."""
    session = Session(admission, AnswerBudget())
    session.can_hold_back = True
    return session


@with_admission(calls_max=1_000_000)
async def test_session_with_too_many_calls_is_held_back_and_not_refused(
    admission: Admission, session: Session
) -> None:
    modest, gone_on = Session(admission, AnswerBudget()), list[str]()
    for _ in range(CALLS_MAX):
        session.enter()

    assert (session.may_begin, modest.may_begin) == (False, True)
    session.hold_back(lambda: gone_on.append("went on"))
    await asyncio.sleep(10 * WAIT_SECONDS_MAX)
    assert gone_on == []
    session.leave()

    assert (gone_on, session.may_begin) == (["went on"], True)
    session.admit()


@with_admission(calls_max=2)
async def test_full_server_holds_sessions_back_and_lets_them_go_on_in_order(
    admission: Admission, session: Session
) -> None:
    others = [held_back(admission) for _ in range(3)]
    gone_on: list[int] = []
    session.enter()
    session.enter()

    def go_on(number: int) -> None:
        gone_on.append(number)
        others[number].admit()

    for number, other in enumerate(others):
        assert not other.may_begin
        other.hold_back(lambda number=number: go_on(number))  # type: ignore[misc]
    session.leave()
    await turns(1)
    assert gone_on == [0]
    session.leave()
    await turns(1)

    assert gone_on == [0, 1, 2]


@with_admission(calls_max=1)
async def test_session_that_was_held_back_for_long_enough_is_refused_until_there_is_room(
    admission: Admission, session: Session
) -> None:
    other, gone_on = held_back(admission), list[str]()
    session.enter()
    assert not other.may_begin
    other.hold_back(lambda: gone_on.append("went on"))

    await asyncio.sleep(WAIT_SECONDS_MAX - 0.1)
    assert gone_on == []
    await asyncio.sleep(0.2)
    assert (gone_on, other.may_begin) == (["went on"], True)
    with pytest.raises(Unavailable, match="1 calls are under way, the limit"):
        other.admit()

    session.leave()
    assert other.may_begin
    other.admit()


@with_admission(calls_max=1)
async def test_session_whose_connection_is_over_does_not_go_on(
    admission: Admission, session: Session
) -> None:
    other, gone_on = held_back(admission), list[str]()
    session.enter()
    other.hold_back(lambda: gone_on.append("went on"))

    other.forget_held_back()
    session.leave()
    await asyncio.sleep(2 * WAIT_SECONDS_MAX)

    assert gone_on == []


# --- the end of all calls -------------------------------------------------------------------------


@with_admission(calls_max=2)
async def test_wait_idle_with_no_call_under_way_returns_at_once(
    admission: Admission, session: Session
) -> None:
    await admission.wait_idle()


@with_admission(calls_max=5)
async def test_wait_idle_returns_when_the_last_call_leaves(
    admission: Admission, session: Session
) -> None:
    session.enter()
    session.enter()
    waiting = asyncio.ensure_future(admission.wait_idle())
    await turns()

    session.leave()
    await turns()
    assert not waiting.done()
    session.leave()

    await waiting


@with_admission(calls_max=5)
async def test_wait_idle_goes_on_waiting_when_a_call_comes_back_in(
    admission: Admission, session: Session
) -> None:
    """As a poll does that waited outside and has just been served."""
    session.enter()
    waiting = asyncio.ensure_future(admission.wait_idle())
    await turns()

    session.leave()
    session.enter()
    await turns()

    assert not waiting.done()
    session.leave()
    await waiting


@with_admission(calls_max=5)
async def test_wait_idle_that_was_cancelled_does_no_harm_to_the_last_call(
    admission: Admission, session: Session
) -> None:
    session.enter()
    waiting = asyncio.ensure_future(admission.wait_idle())
    await turns()
    waiting.cancel()
    await asyncio.wait([waiting])

    session.leave()

    assert admission.calls == 0


@with_admission(calls_max=1)
async def test_caller_that_is_held_back_goes_on_when_a_call_was_refused_before_it_began(
    admission: Admission, session: Session
) -> None:
    """Such a call never enters or leaves, and nobody else would wake who waits for its room."""
    let_in: list[str] = []
    session.admit()
    admission.hold_back(lambda: let_in.append("held back"))
    assert admission.is_full

    await turns()

    assert let_in == ["held back"]
