"""Codecs of snapshots: their counts, and pages of items in columns."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from queueber.ids import made_at_ms
from queueber.model import ItemColumns, ItemDetails, ItemInfo, SnapshotInfo, SnapshotRange
from queueber.schema import wire
from queueber.wire.items import read_details, write_details

_SNAPSHOT_FIELDS = {
    "id": "id",
    "takenAtMs": "taken_at_ms",
    "expiresAtMs": "expires_at_ms",
    "firstOffset": "first_offset",
    "nextOffset": "next_offset",
    "ready": "ready",
    "delayed": "delayed",
    "inProgress": "leased",
    "dead": "dead",
}
_DETAILS = wire.ScanResponse.schema.fields["details"]


def write_snapshot(target: Any, info: SnapshotInfo) -> None:
    for wire_name, name in _SNAPSHOT_FIELDS.items():
        setattr(target, wire_name, getattr(info, name))


def read_snapshot(source: Any) -> SnapshotInfo:
    return SnapshotInfo(**{name: getattr(source, wire) for wire, name in _SNAPSHOT_FIELDS.items()})


def read_cuts(response: Any) -> list[SnapshotRange]:
    """The ranges before the first cut, between cuts, and after the last."""
    return [SnapshotRange(*each) for each in pairwise([b"", *response.cuts, b""])]


def write_scan(response: Any, items: Sequence[ItemInfo], next_after: bytes) -> None:
    """Write a page of items. A column in which every item has the default is left out."""
    response.next = next_after
    if not items:
        return
    response.ids = [each.id for each in items]
    response.priorities = [each.priority for each in items]
    response.atMs = [each.at_ms for each in items]
    details = ItemDetails(
        _unless_empty([each.attempts for each in items]),
        _unless_empty([each.key for each in items]),
        _unless_empty([each.batch for each in items]),
        _unless_empty([each.attributes for each in items]),
    )
    if details.attempts or details.keys or details.batches or details.attributes:
        write_details(response.init("details"), details)
    for field, column in (
        ("contents", [each.contents for each in items]),
        ("leases", [each.lease_id for each in items]),
        ("reasons", [each.reason for each in items]),
        ("lastErrors", [each.last_error for each in items]),
    ):
        if any(column):
            setattr(response, field, column)


def read_scan(response: Any) -> ItemColumns:
    ids = list(response.ids)
    details = read_details(response.details) if response._has_by_field(_DETAILS) else ItemDetails()
    no_bytes, no_text, count = [b""] * len(ids), [""] * len(ids), len(ids)
    return ItemColumns(
        ids,
        list(response.contents) or no_bytes,
        details.keys or no_text,
        details.attributes or [{}] * count,
        details.batches or no_text,
        list(response.priorities),
        details.attempts or [0] * count,
        list(response.atMs),
        list(response.leases) or no_bytes,
        list(response.reasons) or no_text,
        list(response.lastErrors) or no_text,
        response.next,
    )


def items_of(columns: ItemColumns) -> list[ItemInfo]:
    """The rows of a page. Scans send neither `group_max` nor the times of attempts."""
    rows = zip(
        columns.ids,
        columns.contents,
        map(made_at_ms, columns.ids),
        columns.keys,
        columns.attributes,
        columns.batches,
        columns.priorities,
        columns.attempts,
        [0] * len(columns.ids),
        columns.at_ms,
        columns.lease_ids,
        columns.reasons,
        columns.last_errors,
        strict=True,
    )
    return [ItemInfo(*row) for row in rows]


def _unless_empty(column: list[Any]) -> list[Any]:
    return column if any(column) else []
