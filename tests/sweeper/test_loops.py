"""The sweeper on trio's virtual clock: asleep until something is due, and never in the way."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import trio
import trio.testing

from queueber.errors import InvariantViolation, Unavailable
from queueber.limits import DAY_MS, MIB, STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import HistorySpan, NewItems
from queueber.sweeper.loops import Sampler
from tests.support.operations import add, poll
from tests.support.rig import refuse_write
from tests.sweeper.sweeper_rig import START_MS, SweeperRig, run_alone, run_with_sweeper, sleep_ms

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
        await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
        await rig.service.polls.poll(rig.queue, 1, lease_ms=2000, wait_ms=0)

        await sleep_ms(1000)
        assert (rig.ready, rig.queue.state.counters.leased) == (1, 1)
        await sleep_ms(1000)

        assert (rig.ready, rig.queue.state.counters.leased) == (2, 0)

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
        polled = await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
        await rig.service.items.remove(rig.queue, polled.ids, [polled.lease_id])

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
        # Items with a delay of their own each are runs of their own.
        delays_ms = [delay_ms - n % 2 for n in range(10_000)] if delay_ms else []
        add(rig.engine, rig.queue.state, NewItems([b""] * 10_000, delays_ms), rig.now_ms)


def _delay_many(rig: SweeperRig) -> None:
    _add_many(rig, delay_ms=1000)


def _lease_many(rig: SweeperRig) -> None:
    _add_many(rig, delay_ms=0)
    for _ in range(MANY // 10_000):
        poll(
            rig.engine,
            rig.queue.state,
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
        delays_ms = [1000 - n % 2 for n in range(5000)]
        add(rig.engine, rig.queue.state, NewItems([b""] * 5000, delays_ms), rig.now_ms)
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


# --- samples --------------------------------------------------------------------------------------


def test_sampler_takes_a_point_of_each_queue_every_ten_seconds() -> None:
    async def body(rig: SweeperRig) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Sampler().run, rig.service)
            await sleep_ms(5_000)
            await rig.add(*[b"x"] * 10)
            await sleep_ms(16_000)
            nursery.cancel_scope.cancel()

        found = rig.service.measures.histories(["default"], [], HistorySpan.HOUR, 0, rig.session)
        history = found.queues["default"]
        assert history.end_ms == START_MS + 20_000
        assert history.series["ready"] == [0, 10, 10]
        assert history.series["added_per_s"] == [0, 1, 0]

    run_alone(body)
