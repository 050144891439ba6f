"""Ready and delayed items one by one, however they are cut into blocks and runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queueber.db.records.blocks import Block, decode_leftover, unpack_attributes
from queueber.db.records.keys import PREFIX_BYTES, TIME_BYTES, is_where_its_id_says
from queueber.db.records.runs import MarkFields, Run, decode_entry, decode_mark

Dump = Mapping[str, Sequence[tuple[bytes, bytes]]]
"""The entries of each family, by its name."""


class WaitingItem(NamedTuple):
    id: bytes
    contents: bytes
    key: str
    attributes: Mapping[str, str]
    is_delayed: bool
    at_ms: int
    level: int
    """Of a delayed item -1."""
    mark: MarkFields
    """Without flags: those are about the block."""


def waiting_items(dump: Dump) -> list[WaitingItem]:
    """All of them, in order of id. Asserts that the entries of all families belong together."""
    blocks = {key: Block(value) for key, value in dump["items"]}
    places = dict(dump["places"])
    items: list[WaitingItem] = []
    for family, due_at in (("visibility_index", PREFIX_BYTES + 1), ("delayed", PREFIX_BYTES)):
        for key, value in dump[family]:
            due, run = decode_entry(key[due_at:], value)
            time = places.pop(key[:PREFIX_BYTES] + run.last, None)
            assert (time is None) == is_where_its_id_says(due)
            assert time in (None, due[:TIME_BYTES])
            level = -1 if family == "delayed" else key[PREFIX_BYTES]
            block = blocks[key[:PREFIX_BYTES] + run.block]
            items += _items_of(run, block, int.from_bytes(due[:TIME_BYTES]), level)
    assert places == {}
    assert len({item.id for item in items}) == len(items)
    left = {key: decode_leftover(value).count for key, value in dump.get("leftovers", ())}
    assert len(items) == sum(left.get(key, block.span) for key, block in blocks.items())
    return sorted(items)


def _items_of(run: Run, block: Block, at_ms: int, level: int) -> list[WaitingItem]:
    fields = decode_mark(run.mark)
    assert block.span == run.span
    assert block.has_details == fields.has_details
    assert block.size(run.at, run.at + run.count) == run.size
    keys, attributes = block.details(run.at, run.count)
    columns = zip(run.ids, block.contents(run.at, run.count), keys, attributes, strict=True)
    return [
        WaitingItem(
            item_id,
            contents,
            key.decode(),
            unpack_attributes(packed),
            level < 0,
            at_ms,
            level,
            fields._replace(flags=0),
        )
        for item_id, contents, key, packed in columns
    ]
