"""The files of a part: what an add of the same rows would have written, entry by entry."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.bulk.part_writer import PartWriter
from queueber.db.bulk.staged_files import CLAIMS, check_files, walk_files
from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, text_digest
from queueber.db.records.loads import LoadRecord, part_directory
from queueber.db.records.remembered import FORGET_KEY, decode_key_entry, ids_digest
from queueber.engine.loads.part_check import check_part
from queueber.ids import IdSource, ItemId, range_id
from queueber.limits import MIB, PARTITIONS_MAX
from queueber.model import (
    LoadInfo,
    NewItems,
    Part,
    PartRef,
    QueueSettings,
    Rows,
    StagedFile,
)
from tests.support.load_rig import LoadRig
from tests.support.loading import plan_of
from tests.support.operations import add, create_queue, delete_queue
from tests.support.rig import QUEUE

WINDOW_MS = 300
FAMILIES = (
    Family.ITEMS,
    Family.VISIBILITY_INDEX,
    Family.DELAYED,
    Family.PLACES,
    Family.KEYS,
    Family.FORGET,
)


class GivenIds(IdSource):
    """Gives these, one call after the other."""

    def __init__(self, ids: list[bytes]) -> None:
        self._given = ids

    def mint(self, count: int, now_ms: int) -> list[ItemId]:
        given, self._given = self._given[:count], self._given[count:]
        return [ItemId(each) for each in given]


@dataclass(frozen=True)
class Row:
    contents: bytes
    delay_ms: int = 0
    priority: int = 5
    key: str = ""
    attributes: Mapping[str, str] | None = None


def as_rows(rows: Sequence[Row], columns: set[str], started_at_ms: int) -> Rows:
    """A column that is not among `columns` is left out."""
    return Rows(
        [row.contents for row in rows],
        [started_at_ms + row.delay_ms for row in rows] if "delays" in columns else (),
        [row.priority for row in rows] if "priorities" in columns else (),
        [row.key for row in rows] if "keys" in columns else (),
        [row.attributes or {} for row in rows] if "attributes" in columns else (),
    )


def as_items(rows: Rows, batch: str, started_at_ms: int) -> NewItems:
    return NewItems(
        rows.contents,
        [max(0, at_ms - started_at_ms) for at_ms in rows.visible_at_ms],
        rows.priorities,
        rows.keys,
        rows.attributes,
        batch,
    )


def files_of(rig: LoadRig, load: LoadRecord, part: Part, family: str) -> list[Path]:
    directory = rig.directory(load) / part_directory(part.ref)
    return [directory / file.name for file in part.files if file.family == family]


def entries_of(
    rig: LoadRig, load: LoadRecord, part: Part, family: str
) -> list[tuple[bytes, bytes]]:
    paths = files_of(rig, load, part, family)
    return list(walk_files(paths, rig.folder / "scratch"))


@pytest.fixture
def rig() -> Iterator[LoadRig]:
    made = LoadRig(QueueSettings(dedup_window_ms=WINDOW_MS))
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_rig() -> Iterator[LoadRig]:
    """For many examples, each with a new queue."""
    made = LoadRig()
    yield made
    made.close()


def build(
    rig: LoadRig,
    load: LoadRecord,
    *rows: Rows,
    partition: int = 0,
    run_entries: int = 1000,
    file_bytes: int = MIB,
) -> Part:
    ref = PartRef(partition, "a")
    directory = rig.directory(load) / part_directory(ref)
    directory.mkdir(parents=True)
    writer = PartWriter(
        plan(rig, load, file_bytes=file_bytes), ref, directory, run_entries=run_entries
    )
    for each in rows:
        writer.add(each)
    return writer.finish()


def plan(rig: LoadRig, load: LoadRecord, file_bytes: int = MIB) -> LoadInfo:
    return plan_of(rig.queue, load, file_bytes)


# --- as an add ------------------------------------------------------------------------------------

calls = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                Row,
                contents=st.binary(max_size=60),
                delay_ms=st.sampled_from([0, 0, -5, 1, 40, 41, 3_000]),
                priority=st.sampled_from([5, 5, 0, 9, 3]),
                key=st.sampled_from(["", "key", "k" * 250]),
                attributes=st.sampled_from([None, {"a": "b"}, {"ö": "", "x": "yz"}]),
            ),
            max_size=12,
        ),
        st.sets(st.sampled_from(["delays", "priorities", "keys", "attributes"])),
    ),
    max_size=5,
)


@settings(max_examples=60, deadline=None)
@given(
    calls=calls,
    partition=st.sampled_from([0, 1, PARTITIONS_MAX - 1]),
    batch=st.sampled_from(["", "batch"]),
    has_window=st.booleans(),
    run_entries=st.integers(1, 10),
    file_bytes=st.sampled_from([1, 200, MIB]),
)
def test_part_has_the_entries_that_adds_of_its_rows_write(
    shared_rig: LoadRig,
    calls: list[tuple[list[Row], set[str]]],
    partition: int,
    batch: str,
    has_window: bool,
    run_entries: int,
    file_bytes: int,
) -> None:
    rig = shared_rig
    delete_queue(rig.engine, QUEUE)
    window_ms = WINDOW_MS if has_window else 0
    create_queue(rig.engine, QUEUE, QueueSettings(dedup_window_ms=window_ms), rig.now_ms)
    load = rig.begin(batch=batch)
    started_at_ms = load.started_at_ms
    # No key comes twice: what becomes of those, the commit decides.
    calls = [
        (
            [
                replace(row, key=row.key and f"{row.key}{call}.{at}")
                for at, row in enumerate(of_call)
            ],
            columns,
        )
        for call, (of_call, columns) in enumerate(calls)
    ]
    rows = [as_rows(of_call, columns, started_at_ms) for of_call, columns in calls]

    part = build(
        rig, load, *rows, partition=partition, run_entries=run_entries, file_bytes=file_bytes
    )
    check_part(load, rig.queue.prefix, part)
    check_files(rig.directory(load) / part_directory(part.ref), part.files)

    before = rig.dump()
    count = sum(len(each.contents) for each in rows)
    ids = [range_id(load.id_head, partition, row) for row in range(count)]
    real_ids, rig.engine.kernel.ids = rig.engine.kernel.ids, GivenIds(list(ids))
    for each in rows:
        if each.contents:
            add(rig.engine, rig.queue, as_items(each, batch, started_at_ms), started_at_ms)
    rig.engine.kernel.ids = real_ids
    after, counters = rig.dump(), rig.queue.counters
    for family in FAMILIES:
        added = sorted(set(after[family.family_name]) - set(before[family.family_name]))
        assert entries_of(rig, load, part, family.family_name) == added
    assert (part.rows, part.contents_bytes) == (count, counters.contents_bytes)
    assert part.delayed == counters.delayed
    levels = {level: each for level, each in enumerate(part.levels) if each}
    assert levels == {level: each for level, (each, _) in counters.levels.items()}
    assert part.delayed_first_ms == (counters.delayed_due_ms if counters.delayed else 0)
    assert part.keys == len(entries_of(rig, load, part, Family.KEYS.family_name))
    expected = ids_digest(ids) if batch and ids else 0
    assert part.digest == expected.to_bytes(16)


# --- keys -----------------------------------------------------------------------------------------


def test_rows_with_the_same_key_all_claim_it_and_the_first_of_a_run_has_it(rig: LoadRig) -> None:
    load = rig.begin("same keys")
    rows = Rows([b"1", b"2", b"3", b"4"], keys=["k", "", "k", "j"])

    part = build(rig, load, rows)

    ids = [range_id(load.id_head, 0, row) for row in range(4)]
    k, j = text_digest("k"), text_digest("j")
    claims = [key for key, _ in entries_of(rig, load, part, CLAIMS)]
    assert claims == sorted([k + ids[0], k + ids[2], j + ids[3]])
    keys = {key[PREFIX_BYTES:]: value for key, value in entries_of(rig, load, part, "keys")}
    assert {digest: decode_key_entry(value)[0] for digest, value in keys.items()} == {
        k: ids[0],
        j: ids[3],
    }
    forgets = entries_of(rig, load, part, "forget")
    assert [kind for _, kind in forgets] == [FORGET_KEY] * 2
    assert part.keys == 3
    check_part(load, rig.queue.prefix, part)


def test_rows_with_the_same_key_in_runs_of_one_are_claimed_run_by_run(rig: LoadRig) -> None:
    load = rig.begin("runs")
    part = build(rig, load, Rows([b"1"], keys=["k"]), Rows([b"2"], keys=["k"]), run_entries=1)

    assert [len(files_of(rig, load, part, each)) for each in (CLAIMS, "keys", "forget")] == [2] * 3
    assert len(entries_of(rig, load, part, CLAIMS)) == part.keys == 2
    assert len(entries_of(rig, load, part, "keys")) == 1
    check_part(load, rig.queue.prefix, part)


# --- files ----------------------------------------------------------------------------------------


def test_files_are_told_as_they_are_finished_and_in_no_other_number(rig: LoadRig) -> None:
    load = rig.begin("told")
    told: list[StagedFile] = []
    directory = rig.directory(load)
    directory.mkdir(parents=True)
    writer = PartWriter(plan(rig, load, file_bytes=1), PartRef(0, "a"), directory, told.append)

    writer.add(Rows([b"x" * 5000] * 20))
    early = list(told)
    writer.add(Rows([b"y" * 5000] * 20))
    part = writer.finish()

    assert early
    assert told == part.files
    assert sorted(path.name for path in directory.iterdir()) == sorted(f.name for f in part.files)
    assert writer.rows == part.rows == 40


def test_part_without_rows_has_no_files(rig: LoadRig) -> None:
    load = rig.begin("empty")

    part = build(rig, load, Rows([]), Rows([]))

    assert part == Part(PartRef(0, "a"), [], 0, 0, bytes(16), [0] * 10, 0, 0, 0)
    check_part(load, rig.queue.prefix, part)


def test_rows_beyond_what_a_partition_may_have_are_refused_and_none_is_written(
    rig: LoadRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = rig.begin("too many")
    directory = rig.directory(load)
    directory.mkdir(parents=True)
    writer = PartWriter(plan(rig, load), PartRef(0, "a"), directory)
    monkeypatch.setattr("queueber.db.bulk.part_writer.ROWS_MAX", 3)
    writer.add(Rows([b"1", b"2"]))

    with pytest.raises(OverflowError, match="at most 3 rows"):
        writer.add(Rows([b"3", b"4"]))

    writer.add(Rows([b"3"]))
    assert writer.finish().rows == 3
