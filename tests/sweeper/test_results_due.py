"""Results that are old, too many or read: the sweeper deletes them in time, and then rests."""

import pytest

from queueber.errors import Unavailable
from queueber.limits import DAY_MS, HOUR_MS, KIB, STORE_RETRY_MS
from queueber.model import LogStats, QueueSettings
from tests.support.rig import refuse_write
from tests.sweeper.sweeper_rig import SweeperRig, run_alone, run_with_sweeper, sleep_ms


async def complete(rig: SweeperRig, *results: bytes) -> None:
    """One block of results."""
    await rig.add(*[b"x"] * len(results))
    polled = await rig.service.polls.poll(rig.queue, len(results), lease_ms=1000, wait_ms=0)
    await rig.service.items.complete(rig.queue, polled.ids, [polled.lease_id], results)


async def configure(rig: SweeperRig, settings: QueueSettings) -> None:
    await rig.service.queues.configure_queue("default", settings, rig.session)


def log(rig: SweeperRig) -> LogStats:
    return rig.service.results.results_stats(rig.queue)


def looks_after(rig: SweeperRig, after_ms: int) -> list[int]:
    """When the sweeper looked; once it has done something it looks again, in vain."""
    return [at_ms for at_ms in rig.swept_at_ms if at_ms > after_ms]


# --- age ------------------------------------------------------------------------------------------


def test_sweeper_deletes_results_at_the_very_time_that_they_are_too_old() -> None:
    async def body(rig: SweeperRig) -> None:
        await configure(rig, QueueSettings(result_age_ms=DAY_MS))
        await complete(rig, b"first", b"second")
        await sleep_ms(HOUR_MS)
        await complete(rig, b"third")

        await sleep_ms(DAY_MS - HOUR_MS - 1)
        assert log(rig).first_offset == 0
        await sleep_ms(1)
        assert log(rig).first_offset == 2
        await sleep_ms(HOUR_MS - 1)
        assert log(rig).first_offset == 2
        await sleep_ms(1)

        assert (log(rig).first_offset, log(rig).bytes) == (3, 0)
        later_ms = DAY_MS + HOUR_MS
        assert looks_after(rig, HOUR_MS + 1000) == [DAY_MS, DAY_MS, later_ms, later_ms]
        await sleep_ms(30 * DAY_MS)
        assert looks_after(rig, later_ms) == []

    run_with_sweeper(body)


def test_sweeper_of_results_that_are_kept_forever_never_looks_for_them() -> None:
    async def body(rig: SweeperRig) -> None:
        await configure(rig, QueueSettings(result_age_ms=0))
        await complete(rig, b"kept")

        await sleep_ms(1000 * DAY_MS)

        assert log(rig).next_offset - log(rig).first_offset == 1
        assert looks_after(rig, 1000) == []

    run_with_sweeper(body)


def test_sweeper_is_woken_when_a_setting_makes_results_too_old() -> None:
    async def body(rig: SweeperRig) -> None:
        await complete(rig, b"old")
        await sleep_ms(DAY_MS)

        await configure(rig, QueueSettings(result_age_ms=HOUR_MS))
        await sleep_ms(0)

        assert log(rig).first_offset == 1

    run_with_sweeper(body)


# --- size -----------------------------------------------------------------------------------------


def test_sweeper_deletes_what_is_over_the_size_at_once_and_rests() -> None:
    async def body(rig: SweeperRig) -> None:
        await configure(rig, QueueSettings(result_age_ms=0, result_bytes_max=10 * KIB))
        for _ in range(50):
            await complete(rig, bytes(KIB))
            await sleep_ms(1)
            assert log(rig).bytes < 12 * KIB

        assert log(rig).bytes >= 10 * KIB
        assert log(rig).next_offset == 50
        # For each result it is woken at most twice, by the lease and by the size, and looks again
        # when it has done something.
        assert len(rig.swept_at_ms) <= 50 * 4
        await sleep_ms(2000)
        looks = len(rig.swept_at_ms)
        await sleep_ms(30 * DAY_MS)
        assert len(rig.swept_at_ms) == looks

    run_with_sweeper(body)


# --- readers --------------------------------------------------------------------------------------


def test_sweeper_deletes_what_all_readers_have_read_at_once() -> None:
    async def body(rig: SweeperRig) -> None:
        await complete(rig, b"0")
        await complete(rig, b"1")
        await sleep_ms(2000)
        await rig.service.results.ack_results(rig.queue, "slow", 0)
        await rig.service.results.ack_results(rig.queue, "quick", 2)
        await sleep_ms(1)
        assert looks_after(rig, 1999) == []

        await rig.service.results.ack_results(rig.queue, "slow", 1)
        await sleep_ms(1)

        assert log(rig).first_offset == 1
        assert looks_after(rig, 1999) == [2001, 2001]

    run_with_sweeper(body)


@pytest.mark.parametrize("acknowledged", range(3, 8))
def test_sweeper_after_a_trim_that_keeps_part_of_what_is_read_does_not_look_again(
    acknowledged: int,
) -> None:
    """A block goes when all of it is read; until then nothing is due."""

    async def body(rig: SweeperRig) -> None:
        await configure(rig, QueueSettings(result_age_ms=0))
        await complete(rig, b"0", b"1", b"2")
        await complete(rig, *[b"%d" % n for n in range(3, 9)])
        await sleep_ms(2000)

        await rig.service.results.ack_results(rig.queue, "reader", acknowledged)
        await sleep_ms(30 * DAY_MS)

        assert log(rig).first_offset == 3
        assert looks_after(rig, 1999) == [2000, 2000]

    run_with_sweeper(body)


def test_sweeper_is_not_woken_by_an_ack_that_lets_no_block_go() -> None:
    async def body(rig: SweeperRig) -> None:
        await complete(rig, b"0", b"1")
        await sleep_ms(2000)

        await rig.service.results.ack_results(rig.queue, "reader", 1)
        await sleep_ms(1)

        assert looks_after(rig, 1999) == []

    run_with_sweeper(body)


# --- faults and restarts --------------------------------------------------------------------------


def test_sweeper_whose_store_refuses_to_delete_results_tries_again_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(rig: SweeperRig) -> None:
        await complete(rig, b"0")
        await sleep_ms(2000)
        await rig.service.results.ack_results(rig.queue, "reader", 1)
        with monkeypatch.context() as fault:
            fault.setattr(rig.store, "write", refuse_write)
            await sleep_ms(4 * STORE_RETRY_MS)
            assert log(rig).first_offset == 0
            assert len(looks_after(rig, 1999)) <= 5

        await sleep_ms(STORE_RETRY_MS)

        assert log(rig).first_offset == 1

    run_with_sweeper(body)


def test_results_that_came_due_while_the_server_was_down_go_when_it_is_up() -> None:
    async def body(rig: SweeperRig) -> None:
        await configure(rig, QueueSettings(result_age_ms=DAY_MS))
        await complete(rig, b"old")

        again = SweeperRig(rig.store, rig.loop)
        assert again.service.next_due_in_ms() == 1000  # the lease was due then, as far as we know
        await sleep_ms(1000)
        await again.sweeper.run_due(again.service)
        assert again.service.next_due_in_ms() == DAY_MS - 1000
        await sleep_ms(DAY_MS - 1000)
        once_more = SweeperRig(rig.store, rig.loop)
        assert once_more.service.next_due_in_ms() == 0
        await once_more.sweeper.run_due(once_more.service)

        assert log(once_more).first_offset == 1
        assert once_more.service.next_due_in_ms() is None

    run_alone(body)


def test_results_that_were_read_before_a_restart_go_after_it() -> None:
    async def body(rig: SweeperRig) -> None:
        await complete(rig, b"read")
        await rig.service.results.ack_results(rig.queue, "reader", 1)

        again = SweeperRig(rig.store, rig.loop)
        await again.sweeper.run_due(again.service)

        assert log(again).first_offset == 1

    run_alone(body)


def test_sweep_that_the_store_refuses_is_told_to_its_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(rig: SweeperRig) -> None:
        await complete(rig, b"read")
        await rig.service.results.ack_results(rig.queue, "reader", 1)
        monkeypatch.setattr(rig.store, "write", refuse_write)

        with pytest.raises(Unavailable):
            rig.service.sweep()

        assert rig.service.next_due_in_ms() == STORE_RETRY_MS

    run_alone(body)
