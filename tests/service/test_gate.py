"""The gate: how many calls are under way, and whether more may come in."""

import asyncio

import pytest

from queueber.clock import ManualClock
from queueber.errors import Unavailable
from queueber.limits import CONNECTION_CALLS_MAX, DELAY_SECONDS_MAX
from queueber.service.gate import Gate
from tests.support.service_rig import new_connection
from tests.support.virtual_loop import run_virtually, turns


def test_gate_lets_calls_in_up_to_its_limit() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=2)
        connection = new_connection()
        for _ in range(2):
            gate.check(connection)
            await turns()
            gate.enter()

        with pytest.raises(Unavailable, match="2 calls are under way, the limit"):
            gate.check(connection)

        gate.leave()
        gate.check(connection)

    run_virtually(ManualClock(), main())


def test_gate_counts_calls_that_arrive_in_one_turn_before_they_enter() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=2)
        connection = new_connection()
        gate.check(connection)
        gate.check(connection)

        with pytest.raises(Unavailable, match="2 calls are under way, the limit"):
            gate.check(connection)

        # None of them came to enter: their callers have gone.
        await turns()
        gate.check(connection)

    run_virtually(ManualClock(), main())


def test_gate_lets_one_connection_have_no_more_than_its_share() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=1_000_000)
        greedy, modest = new_connection(), new_connection()
        greedy.calls = CONNECTION_CALLS_MAX - 1
        gate.check(greedy)

        with pytest.raises(Unavailable, match="4096 calls of this connection are under way"):
            gate.check(greedy)

        gate.check(modest)
        await turns()
        gate.check(greedy)

    run_virtually(ManualClock(), main())


def test_gate_refuses_calls_of_a_connection_that_is_far_behind() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=100)
        connection = new_connection()

        def refused_of(calls: int, delay_seconds: float) -> int:
            connection.delay_seconds, connection.shed = delay_seconds, 0
            return sum(map(is_refused, range(calls)))

        def is_refused(_: int) -> bool:
            try:
                gate.check(connection)
            except Unavailable as error:
                texts.append(str(error))
                return True
            return False

        texts: list[str] = []

        assert refused_of(8, DELAY_SECONDS_MAX) == 0
        assert refused_of(8, 2 * DELAY_SECONDS_MAX) == 2
        assert refused_of(8, 3 * DELAY_SECONDS_MAX) == 4
        assert refused_of(8, 100 * DELAY_SECONDS_MAX) == 4
        assert "lie here for 1.0 s before their turn" in texts[0]

    run_virtually(ManualClock(), main())


def test_gate_that_is_closed_refuses_and_lets_those_inside_finish() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=2)
        connection = new_connection()
        gate.enter()
        gate.close()

        with pytest.raises(Unavailable, match="shutting down"):
            gate.check(connection)

        assert gate.calls == 1
        gate.leave()
        assert gate.calls == 0

    run_virtually(ManualClock(), main())


def test_wait_idle_with_no_call_under_way_returns_at_once() -> None:
    async def main() -> None:
        await Gate(asyncio.get_running_loop(), calls_max=2).wait_idle()

    run_virtually(ManualClock(), main())


def test_wait_idle_returns_when_the_last_call_leaves() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=5)
        gate.enter()
        gate.enter()
        waiting = asyncio.ensure_future(gate.wait_idle())
        await turns()

        gate.leave()
        await turns()
        assert not waiting.done()
        gate.leave()

        await waiting

    run_virtually(ManualClock(), main())


def test_wait_idle_goes_on_waiting_when_a_call_comes_back_in() -> None:
    """As a poll does that waited outside and has just been served."""

    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=5)
        gate.enter()
        waiting = asyncio.ensure_future(gate.wait_idle())
        await turns()

        gate.leave()
        gate.enter()
        await turns()

        assert not waiting.done()
        gate.leave()
        await waiting

    run_virtually(ManualClock(), main())


def test_wait_idle_that_was_cancelled_does_no_harm_to_the_last_call() -> None:
    async def main() -> None:
        gate = Gate(asyncio.get_running_loop(), calls_max=5)
        gate.enter()
        waiting = asyncio.ensure_future(gate.wait_idle())
        await turns()
        waiting.cancel()
        await asyncio.wait([waiting])

        gate.leave()

        assert gate.calls == 0

    run_virtually(ManualClock(), main())
