"""The sweeper on trio's virtual clock: asleep until something is due, and never in the way."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random

import pytest
import trio
import trio.testing

from queueber.db.store import Store
from queueber.engine.add import add
from queueber.engine.poll import poll
from queueber.engine.state import open_engine
from queueber.errors import InvariantViolation, Unavailable
from queueber.ids import IdSource
from queueber.limits import DAY_MS, MIB, STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.service.gate import Gate
from queueber.service.service import Service
from queueber.sweeper.loop import Sweeper, trio_seconds
from tests.support.folders import quick_folder
from tests.support.rig import refuse_write
from tests.support.service_rig import limits

START_MS = 1_700_000_000_000


class TrioClock:
    """The service's time, taken from trio's."""

    def now_ms(self) -> int:
        return START_MS + round(trio.current_time() * 1000)


class WatchedService(Service):
    """Notes when it was swept."""

    swept_at_ms: list[int]

    def sweep(self) -> bool:
        self.swept_at_ms.append(self._clock.now_ms() - START_MS)
        return super().sweep()


class SweeperRig:
    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop) -> None:
        self.store = store
        self.sweeper = Sweeper()
        self.engine = open_engine(store, IdSource(Random(1)))
        self.service = WatchedService(
            self.engine,
            clock=TrioClock(),
            loop=loop,
            gate=Gate(loop, calls_max=10),
            limits=limits(),
            commits=None,
            wake_sweeper=self.sweeper.wake,
        )
        self.service.swept_at_ms = []
        self.queue = self.service.default_queue

    @property
    def swept_at_ms(self) -> list[int]:
        """When the sweeper looked, from the start."""
        return self.service.swept_at_ms

    @property
    def now_ms(self) -> int:
        return TrioClock().now_ms()

    async def add(self, *contents: bytes, delay_ms: int = 0) -> list[bytes]:
        return await self.service.add(self.queue, contents, [delay_ms] * len(contents))

    @property
    def ready(self) -> int:
        return self.queue.counters.ready


@contextmanager
def _rig() -> Iterator[SweeperRig]:
    folder = quick_folder()
    # The service asks its loop for futures only when a poll waits; none does here.
    loop = asyncio.new_event_loop()
    try:
        with Store(folder / "data") as store:
            yield SweeperRig(store, loop)
    finally:
        loop.close()
        shutil.rmtree(folder)


def run_with_sweeper(body: Callable[[SweeperRig], Awaitable[None]]) -> None:
    """Run a test beside a sweeper, on time that jumps whenever nobody has anything to do."""

    async def main() -> None:
        with _rig() as rig:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(rig.sweeper.run, rig.service)
                await trio.testing.wait_all_tasks_blocked()
                await body(rig)
                nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def run_alone(body: Callable[[SweeperRig], Awaitable[None]]) -> None:
    """Run a test that calls the sweeper itself."""

    async def main() -> None:
        with _rig() as rig:
            await body(rig)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def sleep_ms(ms: int) -> None:
    await trio.sleep(ms / 1000)
    await trio.testing.wait_all_tasks_blocked()


# --- when it looks --------------------------------------------------------------------------------


def test_sweeper_with_nothing_due_never_looks() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"ready at once")

        await sleep_ms(30 * DAY_MS)

        assert rig.swept_at_ms == []

    run_with_sweeper(body)


def test_sweeper_sleeps_until_the_very_time() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"a", delay_ms=5000)

        await sleep_ms(4999)
        assert rig.ready == 0
        await sleep_ms(1)

        assert rig.ready == 1
        # Once when woken by the add, with nothing due; then at the time, and once more in vain.
        assert rig.swept_at_ms == [0, 5000, 5000]

    run_with_sweeper(body)


def test_sweeper_expires_leases_at_their_time() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"a", b"b")
        await rig.service.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
        await rig.service.poll(rig.queue, 1, lease_ms=2000, wait_ms=0)

        await sleep_ms(1000)
        assert (rig.ready, rig.queue.counters.in_progress) == (1, 1)
        await sleep_ms(1000)

        assert (rig.ready, rig.queue.counters.in_progress) == (2, 0)

    run_with_sweeper(body)


def test_sweeper_asleep_for_an_hour_is_woken_for_what_is_due_earlier() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"late", delay_ms=3_600_000)
        await sleep_ms(100)

        await rig.add(b"soon", delay_ms=10)
        await sleep_ms(10)

        assert rig.ready == 1
        await sleep_ms(3_600_000)
        assert rig.ready == 2

    run_with_sweeper(body)


def test_sweeper_is_not_woken_for_what_is_due_later() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"a", delay_ms=1000)
        await sleep_ms(1)
        looks = len(rig.swept_at_ms)

        for delay_ms in (2000, 3000, 4000):
            await rig.add(b"b", delay_ms=delay_ms)
        await sleep_ms(1)

        assert len(rig.swept_at_ms) == looks

    run_with_sweeper(body)


def test_sweeper_after_a_lease_was_removed_looks_once_in_vain_and_rests() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"a")
        polled = await rig.service.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
        await rig.service.remove(rig.queue, polled.ids, [polled.lease_id])

        await sleep_ms(30 * DAY_MS)

        assert [at_ms for at_ms in rig.swept_at_ms if at_ms > 1000] == []

    run_with_sweeper(body)


def test_sweeper_over_a_long_time_looks_only_when_something_is_due() -> None:
    async def body(rig: SweeperRig) -> None:
        times_ms = [100, 250, 250, 9000, 100_000]
        for delay_ms in times_ms:
            await rig.add(b"x", delay_ms=delay_ms)

        await sleep_ms(DAY_MS)

        assert rig.ready == 5
        assert set(rig.swept_at_ms) <= {0, *times_ms}

    run_with_sweeper(body)


# --- slices ---------------------------------------------------------------------------------------

MANY = 100_000


def _add_many(rig: SweeperRig, delay_ms: int) -> None:
    for _ in range(MANY // 10_000):
        add(rig.engine, rig.queue, [b""] * 10_000, [delay_ms] * 10_000, rig.now_ms)


def _delay_many(rig: SweeperRig) -> None:
    _add_many(rig, delay_ms=1000)


def _lease_many(rig: SweeperRig) -> None:
    _add_many(rig, delay_ms=0)
    for _ in range(MANY // 10_000):
        poll(
            rig.engine,
            rig.queue,
            [100] * 100,
            lease_ms=1000,
            answer_bytes_max=100 * MIB,
            now_ms=rig.now_ms,
        )


@pytest.mark.slow
@pytest.mark.parametrize("prepare", [_delay_many, _lease_many], ids=["delayed", "leased"])
def test_run_due_of_many_items_lets_others_have_their_turn_between_slices(
    prepare: Callable[[SweeperRig], None],
) -> None:
    async def body(rig: SweeperRig) -> None:
        prepare(rig)
        assert rig.ready == 0
        await trio.sleep(1)
        seen: list[int] = []

        async def watch() -> None:
            while True:
                seen.append(rig.ready)
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            slices = await rig.sweeper.run_due(rig.service)
            nursery.cancel_scope.cancel()

        assert rig.ready == MANY
        assert slices >= 100
        # trio shuffles who goes first in a turn, so at most two slices lie between two looks.
        assert len(seen) >= 99
        assert max(later - earlier for earlier, later in pairwise(seen)) <= 2 * SWEEP_SLICE_ITEMS

    run_alone(body)


def test_run_due_that_is_cancelled_stops_between_slices() -> None:
    async def body(rig: SweeperRig) -> None:
        add(rig.engine, rig.queue, [b""] * 5000, [1000] * 5000, rig.now_ms)
        await trio.sleep(1)
        with trio.CancelScope() as scope:
            scope.cancel()
            await rig.sweeper.run_due(rig.service)

        assert scope.cancelled_caught
        assert rig.ready == 1000

    run_alone(body)


def test_run_due_with_nothing_due_takes_no_slice() -> None:
    async def body(rig: SweeperRig) -> None:
        assert await rig.sweeper.run_due(rig.service) == 0

    run_alone(body)


# --- faults ---------------------------------------------------------------------------------------


def test_sweeper_whose_store_refuses_tries_again_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"a", delay_ms=1000)
        with monkeypatch.context() as fault:
            fault.setattr(rig.store, "write", refuse_write)
            await sleep_ms(1000 + 4 * STORE_RETRY_MS)
            assert rig.ready == 0
            tries = [at_ms for at_ms in rig.swept_at_ms if at_ms >= 1000]
            assert 3 <= len(tries) <= 6, "again and again, but not without a pause"

        await sleep_ms(2 * STORE_RETRY_MS)

        assert rig.ready == 1

    run_with_sweeper(body)


def test_sweeper_that_finds_a_broken_rule_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"a", delay_ms=1000)

        def broken(batch: object) -> None:
            raise InvariantViolation("I1 is broken")

        monkeypatch.setattr(rig.store, "write", broken)
        await sleep_ms(1000)

    with pytest.raises(ExceptionGroup) as raised:
        run_with_sweeper(body)

    assert raised.group_contains(InvariantViolation)
    assert not raised.group_contains(Unavailable)


@pytest.mark.parametrize(("ms", "seconds"), [(None, float("inf")), (0, 0.0), (1500, 1.5)])
def test_trio_seconds(ms: int | None, seconds: float) -> None:
    assert trio_seconds(ms) == seconds
