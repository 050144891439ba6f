"""Backups: whole, kept for those who read them, and for no longer than they may be."""

from pathlib import Path

import pytest

from queueber.db.store.contract import Store
from queueber.db.store.format import FORMAT
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.errors import InvalidArgument, NotFound, OutOfRange, ResourceExhausted, Unavailable
from queueber.limits import BACKUP_CHUNK_BYTES, BACKUP_KEEP_MS, BACKUPS_MAX
from queueber.model import BackupInfo, LoadState
from tests.support.dumps import Dump, dump
from tests.support.service_loads import LOAD, begin, commit, ready, staged
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns


async def backup(rig: ServiceRig) -> BackupInfo:
    return await rig.begin(rig.service.backups.begin_backup(rig.session))


async def read(rig: ServiceRig, info: BackupInfo, name: str, offset: int = 0) -> bytes:
    return await rig.service.backups.read_backup(info.id, name, offset=offset, count=0)


async def restore(rig: ServiceRig, info: BackupInfo) -> Path:
    folder = rig.store.checkpoints_path.parent.parent / info.id.hex()
    folder.mkdir()
    for file in info.files:
        data = await read(rig, info, file.name)
        assert len(data) == file.size
        (folder / file.name).write_bytes(data)
    return folder


def shared(store: Store) -> Dump:
    found = dump(store)
    found["default"] = [entry for entry in found["default"] if entry[0] != b"synced"]
    return found


def kept(rig: ServiceRig) -> list[str]:
    path = rig.store.checkpoints_path
    return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []


def reclaim(rig: ServiceRig) -> None:
    while (name := rig.service.backups.take_stale_checkpoint()) is not None:
        rig.service.backups.remove_checkpoint(name)


@on_service()
async def test_backup_holds_all_that_was_there_and_nothing_that_came_later(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", b"c")
    await rig.complete(await rig.poll_now(), b"done")
    await rig.add(b"d", delay_ms=1000)
    before = shared(rig.store)

    info = await backup(rig)
    await rig.add(b"later")
    folder = await restore(rig, info)

    with RocksStore(folder) as copy:
        assert shared(copy) == before
        assert check_store(copy) == []
    assert (info.format, info.queues, info.items, info.topics) == (FORMAT, 1, 3, 0)
    assert info.taken_at_ms == rig.clock.now_ms()
    assert info.expires_at_ms == rig.clock.now_ms() + BACKUP_KEEP_MS


@on_service()
async def test_file_is_read_in_parts_and_nothing_beyond_it(rig: ServiceRig) -> None:
    info = await backup(rig)
    current = next(file for file in info.files if file.name == "CURRENT")
    backups = rig.service.backups

    whole = await read(rig, info, "CURRENT")
    assert len(whole) == current.size
    parts = [await backups.read_backup(info.id, "CURRENT", offset=n, count=1) for n in range(4)]
    assert b"".join(parts) == whole[:4]
    assert await read(rig, info, "CURRENT", current.size) == b""
    with pytest.raises(OutOfRange, match=f"'CURRENT' has {current.size} bytes, and"):
        backups.read_backup(info.id, "CURRENT", offset=current.size + 1, count=1)
    with pytest.raises(InvalidArgument, match="bytes: 1048577 are too many"):
        backups.read_backup(info.id, "CURRENT", offset=0, count=BACKUP_CHUNK_BYTES + 1)
    for name in ("none", "../../data/CURRENT", "", ".."):
        with pytest.raises(InvalidArgument, match="file: the backup has no file"):
            backups.read_backup(info.id, name, offset=0, count=1)
    with pytest.raises(NotFound, match="the backup has ended, or there was none"):
        backups.read_backup(bytes(16), "CURRENT", offset=0, count=1)


@on_service()
async def test_backup_that_is_ended_leaves_no_files(rig: ServiceRig) -> None:
    info = await backup(rig)
    wakes = rig.reclaimer_wakes
    assert kept(rig) == [info.id.hex()]

    assert rig.service.backups.end_backup(info.id)
    assert not rig.service.backups.end_backup(info.id)

    assert rig.reclaimer_wakes == wakes + 1
    reclaim(rig)
    assert kept(rig) == []
    with pytest.raises(NotFound, match="begin another"):
        rig.service.backups.read_backup(info.id, "CURRENT", offset=0, count=1)


@on_service()
async def test_backup_ends_when_nobody_reads_it_for_a_while(rig: ServiceRig) -> None:
    info, unread = await backup(rig), await backup(rig)
    async with rig.sweeper():
        await rig.service.shell.sleep(BACKUP_KEEP_MS - 1)
        await read(rig, info, "CURRENT")
        await rig.service.shell.sleep(1)
        with pytest.raises(NotFound):
            await read(rig, unread, "CURRENT")
        await read(rig, info, "CURRENT")

        await rig.service.shell.sleep(BACKUP_KEEP_MS + 1)

        with pytest.raises(NotFound):
            await read(rig, info, "CURRENT")
    reclaim(rig)
    assert kept(rig) == []


@on_service()
async def test_backups_have_a_limit(rig: ServiceRig) -> None:
    infos = [await backup(rig) for _ in range(BACKUPS_MAX)]

    with pytest.raises(ResourceExhausted, match="4 backups are being read, the limit"):
        rig.service.backups.begin_backup(rig.session)
    assert len(kept(rig)) == BACKUPS_MAX

    rig.service.backups.end_backup(infos[0].id)
    await backup(rig)


@on_service()
async def test_backup_whose_caller_has_gone_is_made_and_expires(rig: ServiceRig) -> None:
    begun = rig.begin(rig.service.backups.begin_backup(rig.session))
    await turns(1)
    begun.cancel()
    await turns(20)

    assert begun.cancelled()
    assert len(kept(rig)) == 1
    assert rig.admission.calls == 0
    rig.clock.advance(BACKUP_KEEP_MS)
    rig.service.sweep()
    reclaim(rig)
    assert kept(rig) == []


@on_service()
async def test_start_removes_what_a_crash_left_and_a_stop_leaves_nothing(rig: ServiceRig) -> None:
    info = await backup(rig)

    restarted = rig.restarted()
    reclaim(restarted)
    assert kept(rig) == []

    await backup(restarted)
    restarted.service.backups.server_stops()
    assert kept(rig) == []
    with pytest.raises(NotFound):
        restarted.service.backups.read_backup(info.id, "CURRENT", offset=0, count=1)


@on_service()
async def test_backup_that_cannot_be_made_is_refused_and_forgotten(
    rig: ServiceRig,
) -> None:
    rig.store.checkpoints_path.write_text("not a directory")
    for _ in range(BACKUPS_MAX + 1):
        with pytest.raises(Unavailable, match="no checkpoint could be made"):
            await backup(rig)
    assert rig.admission.calls == 0

    rig.store.checkpoints_path.unlink()
    await backup(rig)


# --- loads ----------------------------------------------------------------------------------------


@on_service()
async def test_load_that_is_not_committed_is_left_out_and_has_to_be_run_again(
    rig: ServiceRig,
) -> None:
    parts = await staged(rig)
    info = await backup(rig)
    folder = await restore(rig, info)

    with RocksStore(folder) as copy:
        assert check_store(copy) == []
        restored = ServiceRig(copy, rig.clock, rig.loop, rig.service.limits, None)
        with pytest.raises(InvalidArgument, match=r"has lost its file .*; stage it again"):
            await commit(restored, parts)
        assert await restored.service.loads.abort_load(restored.queue, LOAD)
        await commit(restored, await staged(restored))
        assert ready(restored) == 10


@on_service()
async def test_backup_has_all_of_a_commit_that_is_under_way(rig: ServiceRig) -> None:
    parts = await staged(rig, files=5)
    committing = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, parts))

    info = await backup(rig)

    assert committing.done()
    folder = await restore(rig, info)
    with RocksStore(folder) as copy:
        assert check_store(copy) == []
        restored = ServiceRig(copy, rig.clock, rig.loop, rig.service.limits, None)
        assert ready(restored) == 50
        assert (await begin(restored)).state is LoadState.COMMITTED
