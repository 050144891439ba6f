"""The log as bytes: real logs of RocksDB, cut and flipped at every byte."""

from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from queueber.db.families import Family
from queueber.db.recovery.wal import BLOCK_BYTES, crc32c, find_break, find_hole
from queueber.db.store.rocks import RocksStore
from tests.support.folders import quick_folder, remove_folder


class Written(NamedTuple):
    """A log, and of each record in it where it ends, its last sequence, and what was synced."""

    data: bytes
    ends: list[int]
    lasts: list[int]
    synced: list[int]
    """The sequence that was synced when the record was written."""

    def damaged_at(self, position: int) -> int:
        """The number of the record that has the byte."""
        return next(at for at, end in enumerate(self.ends) if position < end)

    def replayed(self, record: int) -> int:
        """What is replayed when this record is the first that is not sound."""
        return self.lasts[record - 1] if record else 0


def write_log(sizes: list[int], sync_every: int) -> Written:
    folder = quick_folder()
    ends, lasts, synced = [], [], [0]
    random = Random(7)
    with RocksStore(folder / "data") as store:
        (log,) = (folder / "data").glob("*.log")
        ends.append(log.stat().st_size)
        lasts.append(1)  # the format, which the store writes first
        now_synced = 1
        for number, size in enumerate(sizes):
            batch = store.batch()
            batch.put(Family.ITEMS, number.to_bytes(4), random.randbytes(size))
            store.write(batch)
            ends.append(log.stat().st_size)
            synced.append(now_synced)
            lasts.append(lasts[-1] + (2 if batch.synced else 1))
            if number % sync_every == sync_every - 1:
                store.sync()
                now_synced = lasts[-1]
        data = log.read_bytes()
    remove_folder(folder)
    return Written(data, ends, lasts, synced)


SHAPES = {
    "small": ([20, 1, 300, 0, 77, 5, 600, 20, 20, 20, 20], 1),
    "groups": ([20, 1, 300, 0, 77, 5, 600, 20, 20, 20, 20], 3),
    "over blocks": ([100, 40_000, 10, BLOCK_BYTES - 200, 70_000, 9, 20], 1),
}


@pytest.fixture(scope="module", params=SHAPES)
def log(request: pytest.FixtureRequest) -> Written:
    return write_log(*SHAPES[request.param])


def some(log: Written) -> list[int]:
    """All positions of a short log; of a long one those around the ends of records and blocks."""
    if len(log.data) < 10_000:
        return list(range(len(log.data)))
    edges = [*log.ends, *range(0, len(log.data), BLOCK_BYTES)]
    near = {edge + off for edge in edges for off in range(-9, 21, 2)} | set(range(0, 200_000, 9999))
    return sorted(each for each in near if 0 <= each < len(log.data))


def test_crc32c_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


def test_whole_log_has_no_break(log: Written) -> None:
    assert find_break([("log", log.data)], log.lasts[-1]) is None
    assert find_break([("log", log.data + bytes(5000))], log.lasts[-1]) is None
    assert find_hole(log.data) is None


def test_log_that_is_cut_breaks_where_it_was_and_shows_no_sync_beyond(log: Written) -> None:
    for cut in some(log):
        record = log.damaged_at(cut)
        replayed = log.replayed(record)

        found = find_break([("log", log.data[:cut])], replayed)

        start = log.ends[record - 1] if record else 0
        if not any(log.data[start:cut]):
            # Nothing is left of it, or a checksum's first byte that happens to be zero: as if
            # nothing had been written there.
            assert found is None, cut
        else:
            assert found is not None, cut
            assert (found.position, found.synced) == (trailer_skipped(start), 0), cut


def trailer_skipped(at: int) -> int:
    left = BLOCK_BYTES - at % BLOCK_BYTES
    return at + left if left < 7 else at


def test_log_with_a_flipped_byte_shows_what_was_synced_behind_it(log: Written) -> None:
    for flipped in some(log):
        data = bytearray(log.data)
        data[flipped] ^= 1 + flipped % 255
        record = log.damaged_at(flipped)
        if flipped < trailer_skipped(log.ends[record - 1] if record else 0):
            continue  # in the trailer of a block, which means nothing
        replayed = log.replayed(record)

        found = find_break([("log", bytes(data))], replayed)

        behind = [each for each in log.synced[record + 1 :] if each > replayed]
        assert found is not None, flipped
        assert bool(behind) == (found.synced > replayed), flipped


def test_damage_in_one_log_is_seen_by_the_notes_of_the_next(log: Written) -> None:
    half = log.ends[len(log.ends) // 2 - 1]
    if log.ends[-1] > BLOCK_BYTES:
        pytest.skip("records over blocks cannot be cut into two logs")
    record = log.damaged_at(half - 1)
    first, second = log.data[: half - 1], log.data[half:]

    found = find_break([("1.log", first), ("2.log", second)], log.replayed(record))

    assert found is not None
    assert (found.file, found.synced > log.replayed(record)) == ("1.log", True)


def test_zeros_in_the_place_of_a_record_are_a_hole(log: Written) -> None:
    """RocksDB passes over the rest of a block from there."""
    for start in map(trailer_skipped, [0, *log.ends[:-1]]):
        data = bytearray(log.data)
        data[start : start + 600] = bytes(min(600, len(data) - start))
        has_more = any(data[start:])

        assert find_hole(bytes(data)) == (start if has_more else None), start


def test_zeros_in_contents_are_no_hole() -> None:
    folder: Path = quick_folder()
    with RocksStore(folder / "data") as store:
        for number in range(5):
            batch = store.batch()
            batch.put(Family.ITEMS, bytes([number]), bytes(20_000))
            store.write(batch)
        (log,) = (folder / "data").glob("*.log")
        data = log.read_bytes()
    remove_folder(folder)

    assert find_hole(data) is None
