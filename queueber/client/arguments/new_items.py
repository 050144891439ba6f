"""The options of an add, checked and turned into what the call sends."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypedDict

from queueber.client.arguments import values
from queueber.client.arguments.item_options import (
    Attempts,
    Expires,
    OwnBackoff,
    OwnTimeout,
    check_expiry,
    to_options,
)
from queueber.client.arguments.moments import to_delay
from queueber.client.arguments.traces import with_trace
from queueber.client.arguments.values import Contents, Seconds, one_for_each, to_ms, to_text
from queueber.errors import InvalidArgument
from queueber.limits import (
    AFTER_MAX,
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    DELAY_MS_MAX,
    KEY_BYTES_MAX,
    PARTITIONS_MAX,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    ROWS_MAX,
)
from queueber.model import NewItems, Origin

Delay = Seconds | Sequence[Seconds]
Priority = int | Sequence[int]
Key = str | Sequence[str | None] | None
Attributes = Mapping[str, str] | Sequence[Mapping[str, str] | None] | None


class AddOptions(TypedDict, total=False):
    """The options of an add; see `Queue.add`."""

    delay: Delay
    at: datetime | None
    priority: Priority
    key: Key
    attributes: Attributes
    batch: str | None
    attempts: Attempts
    backoff: OwnBackoff
    timeout: OwnTimeout
    expires: Expires
    after: values.ItemIds
    after_batch: str | None
    origin: Origin | None


def to_new_items(
    contents: Contents,
    *,
    delay: Delay = 0,
    at: datetime | None = None,
    priority: Priority = PRIORITY_DEFAULT,
    key: Key = None,
    attributes: Attributes = None,
    batch: str | None = None,
    attempts: Attempts = None,
    backoff: OwnBackoff = None,
    timeout: OwnTimeout = None,
    expires: Expires = None,
    after: values.ItemIds = (),
    after_batch: str | None = None,
    origin: Origin | None = None,
) -> NewItems:
    listed = values.to_byte_strings("contents", contents)
    count = len(listed)
    if not count:
        raise InvalidArgument("contents: there are none; add at least one item")
    if at is not None:
        if delay != 0:
            raise InvalidArgument("at: delay is given, too; give one of them")
        delay = to_delay(at)
    delays_ms = _to_delays_ms(delay, count)
    options = to_options(count, attempts, backoff, timeout, expires)
    check_expiry(options, delays_ms)
    return NewItems(
        listed,
        delays_ms,
        () if priority == PRIORITY_DEFAULT else _to_priorities(priority, count),
        () if key is None else _to_keys(key, count),
        with_trace(() if attributes is None else _to_attributes(attributes, count), count),
        "" if batch is None else values.to_batch(batch),
        origin=None if origin is None else _to_origin(origin, count),
        options=options,
        after=_to_after(after),
        after_batch="" if after_batch is None else values.to_batch(after_batch, "after_batch"),
    )


def _to_after(after: values.ItemIds) -> list[bytes]:
    ids = values.to_ids("after", after)
    if len(ids) > AFTER_MAX:
        raise InvalidArgument(
            f"after: {len(ids)} items are too many to wait for; the limit is {AFTER_MAX}, or have "
            "the item wait for a batch"
        )
    return ids


def _to_origin(origin: object, count: int) -> Origin:
    if not isinstance(origin, Origin):
        raise InvalidArgument(f"origin: {origin!r} is not an Origin")
    values.to_load_ref(origin.load.name, origin.load.epoch)
    values.to_number("origin.partition", origin.partition, limit=PARTITIONS_MAX - 1)
    values.to_number("origin.row", origin.row, limit=ROWS_MAX - count)
    return origin


def _to_delays_ms(delay: object, count: int) -> list[int]:
    """One for each item; empty when nothing is delayed."""
    if isinstance(delay, int | float | timedelta):
        delay_ms = to_ms("delay", delay, DELAY_MS_MAX)
        return [delay_ms] * count if delay_ms else []
    if not isinstance(delay, Iterable):
        raise InvalidArgument(f"delay: {delay!r} is neither seconds nor a list of them")
    delays_ms = [to_ms("delay", each, DELAY_MS_MAX) for each in delay]
    return one_for_each("delay", "delays", delays_ms, count)


def _to_priorities(priority: object, count: int) -> list[int]:
    if isinstance(priority, int):
        return [_to_priority(priority)] * count
    if not isinstance(priority, Iterable):
        raise InvalidArgument(f"priority: {priority!r} is neither a number nor a list of them")
    return one_for_each("priority", "priorities", [_to_priority(each) for each in priority], count)


def _to_priority(priority: object) -> int:
    is_number = isinstance(priority, int) and not isinstance(priority, bool)
    if not is_number or not 0 <= priority <= PRIORITY_MAX:  # type: ignore[operator]
        raise InvalidArgument(f"priority: {priority!r} is not a number from 0 to {PRIORITY_MAX}")
    return priority  # type: ignore[return-value]


def _to_keys(key: object, count: int) -> list[str]:
    """One for each item; empty when no item has a key."""
    if isinstance(key, str):
        if count != 1:
            raise InvalidArgument(f"key: one key for {count} items; give a list, one for each")
        if not key:
            raise InvalidArgument("key: it is empty, and would deduplicate nothing; leave it out")
        key = [key]
    if not isinstance(key, Iterable):
        raise InvalidArgument(f"key: {key!r} is neither text nor a list of it")
    keys = ["" if each is None else to_text("key", each, KEY_BYTES_MAX) for each in key]
    one_for_each("key", "keys", keys, count)
    return keys if any(keys) else []


def _to_attributes(attributes: object, count: int) -> list[dict[str, str]]:
    """One mapping for each item; empty when no item has attributes."""
    if isinstance(attributes, Mapping):
        return [to_mapping(attributes)] * count if attributes else []
    if isinstance(attributes, str) or not isinstance(attributes, Iterable):
        raise InvalidArgument(f"attributes: {attributes!r} is neither a mapping nor a list of them")
    mappings = [{} if each is None else to_mapping(each) for each in attributes]
    one_for_each("attributes", "mappings", mappings, count)
    return mappings if any(mappings) else []


def to_mapping(attributes: object) -> dict[str, str]:
    if not isinstance(attributes, Mapping):
        raise InvalidArgument(f"attributes: {attributes!r} is not a mapping from text to text")
    if len(attributes) > ATTRIBUTES_MAX:
        raise InvalidArgument(
            f"attributes: an item has {len(attributes)}; the limit is {ATTRIBUTES_MAX}"
        )
    size = 0
    for name, value in attributes.items():
        for text in (name, value):
            size += len(to_text("attributes", text, ATTRIBUTES_BYTES_MAX).encode())
    if size > ATTRIBUTES_BYTES_MAX:
        raise InvalidArgument(
            f"attributes: an item has {size} bytes of them; the limit is {ATTRIBUTES_BYTES_MAX}"
        )
    return dict(attributes)
