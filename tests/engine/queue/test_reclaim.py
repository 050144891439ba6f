"""Reclaim: the room of a deleted queue comes back, in slices, and a restart goes on with it."""

from pathlib import Path
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import prefix_end
from queueber.engine.queue.queues import RECLAIM_KEY
from queueber.errors import Unavailable
from queueber.model import QueueSettings
from tests.support.operations import create_queue, delete_queue, reclaim_slices, reclaimed
from tests.support.rig import QUEUE, Rig, refuse_write

CALLS, ITEMS, BYTES = 80, 100, 10_000


def files_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.sst"))


def fill(rig: Rig) -> None:
    """80 MB that do not compress: more than the store keeps in memory."""
    random = Random(3)
    for _ in range(CALLS):
        rig.now_ms += 1
        rig.add(*[random.randbytes(BYTES) for _ in range(ITEMS)])


@pytest.mark.slow
def test_files_shrink_once_all_slices_are_done(rig: Rig) -> None:
    fill(rig)
    prefix = rig.queue.prefix
    before = files_bytes(rig.folder)
    assert delete_queue(rig.engine, QUEUE)
    assert files_bytes(rig.folder) >= before, "a range deletion alone frees nothing"

    slices = list(reclaim_slices(rig.engine, prefix))
    for each in slices:
        each()
    reclaimed(rig.engine, prefix)

    assert len(slices) > len(Family), "more than one slice for the family of the contents"
    assert files_bytes(rig.folder) < before // 10
    assert rig.engine.queues.reclaims == []
    rig.assert_sound()


def test_slices_cover_the_whole_range_of_the_queue_and_nothing_else(rig: Rig) -> None:
    rig.add(b"a")
    prefix = rig.queue.prefix

    parts = rig.store.slices(prefix, prefix_end(prefix))

    assert parts[0][0] == prefix
    assert parts[-1][1] == prefix_end(prefix)
    assert [end for _, end in parts[:-1]] == [start for start, _ in parts[1:]]


def test_what_is_left_to_reclaim_survives_a_restart(rig: Rig) -> None:
    rig.add(b"a")
    prefix = rig.queue.prefix
    assert delete_queue(rig.engine, QUEUE)

    rig.reopen()
    assert rig.engine.queues.reclaims == [prefix]
    reclaimed(rig.engine, prefix)
    rig.reopen()

    assert rig.engine.queues.reclaims == []
    assert rig.store.get(Family.DEFAULT, RECLAIM_KEY + prefix) is None


def test_queues_beside_a_deleted_one_keep_their_items(rig: Rig) -> None:
    create_queue(rig.engine, "doomed", QueueSettings(), rig.now_ms)
    prefix = rig.engine.queues.get("doomed").prefix
    kept = rig.add(b"a", b"b")
    assert delete_queue(rig.engine, "doomed")

    for each in reclaim_slices(rig.engine, prefix):
        each()
    reclaimed(rig.engine, prefix)

    assert list(rig.poll(2).ids) == kept
    rig.assert_sound()


def test_refused_write_leaves_it_to_be_reclaimed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = rig.queue.prefix
    assert delete_queue(rig.engine, QUEUE)
    monkeypatch.setattr(rig.store, "write", refuse_write)

    with pytest.raises(Unavailable):
        reclaimed(rig.engine, prefix)

    assert rig.engine.queues.reclaims == [prefix]
