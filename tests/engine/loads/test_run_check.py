"""The check of the runs of a part: what the writer made passes, and each wrong run is named."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import due_part, level_part, time_part
from queueber.db.records.runs import (
    MarkFields,
    Run,
    decode_mark,
    decode_run,
    encode_mark,
    encode_run,
    make_run,
)
from queueber.engine.loads.run_check import check_runs
from queueber.errors import InvalidArgument
from queueber.ids import ItemId, range_id, shifted
from queueber.model import Part, Rows
from tests.support.folders import quick_folder, remove_folder
from tests.support.part_folder import LOAD, PREFIX, STARTED_MS, PartFolder

PARTITION = 5
LATER_MS = STARTED_MS + 10
INDEXES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.PLACES)


class Read:
    """The entries of a part of 20 rows in two blocks of ten, to be tampered with.

    Rows of a block: 0 to 3 ready, 4 to 6 delayed, 7 ready at priority 9, 8 and 9 delayed longer.
    """

    def __init__(self, part: Part, entries: dict[Family, dict[bytes, bytes]]) -> None:
        self.part = part
        self.entries = {family: dict(of_family) for family, of_family in entries.items()}

    def check(self) -> None:
        check_runs(LOAD, PREFIX, self.part, self._walk)

    def _walk(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        return iter(sorted(self.entries[family].items()))

    def ready(self, row: int, level: int = 4) -> bytes:
        return PREFIX + level_part(level) + due_part(STARTED_MS, id_of(row))

    def change(self, family: Family, key: bytes, **fields: object) -> None:
        """Other fields of a run; `mark` are some of the mark's."""
        run = decode_run(key[-16:], self.entries[family].pop(key))
        if isinstance(of_mark := fields.pop("mark", None), dict):
            run = run._replace(mark=encode_mark(decode_mark(run.mark)._replace(**of_mark)))
        run = run._replace(**fields)  # type: ignore[arg-type]
        self.put(family, key[:-16] + run.last, run)

    def change_ready(self, row: int, **fields: object) -> None:
        self.change(Family.VISIBILITY_INDEX, self.ready(row), **fields)

    def change_delayed(self, row: int, **fields: object) -> None:
        self.change(Family.DELAYED, PREFIX + due_part(LATER_MS, id_of(row)), **fields)

    def put(self, family: Family, key: bytes, run: Run) -> None:
        self.entries[family][key] = encode_run(run)

    def move(self, family: Family, key: bytes, to: bytes) -> None:
        self.entries[family][to] = self.entries[family].pop(key)

    def describe(self, **values: object) -> None:
        self.part = replace(self.part, **values)  # type: ignore[arg-type]


def id_of(row: int, partition: int = PARTITION) -> ItemId:
    return range_id(LOAD.id_head, partition, row)


@pytest.fixture(scope="module")
def made() -> Iterator[Read]:
    folder = quick_folder()
    parts = PartFolder(folder)
    contents = [b"x" * 6000] * 10
    times = [0] * 4 + [LATER_MS] * 3 + [0] + [LATER_MS + 5] * 2
    rows = Rows(contents, times, [9 if n == 7 else 5 for n in range(10)])
    part = parts.build(LOAD, rows, rows, partition=PARTITION, buffered_rows=1)
    yield Read(part, {each: dict(parts.entries(LOAD, part, each.family_name)) for each in INDEXES})
    remove_folder(folder)


@pytest.fixture
def read(made: Read) -> Read:
    return Read(made.part, made.entries)


def test_check_runs_passes_what_the_writer_made(read: Read) -> None:
    counts = {each: len(read.entries[each]) for each in INDEXES}
    assert counts == {Family.VISIBILITY_INDEX: 4, Family.DELAYED: 4, Family.PLACES: 4}

    read.check()


def test_check_runs_of_a_part_without_rows_reads_nothing(read: Read) -> None:
    read.describe(rows=0)
    read.entries.clear()

    read.check()


def cut_ready(read: Read) -> None:
    """The four ready ones of the second block as two runs: not what the writer makes, but right."""
    read.change_ready(13, count=1, at=3, size=6000)
    run = decode_run(id_of(13), read.entries[Family.VISIBILITY_INDEX][read.ready(13)])
    front = run._replace(last=id_of(12), count=3, at=0, size=18_000)
    read.put(Family.VISIBILITY_INDEX, read.ready(12), front)


def test_check_runs_passes_runs_that_could_be_joined(read: Read) -> None:
    cut_ready(read)

    read.check()


def overlap(read: Read) -> None:
    """A row in two runs, and another in none; numbers and sizes are right."""
    cut_ready(read)
    read.move(Family.VISIBILITY_INDEX, read.ready(13), read.ready(12))
    read.put(
        Family.VISIBILITY_INDEX,
        read.ready(12),
        make_run(id_of(12), 1, 2, 10, 6000, encode_mark(MarkFields(batch=LOAD.batch))),
    )
    read.change_ready(3, count=4)
    read.put(
        Family.VISIBILITY_INDEX,
        read.ready(13),
        make_run(id_of(13), 3, 1, 10, 18_000, encode_mark(MarkFields(batch=LOAD.batch))),
    )


def move_place(read: Read) -> None:
    places = read.entries[Family.PLACES]
    places[PREFIX + id_of(5)] = places.pop(PREFIX + id_of(6))


def retime_place(read: Read) -> None:
    read.entries[Family.PLACES][PREFIX + id_of(6)] = time_part(LATER_MS + 1)


def forget_place(read: Read) -> None:
    del read.entries[Family.PLACES][PREFIX + id_of(6)]


def cut_value(read: Read) -> None:
    index = read.entries[Family.VISIBILITY_INDEX]
    index[read.ready(3)] = index[read.ready(3)][:-1]


def drop_ready(read: Read) -> None:
    del read.entries[Family.VISIBILITY_INDEX][read.ready(3)]


def drop_delayed(read: Read) -> None:
    del read.entries[Family.DELAYED][PREFIX + due_part(LATER_MS, id_of(6))]


def delay_for_less(read: Read) -> None:
    key = PREFIX + due_part(LATER_MS, id_of(6))
    read.move(Family.DELAYED, key, PREFIX + due_part(LATER_MS - 1, id_of(6)))


def shrink_block(read: Read) -> None:
    """One run calls its block shorter than the others do: each alone says nothing wrong."""
    mark = encode_mark(MarkFields(batch=LOAD.batch))
    read.put(Family.VISIBILITY_INDEX, read.ready(3), make_run(id_of(3), 4, 0, 4, 24_000, mark))


def drop_block(read: Read) -> None:
    files = [replace(f, entries=3) if f.family == "items" else f for f in read.part.files]
    read.describe(files=files)


Lie = Callable[[Read], object]

WRONG: list[tuple[str, Lie, str]] = [
    (
        "short value",
        cut_value,
        "visibility_index has a wrong run under .*: it has 19 bytes, not 20",
    ),
    ("no items", lambda r: r.change_ready(3, count=0), "0 items from position 0 do not fit"),
    (
        "more items than the block",
        lambda r: r.change_ready(13, count=11),
        "11 items from position 0 do not fit into a block of 10",
    ),
    (
        "beyond the end of the block",
        lambda r: r.change_ready(3, at=7),
        "4 items from position 7 do not fit into a block of 10",
    ),
    (
        "beyond its block altogether",
        lambda r: r.change_ready(3, at=11),
        "4 items from position 11 do not fit into a block of 10",
    ),
    (
        "a block of too many",
        lambda r: r.change_ready(3, span=513),
        "4 items from position 0 do not fit into a block of 513",
    ),
    (
        "a block that begins before the part",
        lambda r: r.change_ready(3, at=1),
        "its block is outside of the 20 rows",
    ),
    (
        "a block that ends after the part",
        lambda r: r.change_ready(13, span=11),
        "its block is outside of the 20 rows",
    ),
    ("another batch", lambda r: r.change_ready(3, mark={"batch": 4}), "no new item .* the mark"),
    ("no batch", lambda r: r.change_delayed(6, mark={"batch": 0}), "delayed .*no new item .* the"),
    ("an attempt", lambda r: r.change_ready(3, mark={"attempts": 1}), "no new item of the load"),
    ("a group", lambda r: r.change_ready(3, mark={"group_max": 2}), "no new item of the load has"),
    ("another flag", lambda r: r.change_ready(3, mark={"flags": 2}), "no new item of the load has"),
    ("a priority of 10", lambda r: r.change_ready(3, mark={"priority": 10}), "no new item of the"),
    (
        "another priority",
        lambda r: r.change_ready(3, mark={"priority": 4}),
        "its level is not the one of its mark",
    ),
    (
        "another partition",
        lambda r: r.move(
            Family.VISIBILITY_INDEX,
            r.ready(3),
            PREFIX + level_part(4) + due_part(STARTED_MS, id_of(3, partition=4)),
        ),
        "its key is outside of the range of the part",
    ),
    (
        "another time",
        lambda r: r.move(
            Family.VISIBILITY_INDEX,
            r.ready(3),
            PREFIX + level_part(4) + due_part(STARTED_MS - 1, id_of(3)),
        ),
        "its key is outside of the range of the part",
    ),
    (
        "a level of quarantined items",
        lambda r: r.move(Family.VISIBILITY_INDEX, r.ready(3), r.ready(3, level=14)),
        "its key is outside of the range of the part",
    ),
    (
        "a delayed run of another queue",
        lambda r: r.move(
            Family.DELAYED,
            PREFIX + due_part(LATER_MS, id_of(6)),
            b"\0\0\0\1" + due_part(LATER_MS, id_of(6)),
        ),
        "delayed has a wrong run .* its key is outside of the range of the part",
    ),
    (
        "a delayed run of another partition",
        lambda r: r.move(
            Family.DELAYED,
            PREFIX + due_part(LATER_MS, id_of(6)),
            PREFIX + due_part(LATER_MS, id_of(6, partition=6)),
        ),
        "delayed has a wrong run .* its key is outside of the range of the part",
    ),
    ("a run less", drop_ready, "visibility_index of priority 5 have 4 items, not 8"),
    ("a delayed run less", drop_delayed, "delayed have 7 items from .*, not 10"),
    ("an earlier time", delay_for_less, f"10 items from {LATER_MS - 1}, not 10 from {LATER_MS}"),
    ("rows in two runs", overlap, "some rows are in two of them, and others in none"),
    (
        "runs that differ in their block",
        shrink_block,
        "runs of one block differ in what they say of it",
    ),
    (
        "runs that differ in details",
        lambda r: r.change_ready(3, mark={"flags": 1}),
        "runs of one block differ in what they say of it",
    ),
    ("another block", drop_block, "those of items have 3 blocks, but the runs are in 2"),
    ("a size", lambda r: r.change_ready(3, size=1), "contentsBytes: 120000, but the runs have 960"),
    ("a place less", forget_place, "those of places do not have the times of delayed runs"),
    ("a place of another run", move_place, "those of places do not have the times of delayed"),
    ("a place with another time", retime_place, "those of places do not have the times of"),
]


@pytest.mark.parametrize(
    ("lie", "message"), [(lie, text) for _, lie, text in WRONG], ids=[name for name, _, _ in WRONG]
)
def test_check_runs_refuses_a_wrong_run_and_names_it(read: Read, lie: Lie, message: str) -> None:
    lie(read)

    with pytest.raises(InvalidArgument, match=message):
        read.check()


def test_rows_that_are_missing_at_the_end_of_a_block_are_found(read: Read) -> None:
    """The run is moved by one, with its block: every number is right."""
    read.change_ready(13, last=shifted(id_of(13), 1), count=4, span=9)

    with pytest.raises(InvalidArgument, match="some rows are in two of them, and others in none"):
        read.check()
