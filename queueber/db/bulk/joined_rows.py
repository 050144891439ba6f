"""Rows of several calls as rows of one."""

from collections.abc import Sequence
from typing import TypeVar

from queueber.limits import PRIORITY_DEFAULT
from queueber.model import PackedContents, Rows

T = TypeVar("T")


def join_rows(rows: Sequence[Rows]) -> Rows:
    """All rows in order. A column that only some of them have gets its default for the others."""
    if len(rows) == 1:
        return rows[0]
    counts = [len(each.contents) for each in rows]

    def column(of_rows: Sequence[Sequence[T]], missing: T) -> Sequence[T]:
        if not any(of_rows):
            return ()
        filled = zip(of_rows, counts, strict=True)
        return [each for values, count in filled for each in values or [missing] * count]

    return Rows(
        _join_contents([each.contents for each in rows]),
        column([each.visible_at_ms for each in rows], 0),
        column([each.priorities for each in rows], PRIORITY_DEFAULT),
        column([each.keys for each in rows], ""),
        column([each.attributes for each in rows], {}),
    )


def _join_contents(columns: Sequence[Sequence[bytes]]) -> Sequence[bytes]:
    packed = [each for each in columns if isinstance(each, PackedContents)]
    if len(packed) == len(columns):
        return PackedContents.join(packed)
    return [each for column in columns for each in column]
