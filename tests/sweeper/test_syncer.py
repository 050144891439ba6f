"""The syncer: once a second when there is something to sync, and never otherwise."""

from pathlib import Path

import pytest
import trio
import trio.testing

from queueber.db.families import Family
from queueber.db.store import Store
from queueber.db.synced import read_synced
from queueber.errors import Internal
from queueber.sweeper.syncer import Syncer


def put(store: Store, key: bytes) -> None:
    batch = store.batch()
    batch.put(Family.ITEMS, key, b"x")
    store.write(batch)


def test_syncer_syncs_and_notes_what_was_written_and_then_rests(tmp_path: Path) -> None:
    syncs: list[float] = []

    async def main() -> None:
        with Store(tmp_path / "data") as store:

            async def sync() -> None:
                syncs.append(trio.current_time())
                store.sync()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(Syncer(store, sync).run)
                put(store, b"a")
                await trio.sleep(1.5)
                first = read_synced(tmp_path / "data")
                await trio.sleep(10)
                put(store, b"b")
                await trio.sleep(1)
                assert len(syncs) == 2
                assert read_synced(tmp_path / "data") > first > 0
                nursery.cancel_scope.cancel()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.01))


@pytest.mark.parametrize("error", [Internal("the sync failed"), OSError(28, "No space left")])
def test_syncer_notes_nothing_when_a_sync_fails(tmp_path: Path, error: Exception) -> None:
    async def fail() -> None:
        raise error

    async def main() -> None:
        with Store(tmp_path / "data") as store:
            put(store, b"a")
            assert not await Syncer(store, fail).run_due()
            assert read_synced(tmp_path / "data") == 0

    trio.run(main)
