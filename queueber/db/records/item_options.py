"""Item options: what an item has of its own, in place of what its queue or worker says.

    attempts 2 | delays 2 | timeout 8 | expires-at 8 | each delay 8

The attempts are one more than the limit, and 0 if the item has none of its own.
"""

import struct
from typing import NamedTuple

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
