"""Columns of several calls as those of one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Any, cast

from queueber.model.packed import PackedContents
from queueber.model.topics import NewMessages, Publication


def join_column(columns: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """One column; packed if one of them is, without an object for each item."""
    if not any(isinstance(each, PackedContents) for each in columns):
        return list(chain.from_iterable(columns))
    packed: list[PackedContents] = []
    for is_packed, group in groupby(columns, lambda each: isinstance(each, PackedContents)):
        if is_packed:
            packed += cast("Iterable[PackedContents]", group)
        else:
            packed.append(PackedContents.pack(chain.from_iterable(group)))
    return PackedContents.join(packed)


def joined_columns(columns: Iterable[tuple[Sequence[Any], int]], missing: object) -> list[Any]:
    """Join columns, each given with its number of items; empty if all columns are empty."""
    listed = list(columns)
    if not any(column for column, _ in listed):
        return []
    return [each for column, count in listed for each in (column or [missing] * count)]


def join_publications(parts: Sequence[Publication]) -> Publication:
    """Several publications to one place as one. None of them has a condition."""
    if len(parts) == 1:
        return parts[0]
    messages = [each.messages for each in parts]
    counts = [len(each.payloads) for each in messages]
    none: dict[str, str] = {}
    joined = NewMessages(
        join_column([each.payloads for each in messages]),
        joined_columns(zip([each.keys for each in messages], counts, strict=True), ""),
        joined_columns(zip([each.attributes for each in messages], counts, strict=True), none),
    )
    return replace(parts[0], messages=joined)
