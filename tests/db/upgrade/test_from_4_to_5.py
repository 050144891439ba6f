"""Everything that a store of format 4 says of its items, the upgraded store says, too."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from queueber.db.families import Family
from queueber.db.records.blocks import Block, pack_attributes
from queueber.db.records.queues import decode_counters
from queueber.db.records.runs import decode_held, decode_run
from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade.format_4 import read_item, read_lease
from queueber.db.upgrade.stores import DamagedStore, OldStore, Work
from queueber.db.upgrade.upgrading import upgrade
from queueber.ids import IdSource, ItemId, LeaseId, shifted
from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX
from tests.support.format_4 import NOW_MS, Item, Queue, put_entries, random_queue, write_store
from tests.support.upgraded import ReadQueue, entries

SAME = ("queues", "lease_expiry", "attempts", "keys", "producers", "logs", "log_blocks")
END = b"\xff" * 64


def upgraded(folder: Path, *queues: Queue) -> tuple[Path, Work]:
    data = folder / "data"
    write_store(data, queues)
    work = Work(NOW_MS)
    assert upgrade(data, work, lambda store: []) is not None
    return data, work


def expected(queue: Queue) -> list[Item]:
    """Leased and dead items have no time at which they are visible."""
    return [
        item if item.state in ("ready", "delayed") else replace(item, visible_at_ms=0)
        for item in queue.items
    ]


@pytest.mark.parametrize("seed", range(15))
def test_random_store_has_the_same_items_in_the_same_states(folder: Path, seed: int) -> None:
    random = Random(seed)
    queues = [random_queue(random, number) for number in range(1, 2 + random.randrange(3))]

    data, _ = upgraded(folder, *queues)

    with RocksStore(data) as store, OldStore(data / "format-4", 4) as old:
        for queue in queues:
            found = ReadQueue(store, queue)
            assert found.items == expected(queue)
            held = [(lease, at, [i.item_id for i in items]) for lease, at, items in found.leases]
            wanted = [(lease, at, [i.item_id for i in items]) for lease, at, items in queue.leases]
            assert held == wanted
        for name in SAME:
            family = next(each for each in Family if each.family_name == name)
            assert list(store.walk(family, b"", END)) == list(old.walk(name))
        defaults = dict(store.walk(Family.DEFAULT, b"", END))
        assert defaults.pop(b"format") == (5).to_bytes(4)
        before = dict(old.walk("default"))
        assert {**defaults, b"format": (4).to_bytes(4), b"synced": (1).to_bytes(8)} == before
        assert list(store.walk(Family.LEFTOVERS, b"", END)) == []


@pytest.mark.parametrize("seed", range(15))
def test_counters_stay_but_for_what_loads_held(folder: Path, seed: int) -> None:
    random = Random(seed)
    queues = [random_queue(random, number) for number in (1, 2)]

    data, _ = upgraded(folder, *queues)

    with RocksStore(data) as store, OldStore(data / "format-4", 4) as old:
        for queue in queues:
            after = decode_counters(store.get(Family.COUNTERS, queue.prefix) or b"")
            before = decode_counters(old.get("counters", queue.prefix) or b"")
            assert after.batches == len(entries(store, Family.BATCHES, queue.prefix))
            assert after.forgets == len(entries(store, Family.FORGET, queue.prefix))
            after.batches, after.forgets = before.batches, before.forgets
            assert after == before
            for level, (count, low) in after.levels.items():
                index = entries(store, Family.VISIBILITY_INDEX, queue.prefix + bytes([level]))
                assert sum(decode_run(key[8:], value).count for key, value in index) == count
                assert all(low <= key for key, _ in index)


def queue_of(items: list[Item]) -> Queue:
    return Queue(1, "queue", items, last_id=max(item.item_id for item in items))


def ready(ids: list[ItemId], contents: bytes = b"x", **fields: object) -> list[Item]:
    return [Item(each, contents, "ready", NOW_MS, **fields) for each in ids]  # type: ignore[arg-type]


@pytest.fixture
def ids() -> IdSource:
    return IdSource(Random(1))


def index(data: Path) -> list[tuple[int, int, int]]:
    """Of every ready run: count, position and span of its block."""
    with RocksStore(data, read_only=True) as store:
        found = entries(store, Family.VISIBILITY_INDEX, (1).to_bytes(4))
        return [decode_run(key[9:], value)[1:4] for key, value in found]


def test_items_of_one_add_become_one_run_of_one_block(folder: Path, ids: IdSource) -> None:
    data, _ = upgraded(folder, queue_of(ready(ids.mint(100, NOW_MS))))

    assert index(data) == [(100, 0, 100)]


def test_blocks_are_cut_at_as_many_items_as_those_of_an_add(folder: Path, ids: IdSource) -> None:
    data, _ = upgraded(folder, queue_of(ready(ids.mint(2 * BLOCK_ITEMS_MAX + 1, NOW_MS))))

    assert [span for *_, span in index(data)] == [BLOCK_ITEMS_MAX, BLOCK_ITEMS_MAX, 1]


def test_blocks_are_cut_at_as_many_bytes_as_those_of_an_add(folder: Path, ids: IdSource) -> None:
    half = bytes(BLOCK_BYTES_MAX // 2)
    items = ready(ids.mint(3, NOW_MS), half) + ready(ids.mint(2, NOW_MS), 3 * half)

    data, _ = upgraded(folder, queue_of(items))

    assert [span for *_, span in index(data)] == [2, 1, 1, 1]


def test_gap_between_ids_ends_a_block(folder: Path, ids: IdSource) -> None:
    minted = ids.mint(10, NOW_MS)

    data, _ = upgraded(folder, queue_of(ready(minted[:4] + minted[5:])))

    assert index(data) == [(4, 0, 4), (5, 0, 5)]


def test_details_of_one_item_make_columns_for_its_whole_block(folder: Path, ids: IdSource) -> None:
    items = ready(ids.mint(3, NOW_MS))
    items[1].key = "key"

    data, _ = upgraded(folder, queue_of(items))

    with RocksStore(data, read_only=True) as store:
        ((_, value),) = entries(store, Family.ITEMS, (1).to_bytes(4))
        assert Block(value).details(0, 3) == ([b"", b"key", b""], [b"", b"", b""])
        ((key, run),) = entries(store, Family.VISIBILITY_INDEX, (1).to_bytes(4))
        assert decode_run(key[9:], run)[1:5] == (3, 0, 3, 6)


def test_order_of_ready_items_stays(folder: Path, ids: IdSource) -> None:
    """Items of one block that are visible at other times, and later ones of the same time."""
    first, second = ready(ids.mint(6, NOW_MS)), ready(ids.mint(3, NOW_MS))
    first[2].visible_at_ms = first[3].visible_at_ms = NOW_MS + 5
    second[1].visible_at_ms = NOW_MS - 5
    items = first + second
    in_order = sorted(items, key=lambda item: (item.visible_at_ms, item.item_id))

    data, _ = upgraded(folder, queue_of(items))

    with RocksStore(data, read_only=True) as store:
        found = entries(store, Family.VISIBILITY_INDEX, (1).to_bytes(4))
        runs = [decode_run(key[9:], value) for key, value in found]
        assert [each for run in runs for each in run.ids] == [item.item_id for item in in_order]


def test_lease_holds_its_items_in_its_own_order(folder: Path, ids: IdSource) -> None:
    items = [Item(each, b"x", "leased", 0) for each in ids.mint(6, NOW_MS)]
    (lease_id,) = ids.mint(1, NOW_MS)
    held = items[3:] + items[:2]
    left = replace(items[2], state="ready", visible_at_ms=NOW_MS)
    queue = Queue(1, "queue", [*items[:2], left, *items[3:]], last_id=lease_id)
    queue.leases = [(LeaseId(lease_id), NOW_MS + 9, held)]

    data, _ = upgraded(folder, queue)

    with RocksStore(data, read_only=True) as store, OldStore(data / "format-4", 4) as old:
        _, before = read_lease(old.get("leases", queue.prefix + lease_id) or b"")
        ((_, _, after),) = ReadQueue(store, queue).leases
        assert [item.item_id for item in after] == [each for each, _ in before]
        ((_, value),) = entries(store, Family.LEASES, queue.prefix)
        runs = decode_held(value[32 : 32 + 2 * 36])
        assert [run[1:4] for run in runs] == [(3, 3, 6), (2, 0, 6)]


def test_progress_counts_up_to_all_items(folder: Path, ids: IdSource) -> None:
    write_store(folder / "data", [queue_of(ready(ids.mint(2500, NOW_MS)))])
    shown: list[tuple[int, int]] = []

    upgrade(folder / "data", Work(NOW_MS, lambda *each: shown.append(each)), lambda store: [])

    assert shown == sorted(shown)
    assert shown[0] == (500, 2500)
    assert shown[-1] == (2500, 2500)


# --- stores that are not sound --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "value", "reason"),
    [
        ("items", None, "is in some state, but does not exist"),
        ("items", b"junk", "a record has only 4 bytes"),
        ("visibility_index", None, "it has 3 items, but 2 entries of states"),
        ("visibility_index", b"junk", "has the mark 6a756e6b"),
        ("leases", b"junk", "a record has only 4 bytes"),
        ("dead", b"", "index out of range"),
    ],
)
def test_store_that_is_not_sound_is_refused_and_stays(
    folder: Path, ids: IdSource, family: str, value: bytes | None, reason: str
) -> None:
    queue = queue_of(ready(ids.mint(3, NOW_MS)))
    item_id, data = queue.items[1].item_id, folder / "data"
    write_store(data, [queue])
    middle = {
        "visibility_index": bytes([4]) + NOW_MS.to_bytes(8) + item_id,
        "leases": item_id,
        "dead": item_id,
        "items": item_id,
    }
    put_entries(data, [(family, queue.prefix + middle[family], value)])
    names = sorted(file.name for file in data.iterdir())

    with pytest.raises(DamagedStore) as refused:
        upgrade(data, Work(NOW_MS), lambda store: [])

    assert reason in str(refused.value)
    assert str(refused.value).endswith(
        "nothing was changed: use the version of Queueber that wrote the store (format 4) to "
        "verify and repair it, then run 'queueber upgrade'"
    )
    assert sorted(file.name for file in data.iterdir()) == sorted({*names, "LOCK"})


def test_item_that_is_next_to_a_block_is_not_in_it(folder: Path, ids: IdSource) -> None:
    queue = queue_of(ready(ids.mint(3, NOW_MS)))
    write_store(folder / "data", [queue])
    before_all = shifted(queue.items[0].item_id, -1)
    key = queue.prefix + bytes([4]) + NOW_MS.to_bytes(8) + before_all
    put_entries(folder / "data", [("visibility_index", key, queue.items[0].mark)])

    with pytest.raises(DamagedStore, match=f"item {before_all.hex()} is in some state, but"):
        upgrade(folder / "data", Work(NOW_MS), lambda store: [])


def test_frozen_reader_reads_what_the_frozen_writer_wrote(folder: Path) -> None:
    queue = random_queue(Random(3), 1)
    write_store(folder / "data", [queue])

    with OldStore(folder / "data", 4) as old:
        found = {key: read_item(value) for key, value in old.walk("items")}

    assert found == {
        queue.prefix + item.item_id: (
            item.contents,
            item.key.encode(),
            pack_attributes(item.attributes),
        )
        for item in queue.items
    }
