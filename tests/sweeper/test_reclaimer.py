"""The reclaimer: asleep until a queue is deleted or a load ends, then slice by slice in threads."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from queueber.model import LoadRef, PartRef, QueueSettings
from queueber.sweeper.loops import Reclaimer
from tests.support.rig import refuse_write
from tests.sweeper.sweeper_rig import SweeperRig, run_alone, run_with_sweeper, sleep_ms


def delete_a_queue(rig: SweeperRig, name: str = "doomed") -> None:
    for coroutine in (
        rig.service.queues.create_queue(name, QueueSettings(), rig.session),
        rig.service.queues.delete_queue(name, rig.session),
    ):
        coroutine.close()  # type: ignore[attr-defined]  # written already; nobody waits for the disk


def test_reclaims_what_was_deleted_and_sleeps_again() -> None:
    async def body(rig: SweeperRig) -> None:
        reclaimer = Reclaimer()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reclaimer.run, rig.service)
            await trio.testing.wait_all_tasks_blocked()
            delete_a_queue(rig)
            assert rig.service.queues.next_reclaim() is not None

            reclaimer.wake()
            with trio.fail_after(10):
                while rig.service.queues.next_reclaim() is not None:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    run_alone(body)


def test_slices_run_in_other_threads_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: SweeperRig) -> None:
        delete_a_queue(rig)
        delete_a_queue(rig, "another")
        threads: list[int] = []
        real = rig.service.queues.reclaim_slices

        def watched(prefix: bytes) -> list[Callable[[], None]]:
            def run(each: Callable[[], None]) -> None:
                threads.append(threading.get_ident())
                each()

            return [lambda each=each: run(each) for each in real(prefix)]  # type: ignore[misc]

        monkeypatch.setattr(rig.service.queues, "reclaim_slices", watched)

        slices = await Reclaimer().run_due(rig.service)

        assert slices == len(threads) > 0
        assert threading.get_ident() not in threads
        assert rig.service.queues.next_reclaim() is None

    run_alone(body)


def test_full_disk_leaves_the_rest_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: SweeperRig) -> None:
        delete_a_queue(rig)
        with monkeypatch.context() as patch:
            patch.setattr(rig.engine.store, "write", refuse_write)
            await Reclaimer().run_due(rig.service)
            assert rig.service.queues.next_reclaim() is not None

        await Reclaimer().run_due(rig.service)

        assert rig.service.queues.next_reclaim() is None

    run_alone(body)


# --- files of loads -------------------------------------------------------------------------------


async def begin_a_load(rig: SweeperRig, name: str = "load", timeout_ms: int = 0) -> Path:
    """Returns the directory of its files."""
    ref = LoadRef(name)
    load = await rig.service.loads.begin_load(rig.queue, ref, batch="", timeout_ms=timeout_ms)
    rig.service.loads.stage_file(rig.queue, ref, PartRef(0, "a"), "a.sst", 0, b"x")
    return Path(load.directory)


def test_files_of_loads_that_have_ended_are_removed_in_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def body(rig: SweeperRig) -> None:
        aborted, kept = await begin_a_load(rig), await begin_a_load(rig, "kept")
        assert await rig.service.loads.abort_load(rig.queue, LoadRef("load"))
        threads: list[int] = []
        remove = rig.service.loads.remove_stage

        def watched(directory: str) -> None:
            threads.append(threading.get_ident())
            remove(directory)

        monkeypatch.setattr(rig.service.loads, "remove_stage", watched)

        slices = await Reclaimer().run_due(rig.service)

        assert (slices, aborted.exists(), kept.is_dir()) == (1, False, True)
        assert threading.get_ident() not in threads

    run_alone(body)


def test_files_of_a_load_that_nobody_calls_are_removed_when_its_time_is_over() -> None:
    async def body(rig: SweeperRig) -> None:
        reclaimer = Reclaimer()
        rig.service.shell.wake_reclaimer = reclaimer.wake
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reclaimer.run, rig.service)
            directory = await begin_a_load(rig, timeout_ms=5000)
            await sleep_ms(4999)
            assert directory.is_dir()

            await sleep_ms(1)

            with trio.fail_after(10):
                while directory.exists():
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert rig.service.loads.list_loads(rig.queue) == []

    run_with_sweeper(body)


def test_files_of_loads_of_a_deleted_queue_are_removed() -> None:
    async def body(rig: SweeperRig) -> None:
        rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
        directory = await begin_a_load(rig)
        assert await rig.service.queues.delete_queue("doomed", rig.session)

        await Reclaimer().run_due(rig.service)

        assert not directory.exists()

    run_alone(body)


def test_directories_without_a_record_are_removed_at_start() -> None:
    async def body(rig: SweeperRig) -> None:
        directory = await begin_a_load(rig)
        forgotten = directory.with_name("0123")
        (forgotten / "0-part").mkdir(parents=True)
        again = SweeperRig(rig.store, rig.loop)
        reclaimer = Reclaimer()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reclaimer.run, again.service)
            with trio.fail_after(10):
                while forgotten.exists():
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

        assert directory.is_dir()

    run_alone(body)
