"""Calls of all kinds in any order: nobody waits for what is there, and nothing is lost."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.engine.integrity.check_store import check_store
from queueber.errors import NotFound
from queueber.limits import MINUTE_MS
from queueber.model import ItemState, Polled, QueueSettings, Receipt, Results
from tests.support.service_rig import ServiceRig, run_on_service
from tests.support.virtual_loop import turns

CONNECTIONS = (object(), object())
BATCHES = ("one", "two")


class Crowd:
    """Many callers of one queue, each of whom does one thing."""

    def __init__(self, rig: ServiceRig) -> None:
        self.rig = rig
        self.polls: list[tuple[asyncio.Task[Polled], object]] = []
        """And the connection that what it gets is bound to, if any."""
        self.waits: list[tuple[str, asyncio.Task[Receipt]]] = []
        self.reads: list[asyncio.Task[Results]] = []
        self.added: list[bytes] = []

    def poll(self, number: int) -> None:
        connection = CONNECTIONS[number % 2] if number % 3 else None
        polling = self.rig.begin_poll(
            number, wait_ms=3 * number, lease_ms=number + 2, connection=connection
        )
        self.polls.append((polling, connection))

    async def add(self, number: int, delay_ms: int = 0) -> None:
        batch = BATCHES[number % 2]
        self.added += await self.rig.add(*[b"x"] * (1 + number), delay_ms=delay_ms, batch=batch)

    async def add_delayed(self, number: int) -> None:
        await self.add(number, delay_ms=1 + number)

    def hang_up(self, number: int) -> None:
        if self.polls:
            self.polls[number % len(self.polls)][0].cancel()

    def held(self, number: int) -> Polled | None:
        """What one of the polls was given; perhaps it has lost it since."""
        given = [task.result() for task, _ in self.polls if task.done() and not task.cancelled()]
        given = [polled for polled in given if polled.ids]
        return given[number % len(given)] if given else None

    async def complete(self, number: int) -> None:
        if (polled := self.held(number)) is not None:
            await self.rig.complete(polled)

    async def fail(self, number: int) -> None:
        if (polled := self.held(number)) is not None:
            await self.rig.fail(polled, number - 1)

    async def release(self, number: int) -> None:
        if (polled := self.held(number)) is not None:
            await self.rig.service.items.release(self.rig.queue, polled.ids, [polled.lease_id])

    async def cancel(self, number: int) -> None:
        if self.added:
            chosen = [self.added[number % len(self.added)]]
            await self.rig.service.items.cancel(self.rig.queue, chosen)

    async def reschedule(self, number: int) -> None:
        if self.added:
            chosen = [self.added[number % len(self.added)]]
            await self.rig.service.items.reschedule(self.rig.queue, chosen, number % 50)

    async def purge(self, number: int) -> None:
        state = list(ItemState)[number % len(ItemState)]
        await self.rig.service.items.purge(self.rig.queue, state, number)

    async def redrive(self, number: int) -> None:
        await self.rig.service.items.redrive(self.rig.queue, [], number)

    async def pause(self, number: int) -> None:
        await self.rig.service.queues.pause(self.rig.queue, number)

    async def resume(self, number: int) -> None:
        await self.rig.service.queues.resume(self.rig.queue)

    def disconnect(self, number: int) -> None:
        self.rig.service.bound_leases.connection_ended(CONNECTIONS[number % 2])

    def wait_batch(self, number: int) -> None:
        batch = BATCHES[number % 2]
        with contextlib.suppress(NotFound):
            waiting = self.rig.service.results.wait_for_batch(self.rig.queue, batch, 4 * number)
            self.waits.append((batch, self.rig.begin(waiting)))

    def read(self, number: int) -> None:
        reading = self.rig.service.results.read_results(
            self.rig.queue, reader="", offset=0, limit=number, wait_ms=4 * number
        )
        self.reads.append(self.rig.begin(reading))

    async def assert_nobody_waits_for_what_is_there(self) -> None:
        await turns(10)
        rig = self.rig
        stats = rig.service.queues.stats(rig.queue)
        if stats.ready and not stats.paused_until_ms:
            for task, connection in self.polls:
                # A suspect may find a connection too large a company. Then whoever asks for it anew
                # gets nothing either; and where there is no connection, there is no company.
                if not task.done():
                    assert connection is not None
                    assert not (await rig.poll_now(connection=connection)).ids
        for batch, waiting in self.waits:
            if not waiting.done():
                assert not (await rig.service.results.receipt(rig.queue, batch)).complete
        if stats.results:
            assert all(reading.done() for reading in self.reads)


ACTS: dict[str, Callable[[Crowd, int], Awaitable[None] | None]] = {
    "poll": Crowd.poll,
    "add": Crowd.add,
    "add_delayed": Crowd.add_delayed,
    "hang_up": Crowd.hang_up,
    "complete": Crowd.complete,
    "fail": Crowd.fail,
    "release": Crowd.release,
    "cancel": Crowd.cancel,
    "reschedule": Crowd.reschedule,
    "purge": Crowd.purge,
    "redrive": Crowd.redrive,
    "pause": Crowd.pause,
    "resume": Crowd.resume,
    "disconnect": Crowd.disconnect,
    "wait_batch": Crowd.wait_batch,
    "read": Crowd.read,
}

acts = st.lists(
    st.tuples(
        st.integers(0, 12),  # when
        st.sampled_from(["poll", "poll", "poll", "add", "add", *ACTS]),
        st.integers(0, 5),  # how many, which one, or how long
    ),
    max_size=30,
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(acts=acts)
def test_calls_of_all_kinds_in_any_order_leave_nobody_waiting_and_lose_nothing(
    acts: list[tuple[int, str, int]],
) -> None:
    async def body(rig: ServiceRig) -> None:
        await rig.service.queues.configure_queue(
            "default", QueueSettings(attempts_max=2, backoff_ms=(3,)), rig.session
        )
        crowd = Crowd(rig)
        start_ms = rig.clock.now_ms()
        async with rig.sweeper():
            for at_ms, kind, number in sorted(acts, key=lambda act: act[0]):
                # The loop turns only when time passes: what is at one time happens in one turn.
                if (ahead_ms := start_ms + at_ms - rig.clock.now_ms()) > 0:
                    await crowd.assert_nobody_waits_for_what_is_there()
                    await asyncio.sleep(ahead_ms / 1000)
                if (doing := ACTS[kind](crowd, number)) is not None:
                    await doing
            await crowd.assert_nobody_waits_for_what_is_there()
            await asyncio.sleep(MINUTE_MS / 1000)

        tasks: list[asyncio.Task[object]] = [
            *(task for task, _ in crowd.polls), *crowd.reads, *(task for _, task in crowd.waits),
        ]  # fmt: skip
        assert all(task.done() and (task.cancelled() or not task.exception()) for task in tasks)
        stats = rig.service.queues.stats(rig.queue)
        left = stats.ready + stats.delayed + stats.leased + stats.dead
        assert left + stats.completed_total + stats.cancelled_total == len(crowd.added)
        assert stats.leased == 0, "all leases were short"
        assert (stats.waiting_polls, rig.admission.calls) == (0, 0)
        assert check_store(rig.store) == []

    run_on_service(body)
