"""Columns that are computed: where an item came from, by its id."""

from queueber.model import ItemInfo, ItemState, Result
from queueber.spark.columns import items_batch, results_batch

LOADED = bytes.fromhex("018bcfe56800 8abc 92 000007 0000002a")
ADDED = bytes.fromhex("018bcfe56800 7abc 9234567890abcdef")


def test_partition_and_row_are_those_of_items_that_were_loaded() -> None:
    rows = [Result(n, each, b"", 0, 1, "", "") for n, each in enumerate((LOADED, ADDED))]

    columns = results_batch(rows, ("partition", "row", "id")).to_pydict()

    assert columns["partition"] == [7, None]
    assert columns["row"] == [42, None]
    assert columns["id"] == [LOADED.hex(), ADDED.hex()]


def test_largest_partition_and_row_fit() -> None:
    row = Result(0, LOADED[:9] + b"\xff" * 7, b"", 0, 1, "", "")

    assert results_batch([row], ("partition", "row")).to_pydict() == {
        "partition": [(1 << 24) - 1],
        "row": [(1 << 32) - 1],
    }


def test_age_is_that_of_the_moment_of_the_snapshot() -> None:
    item = ItemInfo(ADDED, b"", 1_700_000_000_000, "", {}, "", 5, 0, 0, 0)

    batch = items_batch([item], ("age_seconds", "state"), ItemState.LEASED, 1_700_000_001_500)

    assert batch.to_pydict() == {"age_seconds": [1.5], "state": ["leased"]}
