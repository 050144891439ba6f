"""The checks of what calls say of items, batches and readers."""

from collections.abc import Mapping, Sequence

from queueber.engine.loads.part_check import check_partition
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ADD_ITEMS_MAX,
    AFTER_MAX,
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    BATCH_NAME_BYTES_MAX,
    DELAY_MS_MAX,
    ERROR_BYTES_MAX,
    ITEM_WIRE_BYTES,
    KEY_BYTES_MAX,
    LOAD_NAME_BYTES_MAX,
    MESSAGE_OVERHEAD_BYTES,
    PRIORITY_MAX,
    PRODUCER_ID_BYTES_MAX,
    READER_NAME_BYTES_MAX,
    ROWS_MAX,
    SPLIT_PARTS_MAX,
)
from queueber.model import NewItems, Origin, largest_size, total_size
from queueber.service.validate.arguments import check_column, check_ids, check_text
from queueber.service.validate.item_options import check_options

BACKOFF_DELAY_MS = -1
"""In place of a delay: the queue's backoff."""
_CURSOR_BYTES_MAX = 64


def check_new_items(items: NewItems, *, item_bytes_max: int, message_bytes_max: int) -> None:
    _check_sizes(items, item_bytes_max=item_bytes_max, message_bytes_max=message_bytes_max)
    contents = items.contents
    _check_order(items)
    if items.keys:
        check_column("keys", items.keys, len(contents))
        for key in items.keys:
            if key:
                check_text("key", key, KEY_BYTES_MAX)
    if items.attributes:
        check_attributes(items.attributes, len(contents))
    if items.batch:
        check_batch(items.batch)
    if items.producer is not None:
        check_text("producer.id", items.producer.id, PRODUCER_ID_BYTES_MAX)
        if items.producer.sequence == 0:
            raise InvalidArgument("producer.sequence: 0; the first call of an epoch has 1")
    if items.origin is not None:
        _check_origin(items.origin, len(contents))
    if items.options:
        check_options(items)
    if items.after or items.after_batch:
        _check_after(items)


def _check_after(items: NewItems) -> None:
    if items.origin is not None:
        raise InvalidArgument("after: rows of a load do not wait for others")
    if len(items.after) > AFTER_MAX:
        raise InvalidArgument(
            f"after: {len(items.after)} items are too many to wait for; the limit is {AFTER_MAX}, "
            "or have the item wait for a batch"
        )
    check_ids("after", items.after)
    if items.after_batch:
        check_text("afterBatch", items.after_batch, BATCH_NAME_BYTES_MAX)


def _check_sizes(items: NewItems, *, item_bytes_max: int, message_bytes_max: int) -> None:
    contents = items.contents
    if not contents and items.producer is not None:
        raise InvalidArgument("items: the call has none; a call of a producer adds at least one")
    if len(contents) > ADD_ITEMS_MAX:
        raise ResourceExhausted(
            f"items: the call has {len(contents)}; the limit is {ADD_ITEMS_MAX}, send several calls"
        )
    size = total_size(contents)
    if size > item_bytes_max and (largest := largest_size(contents)) > item_bytes_max:
        raise ResourceExhausted(
            f"contents: an item has {largest} bytes; the limit is {item_bytes_max}"
        )
    size += len(contents) * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
    size += sum(len(key.encode()) for key in items.keys)
    size += sum(map(attributes_bytes, items.attributes))
    if size > message_bytes_max:
        raise ResourceExhausted(
            f"contents: the call has {size} bytes; the limit is {message_bytes_max}, "
            "send several calls"
        )


def _check_origin(origin: Origin, count: int) -> None:
    check_text("origin.load", origin.load.name, LOAD_NAME_BYTES_MAX)
    check_partition(origin.partition)
    if origin.row + count > ROWS_MAX:
        raise InvalidArgument(
            f"origin.row: {origin.row} is too high for {count} items; a partition has at most "
            f"{ROWS_MAX} rows"
        )


def _check_order(items: NewItems) -> None:
    contents = items.contents
    if items.delays_ms:
        check_column("delaysMs", items.delays_ms, len(contents))
        if max(items.delays_ms) > DELAY_MS_MAX:
            raise InvalidArgument(
                f"visibilityTimeout: {max(items.delays_ms)} ms is too long; the limit is "
                f"{DELAY_MS_MAX}"
            )
    if items.priorities:
        check_column("priorities", items.priorities, len(contents))
        if max(items.priorities) > PRIORITY_MAX:
            raise InvalidArgument(
                f"priority: {max(items.priorities)} is too high; it must be 0 to {PRIORITY_MAX}"
            )


def check_attributes(column: Sequence[Mapping[str, str]], count: int) -> None:
    check_column("attributes", column, count)
    for attributes in column:
        if len(attributes) > ATTRIBUTES_MAX:
            raise InvalidArgument(
                f"attributes: an item has {len(attributes)}; the limit is {ATTRIBUTES_MAX}"
            )
        if "" in attributes:
            raise InvalidArgument("attributes: one has an empty name; every name has a letter")
        size = attributes_bytes(attributes)
        if size > ATTRIBUTES_BYTES_MAX:
            raise InvalidArgument(
                f"attributes: those of an item have {size} bytes; the limit is "
                f"{ATTRIBUTES_BYTES_MAX}"
            )


def attributes_bytes(attributes: Mapping[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in attributes.items())


def check_results(results: Sequence[bytes], count: int, item_bytes_max: int) -> None:
    if len(results) != count:
        raise InvalidArgument(f"results: {len(results)} for {count} ids; give one for each")
    largest = largest_size(results)
    if largest > item_bytes_max:
        raise ResourceExhausted(f"results: one has {largest} bytes; the limit is {item_bytes_max}")


def check_errors(errors: Sequence[str]) -> None:
    for error in errors:
        if len(error.encode()) > ERROR_BYTES_MAX:
            raise InvalidArgument(
                f"errors: one has {len(error.encode())} bytes; the limit is {ERROR_BYTES_MAX}"
            )


def check_delays_ms(delays_ms: Sequence[int]) -> None:
    """-1 is the queue's backoff."""
    for delay_ms in delays_ms:
        if not BACKOFF_DELAY_MS <= delay_ms <= DELAY_MS_MAX:
            raise InvalidArgument(
                f"delaysMs: {delay_ms} is out of range; it must be 0 to {DELAY_MS_MAX}, or -1 for "
                "the queue's backoff"
            )


def check_batch(batch: str) -> None:
    check_text("batch", batch, BATCH_NAME_BYTES_MAX)


def check_reader(reader: str) -> None:
    check_text("reader", reader, READER_NAME_BYTES_MAX)


def check_pause_ms(for_ms: int) -> None:
    if for_ms > DELAY_MS_MAX:
        raise InvalidArgument(
            f"forMs: {for_ms} is too long; the limit is {DELAY_MS_MAX}, and 0 is until resumed"
        )


def check_parts(parts: int) -> None:
    if not 1 <= parts <= SPLIT_PARTS_MAX:
        raise InvalidArgument(f"parts: {parts} is not a number from 1 to {SPLIT_PARTS_MAX}")


def check_cursor(field: str, cursor: bytes) -> None:
    if len(cursor) > _CURSOR_BYTES_MAX:
        raise InvalidArgument(
            f"{field}: {len(cursor)} bytes are no cursor, which has {_CURSOR_BYTES_MAX} at most; "
            "give back what the page before said"
        )
