"""The reclaimer: asleep until a queue is deleted, then slice by slice, each in a thread."""

import threading
from collections.abc import Callable

import pytest
import trio
import trio.testing

from queueber.model import QueueSettings
from queueber.sweeper.reclaimer import Reclaimer
from tests.support.rig import refuse_write
from tests.sweeper.sweeper_rig import SweeperRig, run_alone


def delete_a_queue(rig: SweeperRig, name: str = "doomed") -> None:
    for coroutine in (
        rig.service.create_queue(name, QueueSettings()),
        rig.service.delete_queue(name),
    ):
        coroutine.close()  # type: ignore[attr-defined]  # written already; nobody waits for the disk


def test_reclaims_what_was_deleted_and_sleeps_again() -> None:
    async def body(rig: SweeperRig) -> None:
        reclaimer = Reclaimer()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(reclaimer.run, rig.service)
            await trio.testing.wait_all_tasks_blocked()
            delete_a_queue(rig)
            assert rig.service.next_reclaim() is not None

            reclaimer.wake()
            with trio.fail_after(10):
                while rig.service.next_reclaim() is not None:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    run_alone(body)


def test_slices_run_in_other_threads_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: SweeperRig) -> None:
        delete_a_queue(rig)
        delete_a_queue(rig, "another")
        threads: list[int] = []
        real = rig.service.reclaim_slices

        def watched(prefix: bytes) -> list[Callable[[], None]]:
            def run(each: Callable[[], None]) -> None:
                threads.append(threading.get_ident())
                each()

            return [lambda each=each: run(each) for each in real(prefix)]  # type: ignore[misc]

        monkeypatch.setattr(rig.service, "reclaim_slices", watched)

        slices = await Reclaimer().run_due(rig.service)

        assert slices == len(threads) > 0
        assert threading.get_ident() not in threads
        assert rig.service.next_reclaim() is None

    run_alone(body)


def test_full_disk_leaves_the_rest_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: SweeperRig) -> None:
        delete_a_queue(rig)
        with monkeypatch.context() as patch:
            patch.setattr(rig.engine.store, "write", refuse_write)
            await Reclaimer().run_due(rig.service)
            assert rig.service.next_reclaim() is not None

        await Reclaimer().run_due(rig.service)

        assert rig.service.next_reclaim() is None

    run_alone(body)
