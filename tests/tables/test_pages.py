"""Pages of the client as record batches: columns that are computed, nulls, and the schemas."""

import pyarrow as pa
import pytest

from queueber.model import Column, ItemColumns, ItemState, ResultColumns
from queueber.tables.pages import ITEMS, RESULTS, dead_page, items_page, results_page, unwanted

LOADED = bytes.fromhex("018bcfe56800 8abc 92 000007 0000002a")
ADDED = bytes.fromhex("018bcfe56800 7abc 9234567890abcdef")
ADDED_AT_MS = 1_700_000_000_000


def results(*ids: bytes) -> ResultColumns:
    count = len(ids)
    return ResultColumns(
        offsets=range(count),
        ids=ids,
        results=[b"r"] * count,
        completed_at_ms=[ADDED_AT_MS + 1] * count,
        attempts=[1] * count,
        keys=["", "k"][:count],
        batches=[""] * count,
        attributes=[{}, {"a": "b"}][:count],
        next_offset=count,
        missed=0,
    )


def items(*ids: bytes, errors: tuple[str, ...] = ()) -> ItemColumns:
    count = len(ids)
    return ItemColumns(
        ids=ids,
        contents=[b"x"] * count,
        keys=[""] * count,
        attributes=[{}] * count,
        batches=["b"] * count,
        priorities=[5] * count,
        attempts=[2] * count,
        at_ms=[ADDED_AT_MS + 2] * count,
        lease_ids=[b""] * count,
        reasons=["its lease expired"] * count,
        last_errors=errors or [""] * count,
        next=b"",
    )


def test_partition_and_row_are_those_of_items_that_were_loaded() -> None:
    columns = results_page(results(LOADED, ADDED), ("partition", "row", "id")).to_pydict()

    assert columns["partition"] == [7, None]
    assert columns["row"] == [42, None]
    assert columns["id"] == [LOADED.hex(), ADDED.hex()]


def test_largest_partition_and_row_fit() -> None:
    page = results(LOADED[:9] + b"\xff" * 7)

    assert results_page(page, ("partition", "row")).to_pydict() == {
        "partition": [(1 << 24) - 1],
        "row": [(1 << 32) - 1],
    }


def test_age_is_that_of_the_moment_of_the_snapshot() -> None:
    batch = items_page(items(ADDED), ("age_seconds", "state"), ItemState.LEASED, ADDED_AT_MS + 1500)

    assert batch.to_pydict() == {"age_seconds": [1.5], "state": ["leased"]}


def test_empty_texts_are_null_and_empty_maps_are_not() -> None:
    columns = results_page(results(LOADED, ADDED), ("key", "batch", "attributes")).to_pydict()

    assert columns == {
        "key": [None, "k"],
        "batch": [None, None],
        "attributes": [[], [("a", "b")]],
    }


def test_error_of_a_dead_letter_is_its_last_one_or_why_it_died() -> None:
    page = items(ADDED, LOADED, errors=("broken", ""))

    columns = dead_page(page, ("status", "error", "result")).to_pydict()

    assert columns == {
        "status": ["dead", "dead"],
        "error": ["broken", "its lease expired"],
        "result": [None, None],
    }


@pytest.mark.parametrize(
    ("batch", "schema"),
    [
        (results_page(results(LOADED, ADDED), RESULTS.names), RESULTS),
        (dead_page(items(LOADED, ADDED), RESULTS.names), RESULTS),
        (items_page(items(LOADED, ADDED), ITEMS.names, ItemState.READY, ADDED_AT_MS), ITEMS),
        (results_page(results(), RESULTS.names), RESULTS),
    ],
    ids=["results", "dead", "items", "empty"],
)
def test_pages_have_the_schema_of_their_table(batch: pa.RecordBatch, schema: pa.Schema) -> None:
    assert batch.schema == schema


def test_only_columns_that_are_wanted_are_sent() -> None:
    assert unwanted(ITEMS.names) == [Column.RESULTS]
    assert unwanted(["id", "key"]) == [
        Column.RESULTS, Column.CONTENTS, Column.BATCHES, Column.ATTRIBUTES,
    ]  # fmt: skip
