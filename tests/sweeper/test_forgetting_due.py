"""What is forgotten and what is paused: the sweeper sees to it at the very time, and then rests."""

from collections.abc import Awaitable, Callable

import pytest

from queueber.limits import (
    BATCH_KEEP_MS,
    DAY_MS,
    HOUR_MS,
    KEPT_KEYS_LOOK_MS,
    MINUTE_MS,
    PRODUCER_KEEP_MS,
)
from queueber.model import ItemState, NewItems, Producer, QueueSettings
from tests.support.dumps import dump
from tests.sweeper.sweeper_rig import SweeperRig, run_alone, run_with_sweeper, sleep_ms

BATCH = "fan-out"


def looks_after(rig: SweeperRig, after_ms: int) -> list[int]:
    """When the sweeper looked; once it has done something it looks again, in vain."""
    return [at_ms for at_ms in rig.swept_at_ms if at_ms > after_ms]


def batches(rig: SweeperRig) -> int:
    return rig.service.queues.stats(rig.queue).batches


# --- keys -----------------------------------------------------------------------------------------


def test_sweeper_forgets_a_key_at_the_very_time_that_its_window_is_over() -> None:
    """The item is gone by then."""

    async def body(rig: SweeperRig) -> None:
        await _set_window(rig)
        await rig.service.items.cancel(rig.queue, await rig.add(b"x", keys=["k"]))

        await sleep_ms(MINUTE_MS - 1)
        assert _key_entries(rig) == (1, 1)
        await sleep_ms(1)

        assert _key_entries(rig) == (0, 0)
        assert looks_after(rig, 0) == [MINUTE_MS, MINUTE_MS]
        await sleep_ms(30 * DAY_MS)
        assert looks_after(rig, MINUTE_MS) == []

    run_with_sweeper(body)


def test_sweeper_looks_at_a_key_again_for_as_long_as_its_item_is_in_the_queue() -> None:
    async def body(rig: SweeperRig) -> None:
        await _set_window(rig)
        ids = await rig.add(b"x", keys=["k"])
        await sleep_ms(MINUTE_MS)
        assert _key_entries(rig) == (1, 1)
        times = [MINUTE_MS + n * KEPT_KEYS_LOOK_MS for n in range(4)]

        await sleep_ms(3 * KEPT_KEYS_LOOK_MS - 1)
        assert looks_after(rig, 0) == [at_ms for at_ms in times[:3] for _ in range(2)]
        assert await rig.service.items.cancel(rig.queue, ids) == [True]
        assert _key_entries(rig) == (1, 1)
        await sleep_ms(1)

        assert _key_entries(rig) == (0, 0)
        assert looks_after(rig, times[2]) == [times[3], times[3]]
        await sleep_ms(30 * DAY_MS)
        assert looks_after(rig, times[3]) == []

    run_with_sweeper(body)


async def _set_window(rig: SweeperRig) -> None:
    settings = QueueSettings(dedup_window_ms=MINUTE_MS)
    await rig.service.queues.configure_queue("default", settings, rig.session)


def _key_entries(rig: SweeperRig) -> tuple[int, int]:
    """How many keys the queue knows, and how many entries say when to look at them."""
    stored = dump(rig.store)
    return len(stored["keys"]), len(stored["forget"])


def test_sweeper_is_not_woken_by_a_duplicate() -> None:
    async def body(rig: SweeperRig) -> None:
        ids = await rig.add(b"x", keys=["k"])
        await sleep_ms(1)
        looks = len(rig.swept_at_ms)

        assert await rig.add(b"x", keys=["k"]) == ids
        await sleep_ms(1)

        assert len(rig.swept_at_ms) == looks

    run_with_sweeper(body)


# --- producers ------------------------------------------------------------------------------------


def test_sweeper_forgets_a_producer_so_long_after_its_last_call() -> None:
    async def send(rig: SweeperRig, sequence: int) -> bool:
        producer = Producer("spark", epoch=1, sequence=sequence)
        return (
            await rig.service.items.add(rig.queue, NewItems([b"x"], producer=producer))
        ).is_repeat

    async def body(rig: SweeperRig) -> None:
        assert not await send(rig, 1)
        await sleep_ms(HOUR_MS)
        assert not await send(rig, 2)

        await sleep_ms(PRODUCER_KEEP_MS - 1)
        assert await send(rig, 2), "it is still known, and a repeat is no activity"
        await sleep_ms(1)

        assert dump(rig.store)["producers"] == []
        # Looked at when its first call was so long ago, and put off.
        first_ms, last_ms = PRODUCER_KEEP_MS, PRODUCER_KEEP_MS + HOUR_MS
        assert looks_after(rig, HOUR_MS) == [first_ms, first_ms, last_ms, last_ms]
        await sleep_ms(30 * DAY_MS)
        assert looks_after(rig, last_ms) == []
        assert not await send(rig, 1)

    run_with_sweeper(body)


# --- batches --------------------------------------------------------------------------------------


async def _complete(rig: SweeperRig, ids: list[bytes]) -> None:
    polled = await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
    await rig.service.items.complete(rig.queue, polled.ids, [polled.lease_id], [b""])


async def _remove(rig: SweeperRig, ids: list[bytes]) -> None:
    polled = await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
    await rig.service.items.remove(rig.queue, polled.ids, [polled.lease_id])


async def _fail(rig: SweeperRig, ids: list[bytes]) -> None:
    polled = await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
    await rig.service.items.fail(rig.queue, polled.ids, [polled.lease_id], ["why"], [])


async def _lose_the_connection(rig: SweeperRig, ids: list[bytes]) -> None:
    await rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0, connection=rig)
    rig.service.bound_leases.connection_ended(rig)


async def _cancel(rig: SweeperRig, ids: list[bytes]) -> None:
    assert await rig.service.items.cancel(rig.queue, ids) == [True]


async def _purge(rig: SweeperRig, ids: list[bytes]) -> None:
    assert await rig.service.items.purge(rig.queue, ItemState.READY, 0) == (1, False)


ENDS: dict[str, Callable[[SweeperRig, list[bytes]], Awaitable[None]]] = {
    "complete": _complete,
    "remove": _remove,
    "fail": _fail,
    "connection ended": _lose_the_connection,
    "cancel": _cancel,
    "purge": _purge,
}


@pytest.mark.parametrize("end", ENDS)
def test_sweeper_forgets_a_batch_so_long_after_its_end_however_it_ended(end: str) -> None:
    async def body(rig: SweeperRig) -> None:
        settings = QueueSettings(attempts_max=1, result_age_ms=0)
        await rig.service.queues.configure_queue("default", settings, rig.session)
        ids = await rig.add(b"x", batch=BATCH)
        await sleep_ms(HOUR_MS)
        await ENDS[end](rig, ids)

        await sleep_ms(BATCH_KEEP_MS - 1)
        assert batches(rig) == 1
        await sleep_ms(1)

        assert batches(rig) == 0
        end_ms = HOUR_MS + BATCH_KEEP_MS
        assert looks_after(rig, HOUR_MS + 1000) == [end_ms, end_ms]
        await sleep_ms(30 * DAY_MS)
        assert looks_after(rig, end_ms) == []

    run_with_sweeper(body)


def test_sweeper_does_not_forget_a_batch_that_goes_on_after_its_end() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.service.queues.configure_queue(
            "default", QueueSettings(result_age_ms=0), rig.session
        )
        await _complete(rig, await rig.add(b"x", batch=BATCH))
        await sleep_ms(HOUR_MS)
        ids = await rig.add(b"y", batch=BATCH)

        await sleep_ms(10 * BATCH_KEEP_MS)
        assert batches(rig) == 1
        await _complete(rig, ids)
        await sleep_ms(BATCH_KEEP_MS - 1)
        assert batches(rig) == 1
        await sleep_ms(1)

        assert batches(rig) == 0

    run_with_sweeper(body)


# --- pause ----------------------------------------------------------------------------------------


def test_sweeper_ends_a_pause_at_the_very_time() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"x")
        await rig.service.queues.pause(rig.queue, HOUR_MS)

        await sleep_ms(HOUR_MS - 1)
        assert rig.queue.state.paused_until_ms
        await sleep_ms(1)

        assert rig.queue.state.paused_until_ms == 0
        assert looks_after(rig, 0) == [HOUR_MS, HOUR_MS]
        await sleep_ms(30 * DAY_MS)
        assert looks_after(rig, HOUR_MS) == []

    run_with_sweeper(body)


def test_sweeper_of_a_pause_until_resumed_never_looks() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.add(b"x")
        await rig.service.queues.pause(rig.queue, 0)

        await sleep_ms(1000 * DAY_MS)

        assert rig.queue.state.paused_until_ms
        assert rig.swept_at_ms == []

    run_with_sweeper(body)


def test_sweeper_after_a_pause_was_ended_early_looks_once_in_vain_and_rests() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.service.queues.pause(rig.queue, HOUR_MS)
        await rig.service.queues.resume(rig.queue)

        await sleep_ms(30 * DAY_MS)

        assert looks_after(rig, 0) == [HOUR_MS, HOUR_MS]

    run_with_sweeper(body)


def test_pause_and_forgetting_are_due_at_their_time_after_a_restart() -> None:
    async def body(rig: SweeperRig) -> None:
        await rig.service.queues.pause(rig.queue, HOUR_MS)
        ids = await rig.add(b"x", keys=["k"])

        again = SweeperRig(rig.store, rig.loop)
        window_ms = rig.queue.state.settings.dedup_window_ms
        assert again.service.next_due_in_ms() == window_ms
        await sleep_ms(window_ms)
        await again.sweeper.run_due(again.service)
        assert again.service.next_due_in_ms() == HOUR_MS - window_ms
        await sleep_ms(HOUR_MS - window_ms)
        await again.sweeper.run_due(again.service)

        assert again.queue.state.paused_until_ms == 0
        # The item is there, so its key is looked at again; without it nothing is due any more.
        left_ms = window_ms + KEPT_KEYS_LOOK_MS - HOUR_MS
        assert again.service.next_due_in_ms() == left_ms
        assert await again.service.items.cancel(again.queue, ids) == [True]
        await sleep_ms(left_ms)
        await again.sweeper.run_due(again.service)
        assert _key_entries(again) == (0, 0)
        assert again.service.next_due_in_ms() is None

    run_alone(body)
