"""Whether the server answers: each change is logged once, and everybody who asked is told."""

import asyncio
from collections.abc import Callable

import structlog
from structlog.testing import capture_logs

from queueber.errors import Unavailable
from queueber.worker.pool.server_health import ServerHealth
from queueber.worker.progress import Counters


def run_with_health(use: Callable[[ServerHealth], None]) -> tuple[Counters, list[str]]:
    """The counters, and the events that were logged."""
    counters = Counters()

    async def main() -> None:
        use(ServerHealth(structlog.get_logger(), counters))

    with capture_logs() as logs:
        asyncio.run(main())
    return counters, [log["event"] for log in logs]


def test_every_lease_check_is_called_when_the_server_answers_again() -> None:
    called: list[str] = []

    def use(health: ServerHealth) -> None:
        health.on_leases_in_doubt(lambda: called.append("first"))
        health.on_leases_in_doubt(lambda: called.append("second"))
        health.answered()
        assert called == []
        health.failed(Unavailable("no answer"))
        health.answered()

    counters, events = run_with_health(use)

    assert called == ["first", "second"]
    assert events == ["server_unreachable", "server_reachable"]
    assert counters.is_connected


def test_the_first_answer_is_told_once() -> None:
    told: list[str] = []

    def use(health: ServerHealth) -> None:
        health.on_connected = lambda: told.append("connected")
        health.failed(Unavailable("no answer"))
        assert told == []
        health.answered()
        health.failed(Unavailable("no answer"))
        health.answered()

    run_with_health(use)

    assert told == ["connected"]


def test_a_server_that_stays_unreachable_is_logged_once() -> None:
    def use(health: ServerHealth) -> None:
        for _ in range(3):
            health.failed(Unavailable("no answer"))

    counters, events = run_with_health(use)

    assert events == ["server_unreachable"]
    assert counters.is_connected is False


def test_before_the_first_answer_a_pool_is_connecting_and_not_disconnected() -> None:
    counters = Counters()

    before = counters.stats(in_flight=0, waiting=0)
    counters.is_connected = False
    after = counters.stats(in_flight=0, waiting=0)

    assert (before.processes, before.connecting, before.disconnected) == (1, 1, 0)
    assert (after.processes, after.connecting, after.disconnected) == (1, 0, 1)
