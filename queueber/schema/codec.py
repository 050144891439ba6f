"""Cap'n Proto messages to plain values and back. No rules here."""

from collections.abc import Sequence
from typing import Any

from queueber.errors import ResourceExhausted
from queueber.limits import ADD_ITEMS_MAX, SECOND_MS
from queueber.model import Polled, QueueSettings, ServerInfo, Stats


def read_list(field: str, values: Any, count_max: int) -> list[Any]:
    """The elements of a list, counted before they are read.

    An element may take no room in a message and still takes time to read.
    """
    if len(values) > count_max:
        raise ResourceExhausted(
            f"{field}: the call has {len(values)}; the limit is {count_max}, send several calls"
        )
    return list(values)


def read_add(request: Any) -> tuple[list[bytes], list[int]]:
    """Contents, and a delay for each, or no delays at all."""
    items = read_list("items", request.items, ADD_ITEMS_MAX)
    columns = read_list("contents", request.contents, ADD_ITEMS_MAX)
    column_delays = read_list("delaysMs", request.delaysMs, ADD_ITEMS_MAX)
    if not items:
        return columns, column_delays
    contents = [item.contents for item in items]
    delays_ms = [
        read_duration_ms(item.visibilityTimeoutSecs, item.visibilityTimeoutMs) for item in items
    ]
    return contents + columns, delays_ms + (column_delays or [0] * len(columns))


def read_duration_ms(secs: int, ms: int) -> int:
    return secs * SECOND_MS + ms


def write_polled(response: Any, polled: Polled, *, columns: bool) -> None:
    response.lease = polled.lease_id
    if columns:
        response.ids = list(polled.ids)
        response.contents = list(polled.contents)
        return
    items = response.init("items", len(polled.ids))
    for at, (item_id, contents) in enumerate(zip(polled.ids, polled.contents, strict=True)):
        item = items[at]
        item.contents = contents
        item.id = item_id


def write_polled_many(response: Any, answers: Sequence[Polled]) -> None:
    response.leases = [polled.lease_id for polled in answers]
    response.counts = [len(polled.ids) for polled in answers]
    response.ids = [item_id for polled in answers for item_id in polled.ids]
    response.contents = [contents for polled in answers for contents in polled.contents]


def read_polled(response: Any) -> Polled:
    """From an answer in columns."""
    return Polled(response.lease, list(response.ids), list(response.contents))


def read_polled_many(response: Any) -> list[Polled]:
    ids, contents = list(response.ids), list(response.contents)
    answers = []
    start = 0
    for lease_id, count in zip(response.leases, response.counts, strict=True):
        end = start + count
        answers.append(Polled(lease_id, ids[start:end], contents[start:end]))
        start = end
    return answers


def read_settings(settings: Any) -> QueueSettings:
    return QueueSettings(settings.itemsMax, settings.bytesMax, settings.itemBytesMax)


def write_settings(target: Any, settings: QueueSettings) -> None:
    target.itemsMax = settings.items_max
    target.bytesMax = settings.bytes_max
    target.itemBytesMax = settings.item_bytes_max


_STATS_FIELDS = {
    "name": "name",
    "createdAtMs": "created_at_ms",
    "ready": "ready",
    "delayed": "delayed",
    "inProgress": "in_progress",
    "leases": "leases",
    "contentsBytes": "contents_bytes",
    "oldestAgeMs": "oldest_age_ms",
    "waitingPolls": "waiting_polls",
    "addedTotal": "added_total",
    "polledTotal": "polled_total",
    "removedTotal": "removed_total",
    "expiredTotal": "expired_total",
    "extendedTotal": "extended_total",
}


def write_stats(target: Any, stats: Stats) -> None:
    write_settings(target.init("settings"), stats.settings)
    for wire_name, name in _STATS_FIELDS.items():
        setattr(target, wire_name, getattr(stats, name))


def read_stats(source: Any) -> Stats:
    values = {name: getattr(source, wire_name) for wire_name, name in _STATS_FIELDS.items()}
    return Stats(settings=read_settings(source.settings), **values)


def write_server_info(target: Any, info: ServerInfo) -> None:
    target.version = info.version
    target.durability = info.durability
    target.itemBytesMax = info.item_bytes_max
    target.messageBytesMax = info.message_bytes_max
    target.pollItemsMax = info.poll_items_max
    target.pollWaitMsMax = info.poll_wait_ms_max


def read_server_info(source: Any) -> ServerInfo:
    return ServerInfo(
        source.version,
        source.durability,
        source.itemBytesMax,
        source.messageBytesMax,
        source.pollItemsMax,
        source.pollWaitMsMax,
    )
