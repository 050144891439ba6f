"""The limits: what is put straight into RocksDB is all that the engine writes, or wrote before."""

from hashlib import blake2b
from pathlib import Path
from random import Random

import pytest

from bench.measure import Shape
from bench.peers import limit
from bench.peers.entry_an_item import make_batches
from bench.peers.limit import Recorded, make_as_before, measure_limits, record, replay
from bench.peers.results import AS_BEFORE, NOW
from queueber.db.families import Family
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore

_START_MS = 1_800_000_000_000


@pytest.fixture(autouse=True)
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "_CALLS", {name: {1: 3, 100: 3} for name in (AS_BEFORE, NOW)})


@pytest.mark.parametrize(
    ("yardstick", "entries"), [(AS_BEFORE, 300), (NOW, 3)], ids=["an entry an item", "now"]
)
def test_replay_writes_every_item_and_deletes_every_one(
    tmp_path: Path, yardstick: str, entries: int
) -> None:
    added, taken = _recorded(tmp_path, yardstick)

    with RocksStore(tmp_path / "data") as store:
        assert replay(store, added, callers=2, writes_a_call=1) > 0
        items = _count(store, Family.ITEMS)
        ready = _count(store, Family.VISIBILITY_INDEX)
        assert replay(store, taken, callers=2, writes_a_call=2) > 0
        left = [
            _count(store, family)
            for family in Family
            if family not in (Family.DEFAULT, Family.COUNTERS)
        ]

    assert (items, ready) == (entries, entries)
    assert set(left) == {0}


def _recorded(folder: Path, yardstick: str) -> Recorded:
    shape = Shape(100, 100)
    return make_as_before(shape) if yardstick == AS_BEFORE else record(folder, shape)


def _count(store: Store, family: Family) -> int:
    return len(list(store.walk(family, b"", b"\xff" * 40)))


@pytest.mark.parametrize(
    ("shape", "calls", "digest"),
    [
        (Shape(1, 100), 7, "e90be8c95a0271b2d645859a1047602d"),
        (Shape(100, 1024), 3, "2b468245d7ba1ce0172414a070838291"),
        (Shape(300, 13), 4, "7cf0d483862f28fb21f377ef3ef1d743"),
    ],
    ids=["one", "a hundred", "several blocks of ids"],
)
def test_an_entry_an_item_is_what_the_engine_wrote_in_format_4(
    shape: Shape, calls: int, digest: str
) -> None:
    """The digests are of the last commit that wrote format 4, with the same ids and times."""
    contents = [Random(number).randbytes(shape.content_bytes) for number in range(shape.items)]

    added, taken = make_batches(contents, calls, random=Random(shape.items), start_ms=_START_MS)

    written = blake2b(digest_size=16)
    for family, key, value in [entry for batch in added + taken for entry in batch]:
        for part in (family.name.encode(), key, b"" if value is None else b"=" + value):
            written.update(len(part).to_bytes(4) + part)
    assert written.hexdigest() == digest


def test_both_yardsticks_are_measured_in_every_column(tmp_path: Path) -> None:
    limits = measure_limits(tmp_path, Shape(100, 100), repeat=2)

    columns = ["add 100, 100 B", "poll+ack 100, 100 B"]
    assert {name: list(of_name) for name, of_name in limits.items()} == {
        AS_BEFORE: columns,
        NOW: columns,
    }
    assert {len(rates) for of_name in limits.values() for rates in of_name.values()} == {2}
