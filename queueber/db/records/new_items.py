"""The records and marks of new items: the same for an add and for a bulk load."""

from typing import NamedTuple

from queueber.db.records.items import (
    encode_detailed_item,
    encode_item,
    encode_items,
    pack_attributes,
)
from queueber.db.records.marks import Mark, new_mark
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import NewItems, Rows


class NewRecords(NamedTuple):
    """One of each for every item, in order."""

    sizes: list[int]
    """Bytes of contents, key and attributes."""
    marks: list[Mark]
    records: list[bytes]


def describe(items: NewItems | Rows, batch: int) -> NewRecords:
    """`batch` is the number of the batch of all of them; 0: none."""
    if items.priorities or items.keys or items.attributes:
        return _describe_each(items, batch)
    sizes = [len(each) for each in items.contents]
    marks = {
        size: new_mark(size, batch, PRIORITY_DEFAULT, has_details=False) for size in set(sizes)
    }
    return NewRecords(sizes, [marks[size] for size in sizes], encode_items(items.contents))


def _describe_each(items: NewItems | Rows, batch: int) -> NewRecords:
    count = len(items.contents)
    keys = [key.encode() for key in items.keys] or [b""] * count
    attributes = [pack_attributes(each) for each in items.attributes] or [b""] * count
    priorities = items.priorities or [PRIORITY_DEFAULT] * count
    described = NewRecords([], [], [])
    for contents, key, packed, priority in zip(
        items.contents, keys, attributes, priorities, strict=True
    ):
        has_details = bool(key or packed)
        size = len(contents) + len(key) + len(packed)
        described.sizes.append(size)
        described.marks.append(new_mark(size, batch, priority, has_details=has_details))
        described.records.append(
            encode_detailed_item(contents, key, packed) if has_details else encode_item(contents)
        )
    return described
