"""The checks that every request passes, whatever adapter it came through.

Each says which field is wrong, what it was, and what the limit is.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from queueber.engine.loads.part_check import check_partition
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import (
    CLIENT_NAME_BYTES_MAX,
    HISTORY_NAMES_MAX,
    ID_BYTES,
    LEASE_MS_MAX,
    LOAD_CHUNK_BYTES,
    LOAD_NAME_BYTES_MAX,
    LOAD_TIMEOUT_MS_MAX,
    MANY_MAX,
    QUEUE_NAME_CHARS_MAX,
)
from queueber.model import LoadRef, PartRef

T = TypeVar("T")

_QUEUE_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{QUEUE_NAME_CHARS_MAX}}}", re.ASCII)


def check_queue_name(name: str, field: str = "name") -> None:
    if _QUEUE_NAME.fullmatch(name) is None:
        raise InvalidArgument(
            f"{field}: {name[:200]!r} is not a queue name; use 1 to {QUEUE_NAME_CHARS_MAX} "
            "letters, digits, dots, dashes and underscores"
        )


def check_history_names(field: str, names: Sequence[str]) -> None:
    if len(names) > HISTORY_NAMES_MAX:
        raise ResourceExhausted(
            f"{field}: the call has {len(names)}; the limit is {HISTORY_NAMES_MAX}, send several "
            "calls"
        )


def check_total(counts: Sequence[int], poll_items_max: int) -> None:
    """How many items several polls ask for together."""
    if sum(counts) > poll_items_max:
        raise InvalidArgument(f"numItems: {sum(counts)} is too many; the limit is {poll_items_max}")


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


def check_counts(counts: Sequence[int], leases: int) -> None:
    """How many items each of the leases was given with."""
    if len(counts) != leases:
        raise InvalidArgument(f"counts: {len(counts)} for {leases} leases; give one for each")
    if 0 in counts:
        raise InvalidArgument("counts: one is 0; a lease holds at least one item")
    if sum(counts) > MANY_MAX:
        raise ResourceExhausted(
            f"counts: the call is for {sum(counts)} items; the limit is {MANY_MAX}, send several "
            "calls"
        )


def one_for_each(field: str, values: Sequence[T], count: int) -> Sequence[T]:
    """The values themselves when there are `count`; a single one stands for all."""
    if len(values) == 1 and count > 1:
        return [values[0]] * count
    if len(values) != count:
        raise InvalidArgument(f"{field}: {len(values)} for {count}; give one, or one for each")
    return values


def check_client_name(field: str, name: str) -> None:
    """What a caller calls itself or its machine, for the logs."""
    check_text(field, name, CLIENT_NAME_BYTES_MAX)
    if not name.isprintable():
        raise InvalidArgument(f"{field}: {name!r} has characters that cannot be printed")


def check_text(field: str, text: str, bytes_max: int) -> None:
    """A name that users choose freely, and must choose."""
    if not text:
        raise InvalidArgument(f"{field}: it is empty; give 1 to {bytes_max} bytes of text")
    size = len(text.encode())
    if size > bytes_max:
        raise InvalidArgument(
            f"{field}: {text[:50]!r}... has {size} bytes; the limit is {bytes_max}"
        )


def check_load(ref: LoadRef) -> None:
    check_text("load", ref.name, LOAD_NAME_BYTES_MAX)


def check_timeout_ms(timeout_ms: int) -> None:
    if timeout_ms > LOAD_TIMEOUT_MS_MAX:
        raise InvalidArgument(
            f"timeoutMs: {timeout_ms} is too long; the limit is {LOAD_TIMEOUT_MS_MAX}"
        )


def check_part_ref(ref: PartRef) -> None:
    check_partition(ref.partition)
    check_text("attempt", ref.attempt, LOAD_NAME_BYTES_MAX)


def check_chunk(data: bytes) -> None:
    if len(data) > LOAD_CHUNK_BYTES:
        raise InvalidArgument(
            f"data: {len(data)} bytes are too many; the limit of a call is {LOAD_CHUNK_BYTES}"
        )


def check_column(field: str, column: Sequence[object], count: int) -> None:
    if len(column) != count:
        raise InvalidArgument(f"{field}: {len(column)} for {count} items; give one for each")
