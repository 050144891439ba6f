"""Item options: what an item has of its own, in place of what its queue or worker says.

    attempts 2 | delays 2 | timeout 8 | expires-at 8 | each delay 8

The attempts are one more than the limit, and 0 if the item has none of its own.
"""

import struct
from typing import NamedTuple

from queueber.model import NO_OPTIONS, ItemOptions

_HEAD = struct.Struct(">HHQQ")


class StoredOptions(NamedTuple):
    """As `ItemOptions`, with the time at which the item expires; 0: it does not."""

    attempts_max: int | None = None
    backoff_ms: tuple[int, ...] = ()
    timeout_ms: int = 0
    expires_at_ms: int = 0


def encode_options(options: StoredOptions) -> bytes:
    attempts_max, delays_ms, timeout_ms, expires_at_ms = options
    stored = 0 if attempts_max is None else attempts_max + 1
    head = _HEAD.pack(stored, len(delays_ms), timeout_ms, expires_at_ms)
    return head + struct.pack(f">{len(delays_ms)}Q", *delays_ms)


def decode_options(value: bytes) -> StoredOptions:
    """Raises `struct.error` if the bytes are no options."""
    attempts, delays, timeout_ms, expires_at_ms = _HEAD.unpack_from(value)
    delays_ms = struct.unpack(f">{delays}Q", value[_HEAD.size :])
    return StoredOptions(attempts - 1 if attempts else None, delays_ms, timeout_ms, expires_at_ms)


def encode_future_options(options: ItemOptions) -> bytes:
    """Of an item that is still to be added, so that it expires so long after that; empty: none."""
    if options == NO_OPTIONS:
        return b""
    own = options.attempts_max, options.backoff_ms, options.timeout_ms, options.expires_ms
    return encode_options(StoredOptions(*own))


def decode_future_options(value: bytes) -> ItemOptions:
    """Raises `struct.error` if the bytes are no options."""
    return ItemOptions(*decode_options(value)) if value else NO_OPTIONS
