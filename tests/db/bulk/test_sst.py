"""SST files: what is said of them is held against what they are."""

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queueber.db.bulk.staged_files import CLAIMS, SstWriter, check_files, file_crc32, walk_files
from queueber.db.families import Family
from queueber.db.store.rocks import RocksStore
from queueber.errors import InvalidArgument
from queueber.model import StagedFile

ENTRIES = {b"b": b"1", b"c": b"", b"x" * 40: b"v" * 100}


def write(path: Path, entries: dict[bytes, bytes], family: str = "items") -> StagedFile:
    writer = SstWriter(path, family)
    keys = sorted(entries)
    writer.put_many(keys, [entries[key] for key in keys])
    return writer.finish()


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_writer_tells_what_it_has_written(folder: Path) -> None:
    writer = SstWriter(folder / "a.sst", "items")
    writer.put_many([b"b", b"c"], [b"1", b""])
    writer.put_many([b"d"], [b"2"])

    file = writer.finish()

    raw = (folder / "a.sst").read_bytes()
    assert file == StagedFile("a.sst", "items", len(raw), 3, zlib.crc32(raw), b"b", b"d")
    assert list(walk_files([folder / "a.sst"], folder / "scratch")) == [
        (b"b", b"1"),
        (b"c", b""),
        (b"d", b"2"),
    ]


def test_writer_grows_with_what_it_is_given(folder: Path) -> None:
    writer = SstWriter(folder / "a.sst", "items")
    before = writer.size()
    writer.put_many([n.to_bytes(4) for n in range(5000)], [n.to_bytes(4) * 25 for n in range(5000)])

    assert writer.size() > before + 10_000
    writer.finish()


@pytest.mark.parametrize("family", [*(each.family_name for each in Family), CLAIMS])
def test_writer_of_any_family_makes_files_that_pass(folder: Path, family: str) -> None:
    file = write(folder / "a.sst", ENTRIES, family)

    check_files(folder, [file], folder / "scratch")

    assert file.family == family


def test_file_crc32_of_a_file_larger_than_a_read(folder: Path) -> None:
    raw = bytes(range(256)) * 10_000
    (folder / "a").write_bytes(raw)

    assert file_crc32(folder / "a") == zlib.crc32(raw)


# --- what is announced ----------------------------------------------------------------------------

LIES: list[tuple[str, Callable[[StagedFile], StagedFile], str]] = [
    ("another name", lambda f: replace(f, name="b.sst"), "'b.sst' was announced, but is not there"),
    ("larger", lambda f: replace(f, size=f.size + 1), "'a.sst' has [0-9]+ bytes, not"),
    ("smaller", lambda f: replace(f, size=f.size - 1), "'a.sst' has [0-9]+ bytes, not"),
    ("checksum", lambda f: replace(f, crc32=f.crc32 ^ 1), "'a.sst' does not have the announced ch"),
    ("more entries", lambda f: replace(f, entries=4), "'a.sst' has 3 entries .* not 4"),
    ("fewer entries", lambda f: replace(f, entries=2), "'a.sst' has 3 entries .* not 2"),
    ("first key", lambda f: replace(f, first_key=b"c"), "3 entries from 62 to .* not 3 from 63"),
    ("last key", lambda f: replace(f, last_key=b"c"), "to 7878.* not 3 from 62 to 63"),
    ("no last key", lambda f: replace(f, last_key=b""), "not 3 from 62 to $"),
]


@pytest.mark.parametrize(
    ("lie", "message"), [(lie, text) for _, lie, text in LIES], ids=[name for name, _, _ in LIES]
)
def test_check_files_refuses_a_file_that_is_not_as_announced_and_leaves_it(
    folder: Path, lie: Callable[[StagedFile], StagedFile], message: str
) -> None:
    file = write(folder / "a.sst", ENTRIES)
    good = write(folder / "good.sst", {b"n": b""})
    before = contents_of(folder)

    with pytest.raises(InvalidArgument, match=message):
        check_files(folder, [good, lie(file)], folder / "scratch")

    assert contents_of(folder) == before
    check_files(folder, [good, file], folder / "scratch")


def announce(path: Path, raw: bytes) -> StagedFile:
    path.write_bytes(raw)
    return StagedFile(path.name, "items", len(raw), 1, zlib.crc32(raw), b"a", b"a")


@pytest.mark.parametrize("raw", [b"", b"x", b"no table at all" * 1000], ids=["empty", "x", "text"])
def test_check_files_refuses_what_is_no_sst_file(folder: Path, raw: bytes) -> None:
    file = announce(folder / "a.sst", raw)

    with pytest.raises(InvalidArgument, match=r"'a.sst' cannot be read as an SST file"):
        check_files(folder, [file], folder / "scratch")

    assert [path.name for path in folder.iterdir()] == ["a.sst"]


@pytest.mark.parametrize("cut", [1, 10, 50, 200])
def test_check_files_refuses_a_file_that_was_cut_short(folder: Path, cut: int) -> None:
    write(folder / "a.sst", ENTRIES)
    file = announce(folder / "a.sst", (folder / "a.sst").read_bytes()[:-cut])

    with pytest.raises(InvalidArgument, match="cannot be read as an SST file"):
        check_files(folder, [file], folder / "scratch")


def test_check_files_refuses_a_directory_in_place_of_a_file(folder: Path) -> None:
    (folder / "a.sst").mkdir()

    with pytest.raises(InvalidArgument, match="is not there"):
        check_files(folder, [StagedFile("a.sst", "items", 1, 1, 1, b"a", b"a")], folder / "scratch")


def test_check_files_of_none_is_content(folder: Path) -> None:
    check_files(folder, [], folder / "scratch")

    assert list(folder.iterdir()) == []


def test_check_files_of_files_that_overlap_may_be_repeated_and_changes_none(folder: Path) -> None:
    """Files of several families share keys; RocksDB must not write its numbers into ours."""
    files = [write(folder / f"{n}.sst", {b"a": b"", bytes([98 + n]): b""}) for n in range(12)]
    before = contents_of(folder)

    for _ in range(2):
        check_files(folder, files, folder / "scratch")

    assert contents_of(folder) == before


def test_check_files_after_a_check_that_was_killed_clears_what_it_left(folder: Path) -> None:
    file = write(folder / "a.sst", ENTRIES)
    (folder / "scratch").mkdir()
    (folder / "scratch" / "0.link").write_bytes(b"left")

    check_files(folder, [file], folder / "scratch")

    assert [path.name for path in folder.iterdir()] == ["a.sst"]


# --- walking --------------------------------------------------------------------------------------

some_entries = st.dictionaries(st.binary(min_size=1, max_size=3), st.just(b""), min_size=1)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(entries=st.lists(some_entries, min_size=1, max_size=5))
def test_walk_over_files_that_overlap_is_in_order_of_key(
    folder: Path, entries: list[dict[bytes, bytes]]
) -> None:
    paths = [folder / f"{number}.sst" for number in range(len(entries))]
    for path, of_file in zip(paths, entries, strict=True):
        path.unlink(missing_ok=True)
        write(path, of_file, CLAIMS)

    walked = [key for key, _ in walk_files(paths, folder / "scratch")]

    assert walked == sorted({key for of_file in entries for key in of_file})
    assert not (folder / "scratch").exists()


def test_walk_that_is_given_up_leaves_nothing_but_the_files(folder: Path) -> None:
    write(folder / "a.sst", ENTRIES)
    walk = walk_files([folder / "a.sst"], folder / "scratch")
    next(iter(walk))
    assert (folder / "scratch").is_dir()

    walk.close()  # type: ignore[attr-defined]

    assert [path.name for path in folder.iterdir()] == ["a.sst"]


def test_walk_over_no_files_finds_nothing(folder: Path) -> None:
    assert list(walk_files([], folder / "scratch")) == []
    assert list(folder.iterdir()) == []


# --- into the store -------------------------------------------------------------------------------


def test_file_that_was_checked_is_taken_in_and_goes(folder: Path) -> None:
    file = write(folder / "a.sst", ENTRIES)
    check_files(folder, [file], folder / "scratch")

    with RocksStore(folder / "data") as store:
        store.take_in(Family.ITEMS, [(folder / "a.sst", file.first_key)])

        assert dict(store.walk(Family.ITEMS, b"", b"\xff")) == ENTRIES
    assert not (folder / "a.sst").exists()
