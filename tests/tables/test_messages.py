"""Pages of messages as record batches: columns that are computed, nulls, and what is not wanted."""

from datetime import UTC, datetime

import pytest

from queueber.model import Column, PackedContents
from queueber.tables.messages import MESSAGES, messages_page, unwanted_columns
from queueber.wire.pages import Piece

FIRST = bytes.fromhex("018bcfe568007abc92345678 90abcdfe")
AT_MS = 1_700_000_000_000


class Page:
    """Three messages of partition 2: two that were published together, and one after a gap."""

    partition = 2
    count = 3
    pieces: tuple[Piece, ...] = (
        Piece(2, 5, AT_MS, FIRST, 70),
        Piece(1, 9, AT_MS + 1, b"\x01" * 16, 90),
    )
    payloads = PackedContents.pack([b"one", b"", "drei ü".encode()])[0:]
    keys: PackedContents | None = PackedContents.pack([b"k", b"", "ü".encode()])

    def attributes_of(self, at: int) -> dict[str, str]:
        return {"a": "b"} if at == 1 else {}


def test_every_column_of_a_page_becomes_one_of_the_table() -> None:
    batch = messages_page(Page(), MESSAGES.names)

    assert batch.schema.equals(MESSAGES)
    assert batch.to_pydict() == {
        "partition": [2, 2, 2],
        "offset": [5, 6, 9],
        "id": [FIRST.hex(), FIRST.hex()[:-2] + "ff", "01" * 16],
        "timestamp": [datetime.fromtimestamp((AT_MS + n) / 1000, UTC) for n in (0, 0, 1)],
        "key": ["k", None, "ü"],
        "attributes": [[], [("a", "b")], []],
        "payload": [b"one", b"", "drei ü".encode()],
        "sequence": [70, 71, 90],
    }
    batch.validate(full=True)


def test_columns_come_in_the_order_in_which_they_are_wanted() -> None:
    assert messages_page(Page(), ("sequence", "offset")).schema.names == ["sequence", "offset"]


def test_slice_of_packed_payloads_keeps_its_bytes() -> None:
    class Part(Page):
        count = 2
        pieces = Page.pieces[:1]
        payloads = PackedContents.pack([b"before", b"one", b"two"])[1:]
        keys = None

    assert messages_page(Part(), ("payload", "key")).to_pydict() == {
        "payload": [b"one", b"two"],
        "key": [None, None],
    }


@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (MESSAGES.names, set()),
        (["offset", "timestamp"], {Column.CONTENTS, Column.KEYS, Column.ATTRIBUTES}),
        (["payload"], {Column.KEYS, Column.ATTRIBUTES}),
    ],
)
def test_columns_that_are_not_wanted_are_not_asked_for(
    names: list[str], left_out: set[Column]
) -> None:
    assert set(unwanted_columns(names)) == left_out
