"""The checks that every request passes, whatever adapter it came through.

Each says which field is wrong, what it was, and what the limit is.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    ADD_ITEMS_MAX,
    DELAY_MS_MAX,
    ID_BYTES,
    ITEM_WIRE_BYTES,
    LEASE_MS_MAX,
    MANY_MAX,
    MESSAGE_OVERHEAD_BYTES,
    QUEUE_NAME_CHARS_MAX,
)
from queueber.model import QueueSettings

T = TypeVar("T")

_QUEUE_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{QUEUE_NAME_CHARS_MAX}}}", re.ASCII)


def check_queue_name(name: str) -> None:
    if _QUEUE_NAME.fullmatch(name) is None:
        raise InvalidArgument(
            f"name: {name[:200]!r} is not a queue name; use 1 to {QUEUE_NAME_CHARS_MAX} letters, "
            "digits, dots, dashes and underscores"
        )


def check_settings(settings: QueueSettings, item_bytes_max: int) -> None:
    if settings.item_bytes_max > item_bytes_max:
        raise InvalidArgument(
            f"itemBytesMax: {settings.item_bytes_max} is over the server's own limit of "
            f"{item_bytes_max}"
        )


def check_add(
    contents: Sequence[bytes],
    delays_ms: Sequence[int],
    *,
    item_bytes_max: int,
    message_bytes_max: int,
) -> None:
    if not contents:
        raise InvalidArgument("items: the call has none; add at least one")
    if len(contents) > ADD_ITEMS_MAX:
        raise ResourceExhausted(
            f"items: the call has {len(contents)}; the limit is {ADD_ITEMS_MAX}, send several calls"
        )
    longest = max(map(len, contents))
    if longest > item_bytes_max:
        raise ResourceExhausted(
            f"contents: an item has {longest} bytes; the limit is {item_bytes_max}"
        )
    size = sum(map(len, contents)) + len(contents) * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES
    if size > message_bytes_max:
        raise ResourceExhausted(
            f"contents: the call has {size} bytes; the limit is {message_bytes_max}, "
            "send several calls"
        )
    if delays_ms:
        if len(delays_ms) != len(contents):
            raise InvalidArgument(
                f"delaysMs: {len(delays_ms)} delays for {len(contents)} items; give one for each"
            )
        if max(delays_ms) > DELAY_MS_MAX:
            raise InvalidArgument(
                f"visibilityTimeout: {max(delays_ms)} ms is too long; the limit is {DELAY_MS_MAX}"
            )


def check_count(count: int, poll_items_max: int) -> None:
    if count > poll_items_max:
        raise InvalidArgument(f"numItems: {count} is too many; the limit is {poll_items_max}")


def check_lease_ms(lease_ms: int) -> None:
    if lease_ms == 0:
        raise InvalidArgument("leaseValidity: 0 is no lease; give at least one millisecond")
    if lease_ms > LEASE_MS_MAX:
        raise InvalidArgument(
            f"leaseValidity: {lease_ms} ms is too long; the limit is {LEASE_MS_MAX}"
        )


def check_ids(field: str, ids: Sequence[bytes]) -> None:
    for each in ids:
        if len(each) != ID_BYTES:
            raise InvalidArgument(f"{field}: one has {len(each)} bytes; it must have {ID_BYTES}")


def check_many(field: str, count: int) -> None:
    if count == 0:
        raise InvalidArgument(f"{field}: the call has none; give at least one")
    if count > MANY_MAX:
        raise ResourceExhausted(
            f"{field}: the call has {count}; the limit is {MANY_MAX}, send several calls"
        )


def one_for_each(field: str, values: Sequence[T], count: int) -> Sequence[T]:
    """The values themselves when there are `count`; a single one stands for all."""
    if len(values) == 1 and count > 1:
        return [values[0]] * count
    if len(values) != count:
        raise InvalidArgument(f"{field}: {len(values)} for {count}; give one, or one for each")
    return values
