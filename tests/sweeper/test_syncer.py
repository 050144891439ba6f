"""The syncer: once a second when there is something to sync, and never otherwise."""

from pathlib import Path

import pytest
import trio
import trio.testing

from queueber.db.families import Family
from queueber.db.recovery.wal import read_synced
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.errors import Internal
from queueber.sweeper.loops import Syncer


def put(store: Store, key: bytes) -> None:
    batch = store.batch()
    batch.put(Family.ITEMS, key, b"x")
    store.write(batch)


async def noted_after(folder: Path, sequence: int) -> int:
    """The note, once it says more: it is written by a thread, for which no clock can be turned."""
    with trio.fail_after(300):
        while (noted := read_synced(folder)) <= sequence:  # noqa: ASYNC110  a file tells nobody
            await trio.sleep(0.1)
    return noted


def test_syncer_syncs_and_notes_what_was_written_and_then_rests(tmp_path: Path) -> None:
    syncs: list[float] = []
    folder = tmp_path / "data"

    async def main() -> None:
        with RocksStore(folder) as store:

            async def sync() -> None:
                syncs.append(trio.current_time())
                store.sync()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(Syncer(store, sync).run)
                put(store, b"a")
                first = await noted_after(folder, 0)
                await trio.sleep(10)
                assert len(syncs) == 1
                put(store, b"b")
                await noted_after(folder, first)
                assert len(syncs) == 2
                nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.01))


@pytest.mark.parametrize("error", [Internal("the sync failed"), OSError(28, "No space left")])
def test_syncer_notes_nothing_when_a_sync_fails(tmp_path: Path, error: Exception) -> None:
    async def fail() -> None:
        raise error

    async def main() -> None:
        with RocksStore(tmp_path / "data") as store:
            put(store, b"a")
            assert not await Syncer(store, fail).run_due()
            assert read_synced(tmp_path / "data") == 0

    trio.run(main)
