"""The search for duplicates: of rows with the same key the first stays, unless one is there."""

from collections.abc import Iterator

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import text_digest
from queueber.db.records.loads import Dropped, LoadRecord
from queueber.db.records.remembered import decode_key_entry
from queueber.engine.loads.duplicates import DuplicateSearch
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.ids import range_id
from queueber.model import NewItems, Rows
from tests.support.load_rig import LoadRig


@pytest.fixture
def rig() -> Iterator[LoadRig]:
    made = LoadRig()
    yield made
    made.close()


def stage_keys(
    rig: LoadRig, load: LoadRecord, *parts: list[str], sorted_entries: int = 1000
) -> None:
    for partition, keys in enumerate(parts):
        rows = Rows([b"x"] * len(keys), keys=keys)
        rig.stage(load, rows, partition=partition, sorted_entries=sorted_entries)


def search(rig: LoadRig, load: LoadRecord) -> tuple[DuplicateSearch, int]:
    """The search when it is over, and its steps."""
    made = DuplicateSearch(rig.store, rig.queue, load, rig.now_ms)
    claims = sorted(rig.directory(load).glob("*/*-claims.sst"))
    return made, len(list(made.run(claims, rig.directory(load) / "search")))


def test_search_without_duplicates_drops_nothing(rig: LoadRig) -> None:
    load = rig.begin()
    stage_keys(rig, load, ["a", "", "b"], ["c"])

    found, _ = search(rig, load)

    assert (found.dropped, found.claims) == ([], 3)
    assert not (rig.directory(load) / "search").exists()


@pytest.mark.parametrize("sorted_entries", [1, 2, 1000])
@pytest.mark.parametrize("slice_claims", [1, 2, 500])
def test_search_keeps_the_first_of_rows_with_one_key_however_they_are_cut(
    rig: LoadRig, sorted_entries: int, slice_claims: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.loads.duplicates._SLICE", slice_claims)
    load = rig.begin()
    stage_keys(rig, load, ["a", "b", "a"], ["b", "a", "c"], sorted_entries=sorted_entries)

    found, steps = search(rig, load)

    kept = {key: range_id(load.id_head, 0, row) for key, row in (("a", 0), ("b", 1))}
    expected: dict[bytes, str] = {
        range_id(load.id_head, *at): key
        for at, key in [((0, 2), "a"), ((1, 0), "b"), ((1, 1), "a")]
    }
    assert {each.item_id: each.digest for each in found.dropped} == {
        item_id: text_digest(key) for item_id, key in expected.items()
    }
    for each in found.dropped:
        item_id, forget_at_ms = decode_key_entry(each.entry)
        assert item_id == kept[expected[each.item_id]]
        assert forget_at_ms == load.started_at_ms + load.dedup_window_ms
    assert found.claims == 6
    assert steps == -(-6 // slice_claims)


def test_search_drops_every_row_whose_key_is_there_for_the_one_that_has_it(rig: LoadRig) -> None:
    (first,) = rig.add_items(NewItems([b"x"], keys=["a"])).ids
    rig.now_ms += 10
    load = rig.begin()
    stage_keys(rig, load, ["a", "b", "a"])

    found, _ = search(rig, load)

    entry = dict(rig.dump()["keys"])[rig.queue.prefix + text_digest("a")]
    assert decode_key_entry(entry)[0] == first
    ids = [range_id(load.id_head, 0, row) for row in (0, 2)]
    assert found.dropped == [Dropped(item_id, text_digest("a"), entry) for item_id in ids]


def test_search_takes_no_notice_of_a_key_whose_time_is_over(rig: LoadRig) -> None:
    rig.add_items(NewItems([b"x"], keys=["a"]))
    rig.now_ms += rig.queue.settings.dedup_window_ms
    load = rig.begin()
    stage_keys(rig, load, ["a"])

    assert search(rig, load)[0].dropped == []


def test_search_takes_no_notice_of_the_keys_of_other_queues(rig: LoadRig) -> None:
    load = rig.begin()
    stage_keys(rig, load, ["a"])
    batch = rig.store.batch()
    for number in (rig.queue.queue_id - 1, rig.queue.queue_id + 1):
        key = number.to_bytes(4) + text_digest("a")
        batch.put(Family.KEYS, key, bytes(16) + b"\xff" * 8)
    rig.store.write(batch)

    assert search(rig, load)[0].dropped == []


def test_search_stops_at_the_limit(rig: LoadRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queueber.engine.loads.duplicates.LOAD_DUPLICATES_MAX", 2)
    load = rig.begin()
    stage_keys(rig, load, ["a"] * 4)

    with pytest.raises(ResourceExhausted, match=r"more than 2 rows, .* in queue 'q', or twice"):
        search(rig, load)

    assert not (rig.directory(load) / "search").exists()


def test_search_refuses_claims_of_another_load(rig: LoadRig) -> None:
    load, other = rig.begin(), rig.begin("other")
    stage_keys(rig, other, ["a"])
    rig.directory(load).mkdir(parents=True)
    made = DuplicateSearch(rig.store, rig.queue, load, rig.now_ms)
    claims = list(rig.directory(other).glob("*/*-claims.sst"))

    with pytest.raises(InvalidArgument, match="no id of the load"):
        list(made.run(claims, rig.directory(load) / "search"))
