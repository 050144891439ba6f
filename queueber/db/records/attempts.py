"""The failures of an item: when each was, and how and with which error the last ones ended.

    count 2 | times 8 each | earlier errors 1 | of each end 1, length 2, error | end 1 | last error

The last error is kept in full, those before it are cut, and of older failures only the times are
kept. The highest bit of the count says that the record has ends: one of an earlier version has the
last error right after the times.
"""

import struct
from typing import NamedTuple

from queueber.db.records.keys import TIME_BYTES
from queueber.limits import EARLIER_ERROR_BYTES_MAX, EARLIER_ERRORS_MAX
from queueber.model import AttemptEnd

_HAS_ENDS = 1 << 15
_EARLIER = struct.Struct(">BH")
_ENDS: tuple[AttemptEnd | None, ...] = (
    None, AttemptEnd.FAILED, AttemptEnd.EXPIRED, AttemptEnd.DISCONNECTED,
)  # fmt: skip
"""By the number that is stored. It was not stored before."""


class Failed(NamedTuple):
    """How a failure ended."""

    end: AttemptEnd | None
    error: str


class History(NamedTuple):
    times_ms: list[int]
    """When each failure was, oldest first."""
    last: list[Failed]
    """The last ones of these, oldest first: that of the very last has its whole error."""

    @property
    def last_error(self) -> str:
        return self.last[-1].error if self.last else ""

    def failed_again(self, now_ms: int, failed: Failed, times_max: int) -> "History":
        """With one failure more, of which at most so many times are kept."""
        earlier = [Failed(end, _cut(error)) for end, error in self.last][-EARLIER_ERRORS_MAX:]
        return History([*self.times_ms, now_ms][-times_max:], [*earlier, failed])


NO_HISTORY = History([], [])


def encode_attempts(history: History) -> bytes:
    times_ms, last = history
    count = len(times_ms)
    parts = [struct.pack(f">H{count}Q", count | _HAS_ENDS, *times_ms)]
    parts.append(bytes([len(last) - 1]))
    for end, error in last[:-1]:
        text = error.encode()
        parts += [_EARLIER.pack(_ENDS.index(end), len(text)), text]
    end, error = last[-1]
    parts += [bytes([_ENDS.index(end)]), error.encode()]
    return b"".join(parts)


def decode_attempts(value: bytes) -> History:
    """Raises `ValueError` or `struct.error` if the value is no history."""
    count, at = _times_end(value)
    times_ms = list(struct.unpack(f">{count}Q", value[2:at]))
    if not value[0] & _HAS_ENDS >> 8:
        return History(times_ms, [Failed(None, value[at:].decode())] if times_ms else [])
    last: list[Failed] = []
    try:
        earlier, at = value[at], at + 1
        for _ in range(earlier):
            end, size = _EARLIER.unpack_from(value, at)
            at += _EARLIER.size
            last.append(Failed(_ENDS[end], value[at : at + size].decode()))
            at += size
        last.append(Failed(_ENDS[value[at]], value[at + 1 :].decode()))
    except IndexError:
        raise ValueError(f"a history of {len(value)} bytes ends too early") from None
    return History(times_ms, last)


def _times_end(value: bytes) -> tuple[int, int]:
    count = int.from_bytes(value[:2]) & ~_HAS_ENDS
    return count, 2 + count * TIME_BYTES


def _cut(error: str) -> str:
    """Its beginning, which says most, in few bytes."""
    encoded = error.encode()
    if len(encoded) <= EARLIER_ERROR_BYTES_MAX:
        return error
    kept = EARLIER_ERROR_BYTES_MAX - len(_CUT.encode())
    return encoded[:kept].decode(errors="ignore") + _CUT


_CUT = " ..."
