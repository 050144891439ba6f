"""The files of a part: the items that an add of the same rows would have stored, one by one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.bulk.part_writer import PartWriter
from queueber.db.bulk.staged_files import CLAIMS
from queueber.db.records.blocks import Block
from queueber.db.records.keys import PREFIX_BYTES, text_digest, time_part
from queueber.db.records.remembered import (
    FORGET_KEY,
    decode_key_entry,
    encode_key_entry,
    ids_digest,
)
from queueber.db.records.runs import MarkFields, decode_run
from queueber.ids import range_id
from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX, MIB, PARTITIONS_MAX
from queueber.model import (
    PackedContents,
    Part,
    PartRef,
    Rows,
    StagedFile,
)
from tests.support.folders import quick_folder, remove_folder
from tests.support.part_folder import LOAD, PREFIX, STARTED_MS, WINDOW_MS, PartFolder, plan
from tests.support.waiting_items import WaitingItem, waiting_items

INDEXES = ("items", "visibility_index", "delayed", "places")


@dataclass(frozen=True)
class Row:
    contents: bytes
    delay_ms: int = 0
    priority: int = 5
    key: str = ""
    attributes: Mapping[str, str] | None = None


def as_rows(rows: Sequence[Row], columns: set[str]) -> Rows:
    """A column that is not among `columns` is left out."""
    contents = [row.contents for row in rows]
    return Rows(
        PackedContents.pack(contents) if "packed" in columns else contents,
        [STARTED_MS + row.delay_ms for row in rows] if "delays" in columns else (),
        [row.priority for row in rows] if "priorities" in columns else (),
        [row.key for row in rows] if "keys" in columns else (),
        [row.attributes or {} for row in rows] if "attributes" in columns else (),
    )


@pytest.fixture(scope="module")
def parts() -> Iterator[PartFolder]:
    folder = quick_folder()
    yield PartFolder(folder)
    remove_folder(folder)


# --- as an add ------------------------------------------------------------------------------------

calls = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                Row,
                contents=st.binary(max_size=60) | st.sampled_from([b"x" * 30_000, b"y" * 70_000]),
                delay_ms=st.sampled_from([0, 0, -5, 1, 40, 40, 41, 3_000]),
                priority=st.sampled_from([5, 5, 0, 9, 3]),
                key=st.sampled_from(["", "key", "k" * 250]),
                attributes=st.sampled_from([None, {"a": "b"}, {"ö": "", "x": "yz"}]),
            ),
            max_size=12,
        ),
        st.sets(st.sampled_from(["packed", "delays", "priorities", "keys", "attributes"])),
    ),
    max_size=5,
)


def expected_item(item_id: bytes, row: Row, columns: set[str], batch: int) -> WaitingItem:
    delay_ms = max(row.delay_ms, 0) if "delays" in columns else 0
    priority = row.priority if "priorities" in columns else 5
    return WaitingItem(
        item_id,
        row.contents,
        row.key if "keys" in columns else "",
        (row.attributes or {}) if "attributes" in columns else {},
        delay_ms > 0,
        STARTED_MS + delay_ms,
        -1 if delay_ms else 9 - priority,
        MarkFields(batch=batch, priority=priority),
    )


@settings(max_examples=100, deadline=None)
@given(
    calls=calls,
    partition=st.sampled_from([0, 1, PARTITIONS_MAX - 1]),
    batch=st.sampled_from([0, 3]),
    window_ms=st.sampled_from([0, 300]),
    buffered_rows=st.sampled_from([1, 5, BLOCK_ITEMS_MAX]),
    sorted_entries=st.integers(1, 10),
    file_bytes=st.sampled_from([1, 200, MIB]),
)
def test_part_has_the_items_that_adds_of_its_rows_store(
    parts: PartFolder,
    calls: list[tuple[list[Row], set[str]]],
    partition: int,
    batch: int,
    window_ms: int,
    buffered_rows: int,
    sorted_entries: int,
    file_bytes: int,
) -> None:
    load = LOAD.at(batch=batch, dedup_window_ms=window_ms)
    # No key comes twice: what becomes of those, the commit decides.
    calls = [
        ([replace(row, key=row.key and f"{row.key}{call}.{at}") for at, row in enumerate(of)], has)
        for call, (of, has) in enumerate(calls)
    ]

    part = parts.build(
        load,
        *(as_rows(rows, columns) for rows, columns in calls),
        partition=partition,
        buffered_rows=buffered_rows,
        sorted_entries=sorted_entries,
        file_bytes=file_bytes,
    )

    rows = [(row, columns) for of_call, columns in calls for row in of_call]
    ids = [range_id(load.id_head, partition, row) for row in range(len(rows))]
    items = [
        expected_item(item_id, row, columns, batch)
        for item_id, (row, columns) in zip(ids, rows, strict=True)
    ]
    stored = {family: parts.entries(load, part, family) for family in INDEXES}
    assert waiting_items(stored) == items
    keyed = {PREFIX + text_digest(item.key): item.id for item in items if item.key}
    if not window_ms:
        keyed = {}
    forget_at_ms = STARTED_MS + window_ms
    assert parts.entries(load, part, "keys") == sorted(
        (key, encode_key_entry(item_id, forget_at_ms)) for key, item_id in keyed.items()
    )
    delays = [item.at_ms for item in items if item.is_delayed]
    assert replace(part, files=[]) == Part(
        ref=part.ref,
        files=[],
        rows=len(items),
        contents_bytes=sum(map(content_bytes, items)),
        digest=(ids_digest(ids[-1], len(ids)) if ids and batch else 0).to_bytes(16),
        levels=[sum(item.level == level for item in items) for level in range(10)],
        delayed=len(delays),
        delayed_first_ms=min(delays, default=0),
        keys=len(keyed),
    )


def content_bytes(item: WaitingItem) -> int:
    attributes = sum(2 + len(text.encode()) for pair in item.attributes.items() for text in pair)
    return len(item.contents) + len(item.key) + attributes


# --- blocks and runs ------------------------------------------------------------------------------


def spans_of(parts: PartFolder, part: Part) -> list[int]:
    return [Block(value).span for _, value in parts.entries(LOAD, part, "items")]


def runs_of(parts: PartFolder, part: Part, family: str) -> list[tuple[int, int, int]]:
    """Count, position and span of each run."""
    entries = parts.entries(LOAD, part, family)
    return [decode_run(key[-16:], value)[1:4] for key, value in entries]


@pytest.mark.parametrize("is_packed", [False, True])
def test_rows_fill_blocks_and_a_whole_block_is_one_run(parts: PartFolder, is_packed: bool) -> None:
    contents = [b"%200d" % n for n in range(1000)]
    rows = Rows(PackedContents.pack(contents) if is_packed else contents)

    part = parts.build(LOAD, rows)

    full = BLOCK_BYTES_MAX // 200
    spans = [full, full, full, 1000 - 3 * full]
    assert spans_of(parts, part) == spans
    assert runs_of(parts, part, "visibility_index") == [(span, 0, span) for span in spans]
    assert {file.family: file.entries for file in part.files} == {"items": 4, "visibility_index": 4}


@pytest.mark.parametrize("is_packed", [False, True])
def test_rows_of_small_calls_are_buffered_until_they_fill_blocks(
    parts: PartFolder, is_packed: bool
) -> None:
    contents = [b"x"] * 300
    rows = Rows(PackedContents.pack(contents) if is_packed else contents)

    part = parts.build(LOAD, *[rows] * 5, buffered_rows=2 * BLOCK_ITEMS_MAX)

    # The fourth call fills two blocks. What is beyond them is not kept for the next.
    assert spans_of(parts, part) == [512, 512, 176, 300]


def test_rows_with_other_times_or_priorities_cut_runs_and_not_blocks(parts: PartFolder) -> None:
    later = STARTED_MS + 10
    rows = Rows(
        [b"x"] * 8,
        [0, 0, later, later, later, later, later + 1, 0],
        [5, 5, 5, 5, 9, 9, 9, 5],
    )

    part = parts.build(LOAD, rows)

    assert spans_of(parts, part) == [8]
    assert runs_of(parts, part, "visibility_index") == [(2, 0, 8), (1, 7, 8)]
    assert runs_of(parts, part, "delayed") == [(2, 2, 8), (2, 4, 8), (1, 6, 8)]
    places = parts.entries(LOAD, part, "places")
    assert [(key[-1], int.from_bytes(time)) for key, time in places] == [
        (3, later),
        (5, later),
        (6, later + 1),
    ]


# --- keys -----------------------------------------------------------------------------------------


def test_rows_with_the_same_key_all_claim_it_and_the_first_of_a_file_has_it(
    parts: PartFolder,
) -> None:
    rows = Rows([b"1", b"2", b"3", b"4"], keys=["k", "", "k", "j"])

    part = parts.build(LOAD, rows)

    ids = [range_id(LOAD.id_head, 0, row) for row in range(4)]
    k, j = text_digest("k"), text_digest("j")
    claims = [key for key, _ in parts.entries(LOAD, part, CLAIMS)]
    assert claims == sorted([k + ids[0], k + ids[2], j + ids[3]])
    keys = {key[PREFIX_BYTES:]: value for key, value in parts.entries(LOAD, part, "keys")}
    assert {digest: decode_key_entry(value) for digest, value in keys.items()} == {
        k: (ids[0], STARTED_MS + WINDOW_MS),
        j: (ids[3], STARTED_MS + WINDOW_MS),
    }
    due = time_part(STARTED_MS + WINDOW_MS) + ids[3]
    assert parts.entries(LOAD, part, "forget") == [(PREFIX + due, FORGET_KEY + k + j)]
    assert part.keys == 3


def test_rows_with_the_same_key_in_files_of_one_are_claimed_file_by_file(
    parts: PartFolder,
) -> None:
    part = parts.build(LOAD, Rows([b"1"], keys=["k"]), Rows([b"2"], keys=["k"]), sorted_entries=1)

    families = [file.family for file in part.files]
    assert [families.count(each) for each in (CLAIMS, "keys", "forget")] == [2] * 3
    assert len(parts.entries(LOAD, part, CLAIMS)) == part.keys == 2
    assert len(parts.entries(LOAD, part, "keys")) == 1


# --- files ----------------------------------------------------------------------------------------


def test_files_are_told_as_they_are_finished_and_in_no_other_number(parts: PartFolder) -> None:
    told: list[StagedFile] = []
    ref = PartRef(0, "told")
    directory = parts.directory(LOAD, ref)
    writer = PartWriter(plan(LOAD, file_bytes=1), ref, directory, told.append, buffered_rows=20)

    writer.add(Rows([b"x" * 5000] * 20))
    early = list(told)
    writer.add(Rows([b"y" * 5000] * 20))
    part = writer.finish()

    assert early
    assert told == part.files
    assert sorted(path.name for path in directory.iterdir()) == sorted(f.name for f in part.files)
    assert writer.rows == part.rows == 40


def test_part_without_rows_has_no_files(parts: PartFolder) -> None:
    part = parts.build(LOAD, Rows([]), Rows([]))

    assert part == Part(part.ref, [], 0, 0, bytes(16), [0] * 10, 0, 0, 0)


def test_rows_beyond_what_a_partition_may_have_are_refused_and_none_is_written(
    parts: PartFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = PartRef(0, "too many")
    writer = PartWriter(plan(LOAD), ref, parts.directory(LOAD, ref))
    monkeypatch.setattr("queueber.db.bulk.part_writer.ROWS_MAX", 3)
    writer.add(Rows([b"1", b"2"]))

    with pytest.raises(OverflowError, match="at most 3 rows"):
        writer.add(Rows([b"3", b"4"]))

    writer.add(Rows([b"3"]))
    assert writer.finish().rows == 3
