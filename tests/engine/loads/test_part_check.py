"""The check of a part: one that the writer made passes, and each kind of lie is named."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from queueber.db.records.keys import time_part
from queueber.db.records.remembered import ids_digest
from queueber.engine.loads.part_check import FILE_NAME, check_part, check_partition
from queueber.errors import InvalidArgument
from queueber.ids import range_id
from queueber.limits import LOAD_FILE_BYTES_MAX, LOAD_FILES_MAX, PARTITIONS_MAX
from queueber.model import Part, PartRef, Rows, StagedFile
from tests.support.folders import quick_folder, remove_folder
from tests.support.part_folder import LOAD, PREFIX, STARTED_MS, PartFolder

PARTITION = 5
Lie = Callable[["Staged"], Part]


class Staged:
    """A part with two files, or more, of each family: 24 rows, of priorities 9 and 5."""

    load = LOAD
    prefix = PREFIX

    def __init__(self, parts: PartFolder) -> None:
        rows = Rows(
            [b"x" * 6000] * 12,
            [STARTED_MS + (n % 3) * 10 for n in range(12)],
            [9 if n % 2 else 5 for n in range(12)],
            [f"k{n}" if n % 4 else "" for n in range(12)],
        )
        other = replace(rows, keys=[f"j{n}" if n % 4 else "" for n in range(12)])
        self.part = parts.build(
            LOAD,
            rows,
            other,
            partition=PARTITION,
            buffered_rows=1,
            sorted_entries=5,
            file_bytes=1,
        )

    def check(self, part: Part) -> None:
        check_part(self.load, self.prefix, part)

    def of(self, family: str) -> list[StagedFile]:
        return [file for file in self.part.files if file.family == family]

    def with_file(self, of: str, /, at: int = 0, **values: object) -> Part:
        """Another announcement for one of the files of a family."""
        chosen = self.of(of)[at]
        changed = replace(chosen, **values)  # type: ignore[arg-type]
        files = [changed if file is chosen else file for file in self.part.files]
        return replace(self.part, files=files)

    def without(self, family: str, at: int = 0) -> Part:
        chosen = self.of(family)[at]
        return replace(self.part, files=[file for file in self.part.files if file is not chosen])

    def without_all(self, family: str) -> Part:
        return replace(self.part, files=[f for f in self.part.files if f.family != family])

    def row(self, row: int, partition: int = PARTITION) -> bytes:
        return range_id(self.load.id_head, partition, row)

    def ready(self, row: int, level: int, *, ms: int = 0, partition: int = PARTITION) -> bytes:
        at = time_part(self.load.started_at_ms + ms)
        return self.prefix + bytes([level]) + at + self.row(row, partition)

    def delayed(self, row: int, ms: int, partition: int = PARTITION) -> bytes:
        return self.prefix + time_part(self.load.started_at_ms + ms) + self.row(row, partition)

    def forget(self, ms: int) -> bytes:
        at_ms = self.load.started_at_ms + self.load.dedup_window_ms + ms
        return self.prefix + time_part(at_ms) + bytes(16)


@pytest.fixture(scope="module")
def staged() -> Iterator[Staged]:
    folder = quick_folder()
    yield Staged(PartFolder(folder))
    remove_folder(folder)


def test_check_part_passes_what_the_writer_made(staged: Staged) -> None:
    families = {file.family for file in staged.part.files}
    assert families == {
        *("items", "visibility_index", "delayed", "places", "keys", "forget", "claims")
    }
    assert all(len(staged.of(family)) > 1 for family in families)

    staged.check(staged.part)


OTHER_QUEUE = b"\0\0\0\x63"

LIES: list[tuple[str, Lie, str]] = [
    # sums
    ("fewer rows", lambda s: replace(s.part, rows=23), "rows: 23, but 8 are ready and 16 delayed"),
    ("too many rows", lambda s: replace(s.part, rows=(1 << 32) + 1), "rows: 4294967297 is out of"),
    ("nine levels", lambda s: replace(s.part, levels=s.part.levels[:9]), "levels: 9; give 10"),
    ("levels of quarantined", lambda s: replace(s.part, levels=[0] * 20), "levels: 20; give 10"),
    ("another digest", lambda s: replace(s.part, digest=b"x" * 16), "is not that of 24 rows"),
    (
        "digest of fewer rows",
        lambda s: replace(s.part, digest=ids_digest(s.row(22), 23).to_bytes(16)),
        "is not that of 24 rows",
    ),
    ("no digest", lambda s: replace(s.part, digest=bytes(16)), "is not that of 24 rows"),
    ("short digest", lambda s: replace(s.part, digest=b"x"), "digest: 1 bytes; it must have 16"),
    (
        "ready ones of another priority",
        lambda s: replace(s.part, levels=[*s.part.levels[1:], s.part.levels[0]]),
        "of visibility_index of priority 9 have 4 entries for 0 items",
    ),
    (
        "a delayed one called ready",
        lambda s: replace(s.part, levels=[5, *s.part.levels[1:]], delayed=15),
        "those of delayed have 16 entries for 15 items",
    ),
    ("more keys than rows", lambda s: replace(s.part, keys=25), "keys: 25 of 24 rows"),
    ("fewer keys", lambda s: replace(s.part, keys=17), "those of claims have 18 entries, not 17"),
    ("no keys", lambda s: replace(s.part, keys=0), "those of claims have 18 entries, not 0"),
    # files
    (
        "too many files",
        lambda s: replace(s.part, files=[s.part.files[0]] * (LOAD_FILES_MAX + 1)),
        "files: 20001 are too many; the limit is 20000",
    ),
    ("a family of its own", lambda s: s.with_file("items", family="mine"), "is of 'mine'; a load"),
    ("leases", lambda s: s.with_file("items", family="leases"), "is of 'leases'; a load has"),
    ("counters", lambda s: s.with_file("keys", family="counters"), "is of 'counters'; a load has"),
    ("empty file", lambda s: s.with_file("items", entries=0), "has no entries; leave it out"),
    (
        "large file",
        lambda s: s.with_file("items", size=LOAD_FILE_BYTES_MAX + 1),
        "has 268435457 bytes; the limit is 268435456",
    ),
    # items
    ("no items", lambda s: s.without_all("items"), "those of items have 0 entries for 24 items"),
    (
        "more blocks than items",
        lambda s: s.with_file("items", entries=23),
        "those of items have 25 entries for 24 items",
    ),
    ("no last block", lambda s: s.without("items", 1), "those of items do not end with row 23"),
    (
        "a last block that ends too early",
        lambda s: s.with_file("items", 1, last_key=s.prefix + s.row(22)),
        "those of items do not end with row 23",
    ),
    (
        "items of another queue",
        lambda s: s.with_file("items", first_key=OTHER_QUEUE + s.row(0)),
        "of items has the key 00000063.* outside of the range",
    ),
    (
        "items of another partition",
        lambda s: s.with_file("items", 1, last_key=s.prefix + s.row(0, PARTITION + 1)),
        "of items has the key .* outside of the range",
    ),
    (
        "items of a partition before",
        lambda s: s.with_file("items", first_key=s.prefix + s.row(0, PARTITION - 1)),
        "of items has the key .* outside of the range",
    ),
    (
        "a row beyond the last",
        lambda s: s.with_file("items", 1, last_key=s.prefix + s.row(24)),
        "of items has the key .* outside of the range",
    ),
    (
        "items of another load",
        lambda s: s.with_file("items", first_key=s.prefix + bytes(9) + s.row(0)[9:]),
        "of items has the key .* outside of the range",
    ),
    (
        "items that overlap",
        lambda s: s.with_file("items", 1, first_key=s.prefix + s.row(11)),
        "of items has the key .* outside of the range",
    ),
    (
        "files of items in disorder",
        lambda s: replace(s.part, files=s.part.files[::-1]),
        "of items has the key .* outside of the range",
    ),
    (
        "a short key",
        lambda s: s.with_file("items", first_key=s.prefix + s.row(0)[:-1]),
        "has a key of 19 bytes; in items it has 20",
    ),
    ("no key", lambda s: s.with_file("items", last_key=b""), "key of 0 bytes; in items it has 20"),
    # ready
    (
        "no ready ones",
        lambda s: s.without_all("visibility_index"),
        "visibility_index of priority 9 have 0 entries for 4 items",
    ),
    (
        "more ready runs than items",
        lambda s: s.with_file("visibility_index", entries=4),
        "visibility_index of priority [59] have 6 entries for 4 items",
    ),
    (
        "ready since ever",
        lambda s: s.with_file("visibility_index", first_key=s.ready(0, 0, ms=-1)),
        "of visibility_index has the key .* outside of the range",
    ),
    (
        "ready in time to come",
        lambda s: s.with_file("visibility_index", last_key=s.ready(9, 0, ms=1)),
        "of visibility_index has the key .* outside of the range",
    ),
    (
        "ready in another partition",
        lambda s: s.with_file("visibility_index", last_key=s.ready(9, 0, partition=6)),
        "of visibility_index has the key .* outside of the range",
    ),
    (
        "of two levels",
        lambda s: s.with_file("visibility_index", last_key=s.ready(9, 8)),
        "of visibility_index has the key .* outside of the range",
    ),
    (
        "of a level of quarantined",
        lambda s: s.with_file(
            "visibility_index", first_key=s.ready(0, 14), last_key=s.ready(9, 14)
        ),
        "1 of visibility_index are of no priority",
    ),
    (
        "a suspect more",
        lambda s: replace(
            s.part,
            files=[
                *s.part.files,
                replace(
                    s.of("visibility_index")[0],
                    first_key=s.ready(0, 14),
                    last_key=s.ready(9, 14),
                ),
            ],
        ),
        "1 of visibility_index are of no priority",
    ),
    (
        "a short ready key",
        lambda s: s.with_file("visibility_index", last_key=s.ready(0, 0)[:-1]),
        "has a key of 28 bytes; in visibility_index it has 29",
    ),
    # delayed
    (
        "no delayed ones",
        lambda s: s.without_all("delayed"),
        "those of delayed have 0 entries for 16 items",
    ),
    ("fewer delayed runs", lambda s: s.without("delayed"), "places have 16 entries, not 11"),
    ("no places", lambda s: s.without("places"), "those of places have 8 entries, not 16"),
    (
        "delayed to before the earliest",
        lambda s: replace(s.part, delayed_first_ms=s.part.delayed_first_ms + 1),
        "of delayed has the key .* outside of the range",
    ),
    (
        "delayed to the start",
        lambda s: replace(s.part, delayed_first_ms=s.load.started_at_ms),
        "delayedFirstMs: [0-9]+ for 16 delayed items; the load began at",
    ),
    (
        "delayed without a first time",
        lambda s: replace(s.part, delayed_first_ms=0),
        "delayedFirstMs: 0 for 16 delayed items",
    ),
    (
        "delayed in another queue",
        lambda s: s.with_file("delayed", last_key=OTHER_QUEUE + s.delayed(1, 10)[4:]),
        "of delayed has the key .* outside of the range",
    ),
    (
        "delayed in another partition",
        lambda s: s.with_file("delayed", last_key=s.delayed(1, 10, partition=4)),
        "of delayed has the key .* outside of the range",
    ),
    (
        "a long delayed key",
        lambda s: s.with_file("delayed", last_key=s.delayed(1, 10) + b"\0"),
        "has a key of 29 bytes; in delayed it has 28",
    ),
    (
        "places of another partition",
        lambda s: s.with_file("places", first_key=s.prefix + s.row(1, 4)),
        "of places has the key .* outside of the range",
    ),
    # keys
    ("no claims", lambda s: s.without("claims"), "those of claims have"),
    (
        "claims of another partition",
        lambda s: s.with_file("claims", first_key=bytes(16) + s.row(1, 4)),
        "of claims has the key .* outside of the range",
    ),
    (
        "a short claim",
        lambda s: s.with_file("claims", first_key=bytes(16)),
        "has a key of 16 bytes; in claims it has 32",
    ),
    ("a file of keys less", lambda s: s.without("keys"), "3 of keys for 4 of claims"),
    (
        "keys of another queue",
        lambda s: s.with_file("keys", first_key=OTHER_QUEUE + bytes(16)),
        "of keys has the key .* outside of the range",
    ),
    (
        "a long key",
        lambda s: s.with_file("keys", last_key=s.prefix + bytes(17)),
        "has a key of 21 bytes; in keys it has 20",
    ),
    ("fewer to forget", lambda s: s.without("forget"), "those of forget have .* entries, not "),
    (
        "forgotten before the window is over",
        lambda s: s.with_file("forget", first_key=s.forget(-1)),
        "of forget has the key .* outside of the range",
    ),
    (
        "forgotten after the window is over",
        lambda s: s.with_file("forget", last_key=s.forget(1)),
        "of forget has the key .* outside of the range",
    ),
    (
        "a short reminder",
        lambda s: s.with_file("forget", first_key=s.forget(0)[:-1]),
        "has a key of 27 bytes; in forget it has 28",
    ),
]


@pytest.mark.parametrize(
    ("lie", "message"), [(lie, text) for _, lie, text in LIES], ids=[name for name, _, _ in LIES]
)
def test_check_part_refuses_a_lie_and_names_it(staged: Staged, lie: Lie, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        staged.check(lie(staged))


@pytest.mark.parametrize(
    "name",
    [
        "../x.sst", "/x.sst", "a/b.sst", "..", "", ".sst", "x", "x.SST", "X.sst", "x.sst\n",
        "x\0.sst", "ü.sst", "x.sst.sst", "a" * 65 + ".sst", "CURRENT",
    ],
)  # fmt: skip
def test_check_part_refuses_a_name_that_is_no_plain_file(staged: Staged, name: str) -> None:
    with pytest.raises(InvalidArgument, match="is no name for a file; use up to 64"):
        staged.check(staged.with_file("items", name=name))


@pytest.mark.parametrize("name", ["a.sst", "000001-items.sst", "a_b-9.sst", "a" * 64 + ".sst"])
def test_file_name_may_be_any_of_small_letters_digits_dashes(name: str) -> None:
    assert FILE_NAME.fullmatch(name)


def test_check_part_of_a_load_without_a_window_refuses_keys(staged: Staged) -> None:
    load = replace(staged.load, dedup_window_ms=0)

    with pytest.raises(InvalidArgument, match="keys: 18 of 24 rows; the window of the load is 0"):
        check_part(load, staged.prefix, staged.part)


def test_check_part_of_a_load_without_a_batch_refuses_a_digest(staged: Staged) -> None:
    load = replace(staged.load, batch=0)

    with pytest.raises(InvalidArgument, match=r"digest: .* is not that of 24 rows"):
        check_part(load, staged.prefix, staged.part)
    check_part(load, staged.prefix, replace(staged.part, digest=bytes(16)))


def test_check_part_of_another_load_refuses_all_of_it(staged: Staged) -> None:
    load = replace(staged.load, id_head=bytes(9))

    with pytest.raises(InvalidArgument, match="outside of the range"):
        check_part(load, staged.prefix, staged.part)


def test_check_part_under_another_partition_refuses_all_of_it(staged: Staged) -> None:
    part = replace(staged.part, ref=PartRef(PARTITION + 1, "a"))

    with pytest.raises(InvalidArgument, match="outside of the range"):
        staged.check(part)


@pytest.mark.parametrize("partition", [0, PARTITIONS_MAX - 1])
def test_check_partition_passes_what_an_id_has_room_for(partition: int) -> None:
    check_partition(partition)


@pytest.mark.parametrize("partition", [-1, PARTITIONS_MAX])
def test_check_partition_refuses_what_an_id_has_no_room_for(partition: int) -> None:
    with pytest.raises(InvalidArgument, match=f"partition: {partition} is too high"):
        check_partition(partition)
